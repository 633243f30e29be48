"""The runner of the gates: it runs all of them, prints the output of those that failed, and fails if one did."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.openfleet.clusters.extensions.dev import lint
from ansible_collections.openfleet.clusters.extensions.dev.lint import Gate


def gate(title: str, code: str) -> Gate:
    return Gate(title, [sys.executable, "-c", code])


@pytest.fixture(autouse=True)
def slowest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "SLOWEST", gate("slowest", "print('passed')"))


def test_a_failed_gate_does_not_stop_the_next_and_its_output_comes_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lint, "GATES", [gate("first", "print('one thing'); raise SystemExit(3)"), gate("second", "print('passed')")])
    assert lint.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("✘ first")
    assert lines[1].startswith("✔ second")
    assert lines[2].startswith("✔ slowest")
    assert lines[3:] == ["", "✘ first", "one thing"]


def test_the_gate_that_runs_beside_the_others_fails_as_they_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lint, "GATES", [gate("only", "print('passed')")])
    monkeypatch.setattr(lint, "SLOWEST", gate("slowest", "print('a finding'); raise SystemExit(1)"))
    assert lint.main() == 1
    assert capsys.readouterr().out.splitlines()[-2:] == ["✘ slowest", "a finding"]


def test_gates_that_pass_say_nothing_and_end_with_zero(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lint, "GATES", [gate("only", "print('passed')")])
    assert lint.main() == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["only", "slowest"]
