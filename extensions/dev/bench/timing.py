"""Measured stages, the rows of the table, and their goals."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import heading, stage


class Goal(NamedTuple):
    """A limit, and whether the measured value is within it."""

    text: str
    reached: bool


class Row(NamedTuple):
    """A line of the table. One without a goal is for comparison."""

    what: str
    measured: str
    reference: str = ""
    ratio: str = ""
    goal: Goal | None = None

    def cells(self) -> tuple[str, ...]:
        return *self[:4], f"{self.goal.text}: {'reached' if self.goal.reached else 'MISSED'}" if self.goal else ""


def at_most(value: float, limit: float, unit: str) -> Goal:
    return Goal(f"at most {limit:g} {unit}", value <= limit)


def at_least(value: float, limit: float, unit: str) -> Goal:
    return Goal(f"at least {limit:g} {unit}", value >= limit)


@contextlib.contextmanager
def timed(title: str) -> Iterator[list[float]]:
    """A stage on the screen; the list has its seconds afterwards."""
    taken: list[float] = []
    with stage(title):
        started = time.monotonic()
        yield taken
        taken.append(time.monotonic() - started)


@contextlib.contextmanager
def paused(sandbox: Sandbox, *names: str) -> Iterator[None]:
    """Pause the processes of these names, whose requests would be measured as well."""
    others = [process.pid for process in sandbox.status() if process.name in names]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


def seconds(taken: list[float]) -> str:
    return f"{taken[0]:.1f} s"


def ratio(taken: list[float], reference: list[float]) -> str:
    return f"{taken[0] / reference[0]:.1f} x"


def megabytes(sandbox: Sandbox, owner: str) -> int:
    pids = [process.pid for process in sandbox.status() if process.owner == owner]
    # Each process's share: the programs are one binary, whose pages would otherwise be counted several times.
    shares = [re.findall(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE) for pid in pids]
    return sum(int(share) for found in shares for share in found) // 1024


def table(rows: list[Row]) -> None:
    lines = [("what", "measured", "reference", "ratio", "to reach"), *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    heading("\n".join([texts[0], "-+-".join("-" * width for width in widths), *texts[1:]]))


def report(rows: list[Row]) -> int:
    """Print how many goals are reached and which are missed; returns the exit code."""
    goals = [row for row in rows if row.goal]
    missed = [row for row in goals if row.goal and not row.goal.reached]
    heading("\n".join([f"{len(goals) - len(missed)} of {len(goals)} goals reached.", *(f"Missed: {row.what}" for row in missed)]))
    return 1 if missed else 0
