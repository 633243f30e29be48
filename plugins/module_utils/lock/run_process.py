# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The process of a playbook run, as one of its workers knows it: a handle (pidfd), which never means another process.

A worker opens the handle before it acquires a lock. The id of the parent alone is not enough: when the run is killed, its workers live on
as children of another process, whose id would then pass for that of the run.

A run that a rules engine on this machine has started ends with that engine: no process would receive what it reports, and a run whose
output is gone may hang for ever. The engine names itself in the environment of its runs. A job of Automation Platform has no such engine.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import select
import socket
import weakref
from pathlib import Path

from ..common.clock import boot_id
from ..kube.errors import KubeError

ENGINE = "OPENFLEET_CLUSTERS_ENGINE"  # in the environment of a run: the rules engine that started it


class RunEnded(KubeError):
    """The run of this worker has ended, so the worker acquires no lock any more."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"The playbook run with the process id {pid} has ended; this task acquires no lock for it.")


class EngineEnded(RunEnded):
    """The rules engine that started the run has ended, and the run is to end too."""

    def __init__(self, pid: int) -> None:
        KubeError.__init__(
            self, f"The rules engine with the process id {pid}, which started this run, has ended; this task acquires no lock."
        )


class RunProcess:
    """A run, and the `engine` that started it, by its identity. Each of the `handles` becomes readable when its process ends."""

    def __init__(self, pid: int, engine: str = "") -> None:
        self.pid = pid
        self.handle = _handle(pid)
        weakref.finalize(self, os.close, self.handle)
        self.handles: tuple[int, ...] = (self.handle,)
        self._engine, started, namespace = _parsed(engine)
        if not self._engine or namespace != _pid_namespace():  # an engine in another container has ids of its own
            return
        try:
            handle = _handle(self._engine)
        except RunEnded:
            raise EngineEnded(self._engine) from None
        weakref.finalize(self, os.close, handle)
        if _started(self._engine) != started:  # it is a later process with the same id
            raise EngineEnded(self._engine)
        self.handles = (self.handle, handle)

    @classmethod
    def of_worker(cls) -> RunProcess:
        """The run that this process is a worker of; RunEnded where that has ended, also before this call."""
        parent = multiprocessing.parent_process()
        # Only a forked worker knows its parent as it was at its start.
        pid = parent.pid if parent and parent.pid else os.getppid()
        run = cls(pid, os.environ.get(ENGINE, ""))
        if os.getppid() != pid:
            # It ended before the handle was opened, which may be one on a later process with the same id.
            raise RunEnded(pid)
        return run

    def require(self) -> None:
        """RunEnded unless the run lives, and the engine that started it."""
        watched = select.poll()
        for handle in self.handles:
            watched.register(handle, select.POLLIN)
        ended = [handle for handle, _event in watched.poll(0)]
        if self.handle in ended:
            raise RunEnded(self.pid)
        if ended:
            raise EngineEnded(self._engine)


def announce_engine() -> None:
    """Name this process, a rules engine, in the environment of the runs that it starts."""
    os.environ[ENGINE] = engine_identity(os.getpid())


def engine_identity(pid: int) -> str:
    return f"{pid} {_started(pid)} {_pid_namespace()}"


def run_identity(run: int, part: str = "") -> str:
    """A holder identity that is the same in every task of the run `run` and unique, also when its process id is used again.

    `part` distinguishes holders within one run.
    """
    started = _started(run)
    if not started:
        raise RunEnded(run)
    whole = json.dumps([socket.gethostname(), boot_id(), run, started, part])
    return f"local-{run}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _handle(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise RunEnded(pid) from None
    except (OSError, AttributeError) as error:
        raise KubeError(f"The process {pid} of this run cannot be watched ({error}): run Ansible on Linux 5.3 or later.") from error


def _started(pid: int) -> str:
    """When the process started, in ticks since boot; empty where it has ended."""
    try:
        # Of the fields after the name in brackets it is the 20th.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def _parsed(engine: str) -> tuple[int, str, str]:
    """The process id of an engine, its start time and its namespace of process ids; 0 where the run has none."""
    parts = engine.split()
    return (int(parts[0]), parts[1], parts[2]) if len(parts) == 3 and parts[0].isdecimal() else (0, "", "")
