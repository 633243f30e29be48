"""`make soak`: rounds until the time is over, or until one fails."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.openfleet.clusters.extensions.dev import soak


def test_rounds_repeat_until_the_minutes_are_over(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rounds: list[tuple[int, int]] = []
    monkeypatch.setattr(soak, "failure", lambda number, factor: rounds.append((number, factor)) or "")
    seconds = itertools.count(0, 60)
    assert soak.main(["--minutes=3", "--factor=7"], clock=lambda: float(next(seconds))) == 0
    assert rounds == [(1, 7), (2, 7), (3, 7)]
    assert "3 rounds without a failure" in capsys.readouterr().out


def test_the_first_failure_ends_it_and_shows_its_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(soak, "failure", lambda number, _factor: "1 failed\n" if number == 2 else "")
    assert soak.main(["--minutes=600"]) == 1
    output = capsys.readouterr().out
    assert "Round 2" in output and output.endswith("1 failed\n")
