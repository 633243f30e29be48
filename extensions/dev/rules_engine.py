"""A process of ansible-rulebook for a demo: its arguments, its environment, and its runs, which do not outlive it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from ..sandbox.processes import write_json
from .demo_process import DemoProcess

ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("OPENFLEET_SANDBOX", ROOT / ".sandbox"))
PROGRAMS = Path(sys.executable).parent


def engine_arguments(folder: Path, rulebook: str, variables: dict[str, Any]) -> list[str]:
    """The arguments of an engine that runs the rulebook with these variables. A file in the folder has them, with their secrets."""
    write_json(folder / "inventory.yml", {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}})
    write_json(folder / "variables.yml", variables)
    return ["-r", rulebook, "-i", str(folder / "inventory.yml"), "--vars", str(folder / "variables.yml")]


def engine_environment(folder: Path, **more: str) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",  # it finds collections by ansible-galaxy
        "TMPDIR": str(folder),
        "ANSIBLE_NOCOLOR": "1",
        **more,
    }


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does, so that it stops what it has started."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)


class RulesEngine(DemoProcess):
    """One engine, with its files and its log in `folder`."""

    def launch(self, arguments: list[str], environment: dict[str, str]) -> None:
        """Start it, and do not wait until it is ready. An engine that was killed is started again."""
        self.execute([PROGRAMS / "ansible-rulebook", *arguments, "-v"], environment)
