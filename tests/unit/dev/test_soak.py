"""`make soak`: rounds until the time is over, or until one fails."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.dev import soak
from ansible_collections.openfleet.clusters.extensions.dev.soak import Endurance


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test of endurance beside the rounds: it would need a hub."""
    monkeypatch.setattr(soak, "Endurance", lambda seconds: Endurance(seconds, ["true"]))


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


SHELL = """echo $OPENFLEET_ENDURANCE_SECONDS; {}"""


def test_what_fails_beside_the_rounds_ends_it_and_shows_its_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "failure", lambda _number, _factor: "")
    monkeypatch.setattr(soak, "Endurance", lambda seconds: Endurance(seconds, ["sh", "-c", SHELL.format("exit 1")]))
    assert soak.main(["--minutes=0.001"]) == 1
    assert capsys.readouterr().out.endswith("0.06\n")


def test_what_goes_on_beside_the_rounds_is_waited_for_and_ended_with_a_failed_round() -> None:
    with Endurance(1, ["sleep", "600"]) as endurance:
        assert endurance.failure() == ""
    with Endurance(1, ["sh", "-c", SHELL.format("sleep 0.2; exit 3")]) as endurance:
        assert endurance.failure(wait=True) == "1\n"


WAITS = """
import pathlib, time, pytest

pytestmark = pytest.mark.endurance

def test_of_a_moment():
    pass

def meet(mine, other):
    here = pathlib.Path(__file__).parent
    (here / mine).touch()
    deadline = time.monotonic() + 60
    while not (here / other).exists():
        assert time.monotonic() < deadline, f"{other} does not run beside {mine}"
        time.sleep(0.05)

def test_of_a_source():
    meet("source", "engine")

def test_of_an_engine():
    meet("engine", "source")
"""


def test_all_of_a_long_life_runs_at_once(tmp_path: Path) -> None:
    (tmp_path / "test_waits.py").write_text(WAITS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = endurance\naddopts = -p no:pytest-ansible\n")
    with Endurance(1, [*soak.ENDURANCE, "--rootdir", str(tmp_path), "-c", str(tmp_path / "pytest.ini"), str(tmp_path)]) as endurance:
        assert endurance.failure(wait=True) == ""
