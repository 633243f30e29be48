# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A separate process that renews the locks of one playbook run for exactly as long as the run's process lives.

A task cannot do it: it ends long before the run does. The process gets everything it needs on its standard input, never on its command
line, and watches the run by a pidfd, which can never mean another process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..common.third_party import urllib3
from ..kube.client import TRIES, Kube
from ..kube.errors import KubeError
from .lease import Lock, LockLost, renew

COLLECTIONS = Path(__file__).absolute().parents[6]


def start(options: Mapping[str, Any], locks: Sequence[Lock], run: int) -> subprocess.Popen[bytes]:
    """Renew `locks` over the connection of `options` until the process `run` ends."""
    path = os.pathsep.join([str(COLLECTIONS), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    process = subprocess.Popen(
        # -P: no file in the working directory of the run is imported as a module.
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ) | {"PYTHONPATH": path},
        # Signals to the terminal of the run are not for it: it ends with the run.
        start_new_session=True,
    )
    work = {"options": dict(options), "locks": [lock.as_dict() for lock in locks], "run": run}
    if process.stdin:
        with process.stdin as pipe:
            pipe.write(json.dumps(work).encode())
    return process


def run_identity(run: int, part: str = "") -> str:
    """A holder identity that is the same in every task of the run `run` and unique, also when its process id is used again.

    `part` distinguishes holders within one run.
    """
    # Of the fields after the name in brackets the 20th is the start time, in ticks since boot.
    started = Path(f"/proc/{run}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    machine = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    whole = json.dumps([socket.gethostname(), machine, run, started, part])
    return f"local-{run}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def renewal_interval(locks: Sequence[Lock]) -> float:
    return min(lock.duration for lock in locks) / 3


def keep(kube: Kube, locks: Sequence[Lock], run_handle: int) -> None:
    """Renew every third of the duration until the run has ended or no lock is held any more."""
    held = list(locks)
    watched = select.poll()
    watched.register(run_handle, select.POLLIN)
    interval = renewal_interval(held)
    due = time.monotonic() + interval
    while held:
        if watched.poll(max(0.0, due - time.monotonic()) * 1000):
            return
        due = time.monotonic() + interval
        results = kube.in_parallel(lambda lock: renew(kube, lock), held)
        # An unreachable server is asked again next time: the lock is held until the Lease expires.
        kept = [lock if isinstance(result, KubeError) else result for lock, result in zip(held, results, strict=True)]
        lost = [isinstance(result, LockLost) for result in results]
        held = [lock for lock, gone in zip(kept, lost, strict=True) if not gone]


def main() -> None:
    work = json.loads(sys.stdin.buffer.read())
    try:
        handle = os.pidfd_open(work["run"])
    except ProcessLookupError:
        return
    fields = {field.name for field in dataclasses.fields(Lock)}
    locks = [Lock(**{name: value for name, value in entry.items() if name in fields}) for entry in work["locks"]]
    # All tries of a hanging request together end about when the next renewal is due, before the Lease expires.
    interval = renewal_interval(locks)
    keep(Kube.connect(work["options"], urllib3.Timeout(connect=interval / TRIES, read=interval)), locks, handle)


if __name__ == "__main__":
    main()
