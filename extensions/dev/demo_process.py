"""A process that a demo starts, with its files and its log in a folder of its own: its start, its end, and what is new in its log.

What it has started does not outlive it: `stop` ends that too, and the kernel ends the process with the one that started it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ..sandbox.launcher import die_with_me
from ..sandbox.processes import tail, working_in

GRACE_SECONDS = 15


class DemoProcess:
    """One process in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "process.log"
        self._shown = 0
        self._process: subprocess.Popen[bytes] | None = None

    def execute(self, command: Sequence[str | os.PathLike[str]], environment: dict[str, str]) -> None:
        """Start it, and do not wait until it is ready. One that was killed is started again."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                die_with_me(command),
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the calling process, which stops this one in order.
                start_new_session=True,
            )

    def stop(self) -> None:
        """End it, and what remains of a killed one: the runs of a rules engine."""
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
    def pid(self) -> int:
        return self._process.pid if self._process else 0

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
