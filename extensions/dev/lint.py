"""Run every gate, each a line with its time. A failed one does not stop the next; the output of the failed comes at the end.

The slowest gate runs beside the others on a core of its own; its line comes last, with the time that was left to wait for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ..sandbox.screen import heading, run_command, stage

ROOT = Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / ".venv" / "collections"
COLLECTION = "ansible_collections.openfleet.clusters"
RULEBOOKS = sorted(str(file.relative_to(ROOT)) for file in ROOT.glob("rulebooks/*.yml"))
TYPED = [folder for folder in ("extensions", "plugins/module_utils") if (ROOT / folder).is_dir()]


@dataclass(frozen=True)
class Gate:
    """One check: a command whose exit code is 0 if it passes. It runs at the root of the checkout."""

    title: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


def own(name: str, *arguments: str) -> list[str]:
    """The command of a gate that is a module of this folder."""
    return [sys.executable, "-m", f"{COLLECTION}.extensions.dev.{name}", *arguments]


GATES = [
    Gate("ruff check", ["ruff", "check"]),
    Gate("ruff format", ["ruff", "format", "--check"]),
    Gate(
        f"mypy of {' and '.join(TYPED)}",
        ["mypy", *(f"--package={COLLECTION}.{folder.replace('/', '.')}" for folder in TYPED)],
        {"MYPYPATH": str(COLLECTIONS)},
    ),
    Gate("import-linter", ["lint-imports", "--no-cache"]),
    Gate("yamllint", ["yamllint", "--strict", "."]),
    Gate("ansible-lint", ["ansible-lint"]),
    Gate(f"Schema of {len(RULEBOOKS)} rulebooks", own("rulebooks", *RULEBOOKS)),
    Gate("antsibull-docs", ["antsibull-docs", "lint-collection-docs", "--plugin-docs", "--skip-rstcheck", "."]),
    Gate("HTML pages", own("docsite")),
    Gate("antsibull-changelog", ["antsibull-changelog", "lint"]),
    Gate("go vet", own("govet")),
]
SLOWEST = Gate("ansible-test sanity", own("sanity"))


def main() -> int:
    with ThreadPoolExecutor(1) as beside:
        slowest = beside.submit(run, SLOWEST)
        results = {gate.title: failure(gate.title, partial(run, gate)) for gate in GATES}
        results[SLOWEST.title] = failure(SLOWEST.title, slowest.result)
    failed = {title: output for title, output in results.items() if output is not None}
    for title, output in failed.items():
        heading(f"✘ {title}")
        print(output, end="")
    return 1 if failed else 0


def run(gate: Gate) -> None:
    environment = os.environ | {"NO_COLOR": "1"} | gate.environment
    subprocess.run(gate.command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)


def failure(title: str, result: Callable[[], None]) -> str | None:
    """The output of a gate, if it failed."""
    try:
        with stage(title):
            result()
    except subprocess.CalledProcessError as error:
        return str(error.stdout)
    return None


if __name__ == "__main__":
    run_command(main)
