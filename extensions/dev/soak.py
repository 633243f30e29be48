"""Repeat the random tests (chaos, fuzz, interleavings, contention) until the given minutes are over; the first failure ends it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable

from ..sandbox.screen import heading, run_command, stage


def main(arguments: list[str] | None = None, clock: Callable[[], float] = time.monotonic) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--factor", type=int, default=5, help="how many times the rounds of `make test` each test has (default: 5)")
    options = parser.parse_args(arguments)
    deadline, rounds = clock() + options.minutes * 60, 0
    while rounds == 0 or clock() < deadline:
        rounds += 1
        if output := failure(rounds, options.factor):
            heading(f"✘ Round {rounds}")
            print(output, end="")
            return 1
    print(f"{rounds} rounds without a failure")
    return 0


def failure(number: int, factor: int) -> str:
    """The output of one round if it failed; empty if it passed."""
    command = [sys.executable, "-m", "pytest", "-m", "soak", "--numprocesses=2", "--dist=worksteal", "-q"]
    try:
        with stage(f"Round {number}"):
            subprocess.run(
                command,
                env=os.environ | {"OPENFLEET_SOAK": str(factor)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
            )
    except subprocess.CalledProcessError as error:
        return str(error.stdout)
    return ""


if __name__ == "__main__":
    run_command(main)
