"""Repeat the random tests (chaos, fuzz, interleavings, contention) until the given minutes are over; the first failure ends it.

Beside them, for the whole time, one event source and one rules engine work on orders that come and go, within budgets of memory, file
descriptors and threads.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Self

from ..sandbox.screen import heading, run_command, stage

PYTEST = (sys.executable, "-m", "pytest", "--dist=worksteal", "-q")
ROUND = (*PYTEST, "--numprocesses=2", "-m", "soak")
# A process for each of them: a process keeps the last test of its queue, which would then begin after the end of
# another one.
ENDURANCE = (*PYTEST, "--numprocesses=3", "-m", "endurance")


def main(arguments: list[str] | None = None, clock: Callable[[], float] = time.monotonic) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--factor", type=int, default=5, help="how many times the rounds of `make test` each test has (default: 5)")
    options = parser.parse_args(arguments)
    deadline, rounds = clock() + options.minutes * 60, 0
    with Endurance(options.minutes * 60) as endurance:
        while rounds == 0 or clock() < deadline:
            rounds += 1
            if output := failure(rounds, options.factor) or endurance.failure():
                heading(f"✘ Round {rounds}")
                print(output, end="")
                return 1
        if output := endurance.failure(wait=True):
            heading("✘ Endurance")
            print(output, end="")
            return 1
    print(f"{rounds} rounds without a failure")
    return 0


def failure(number: int, factor: int) -> str:
    """The output of one round if it failed; empty if it passed."""
    try:
        with stage(f"Round {number}"):
            subprocess.run(
                ROUND,
                env=os.environ | {"OPENFLEET_SOAK": str(factor)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
            )
    except subprocess.CalledProcessError as error:
        return str(error.stdout)
    return ""


class Endurance:
    """The tests of one long life, beside the rounds. They end by themselves after `seconds`."""

    def __init__(self, seconds: float, command: Sequence[str] = ENDURANCE) -> None:
        self._command = command
        self._environment = os.environ | {"OPENFLEET_ENDURANCE_SECONDS": str(seconds)}
        self._output = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed with this object

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, env=self._environment, stdout=self._output, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._output.close()

    def failure(self, wait: bool = False) -> str:
        """The output if they have failed; empty while they go on, and if they passed."""
        if wait:
            self._process.wait()
        if not self._process.poll():
            return ""
        self._output.seek(0)
        return self._output.read() or f"The tests of endurance ended with exit code {self._process.returncode}.\n"


if __name__ == "__main__":
    run_command(main)
