"""A process of ansible-rulebook for a demo: its start and its end, and what is new in its log. Its files are in a folder of its own.

Its runs do not outlive it: `stop` ends them too, and the kernel ends the engine with the process that started it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..sandbox.launcher import die_with_me
from ..sandbox.processes import tail, working_in, write_json

ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("OPENFLEET_SANDBOX", ROOT / ".sandbox"))
PROGRAMS = Path(sys.executable).parent
GRACE_SECONDS = 15


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


class RulesEngine:
    """One engine, with its files and its log in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "engine.log"
        self._shown = 0
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, arguments: list[str], environment: dict[str, str]) -> None:
        """Start it, and do not wait until it is ready. An engine that was killed is started again."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                die_with_me([PROGRAMS / "ansible-rulebook", *arguments, "-v"]),
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the calling process, which stops the engine in order.
                start_new_session=True,
            )

    def stop(self) -> None:
        """End it, and the runs that remain of a killed one."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        while left := working_in(self.folder):  # one of them may be starting another
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End it as a lost machine does: it releases nothing."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def was_started(self) -> bool:
        return self._process is not None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log_tail(self) -> str:
        return tail(self._log)

    def new_lines(self) -> list[str]:
        """The lines of its log since the last call."""
        with open(self._log, "rb") as log:
            log.seek(self._shown)
            new = log.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._shown += len(whole)
        return whole.decode(errors="replace").splitlines()
