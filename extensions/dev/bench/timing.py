"""Stages whose time is kept, and the table that shows them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import heading, stage

Row = tuple[str, str, str, str]


@contextlib.contextmanager
def timed(title: str) -> Iterator[list[float]]:
    """A stage on the screen whose seconds are in the list afterwards."""
    taken: list[float] = []
    with stage(title):
        started = time.monotonic()
        yield taken
        taken.append(time.monotonic() - started)


@contextlib.contextmanager
def paused(sandbox: Sandbox, *names: str) -> Iterator[None]:
    """Without the processes of these names at work, which would ask and write meanwhile."""
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
    titles = ("what", "measured", "beside it", "ratio")
    widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(len(titles))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (titles, *rows)]
    heading("\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]))
