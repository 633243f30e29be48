"""The runner of the gates: it runs all of them, prints the output of those that failed, and fails if one did."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.openfleet.clusters.extensions.dev import lint
from ansible_collections.openfleet.clusters.extensions.dev.lint import Gate


def gate(title: str, code: str) -> Gate:
    return Gate(title, [sys.executable, "-c", code])


def test_a_failed_gate_does_not_stop_the_next_and_its_output_comes_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lint, "GATES", [gate("first", "print('one thing'); raise SystemExit(3)"), gate("second", "print('passed')")])
    assert lint.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("✘ first")
    assert lines[1].startswith("✔ second")
    assert lines[2:] == ["", "✘ first", "one thing"]


def test_gates_that_pass_say_nothing_and_end_with_zero(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lint, "GATES", [gate("only", "print('passed')")])
    assert lint.main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
