# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The process of a playbook run, as one of its workers knows it: a handle (pidfd), which never means another process.

A worker opens the handle before it takes a lock. The id of the parent alone is not enough: when the run is killed, its workers live on
as children of another process, whose id would then pass for that of the run.
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


class RunEnded(KubeError):
    """The run of this worker has ended, so the worker takes no lock any more."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"The playbook run with the process id {pid} has ended; this task takes no lock for it.")


class RunProcess:
    """A run. `handle` becomes readable when it ends."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self.handle = os.pidfd_open(pid)
        except ProcessLookupError:
            raise RunEnded(pid) from None
        except (OSError, AttributeError) as error:
            raise KubeError(f"The process {pid} of this run cannot be watched ({error}): run Ansible on Linux 5.3 or later.") from error
        weakref.finalize(self, os.close, self.handle)

    @classmethod
    def of_worker(cls) -> RunProcess:
        """The run that this process is a worker of; RunEnded where that has ended, also before this call."""
        parent = multiprocessing.parent_process()
        # Only a forked worker knows its parent as it was at its start.
        pid = parent.pid if parent and parent.pid else os.getppid()
        run = cls(pid)
        if os.getppid() != pid:
            # It ended before the handle was opened, which may be one on a later process with the same id.
            raise RunEnded(pid)
        return run

    def has_ended(self) -> bool:
        watched = select.poll()
        watched.register(self.handle, select.POLLIN)
        return bool(watched.poll(0))

    def require(self) -> None:
        """RunEnded unless the run lives."""
        if self.has_ended():
            raise RunEnded(self.pid)


def run_identity(run: int, part: str = "") -> str:
    """A holder identity that is the same in every task of the run `run` and unique, also when its process id is used again.

    `part` distinguishes holders within one run.
    """
    # Of the fields after the name in brackets the 20th is the start time, in ticks since boot.
    try:
        started = Path(f"/proc/{run}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except OSError:
        raise RunEnded(run) from None
    whole = json.dumps([socket.gethostname(), boot_id(), run, started, part])
    return f"local-{run}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
