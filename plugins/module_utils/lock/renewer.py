# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Renews the locks of a playbook run for exactly as long as the run's process lives: from a separate process, or within one task.

A task ends long before its run does, so it starts a process: before it acquires a lock, so that a run without a renewer acquires none. The
process gets locks and credentials on its standard input, never on its command line, and confirms each lock on its standard output. It
inherits the handle on the run that the task opened, and ends when the run ends, the rules engine that started it ends, its time is up, or
no lock is left: a run that hangs must not hold orders, and a slot of the event source, for ever. Where the locks are those of the whole
run, it ends the run as well, which can write nothing any more.

A lock of a single task is renewed by a thread of that task.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..common.clock import boottime
from ..common.third_party import urllib3
from ..kube.client import TRIES, Kube
from ..kube.errors import KubeError
from .lease import Lock, LockExpired, LockLost, renew, verify
from .run_process import RunProcess

RUN_SECONDS = 7200.0  # of a run that sets no other time
COLLECTIONS = Path(__file__).absolute().parents[6]
START_SECONDS = 30.0  # within which the process must confirm a lock
WAKE_SECONDS = 2.0  # a timer does not count time asleep: so often the clock is read that does
CONFIRMED = b"\n"


class RenewerFailed(KubeError):
    """The process that renews the locks cannot be started, so the run keeps no lock."""

    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(f"The locks of this run cannot be renewed: {reason}. They were released; check the machine that runs Ansible.")


class Renewals:
    """The locks that are held, and when their renewal is due: every third of their duration."""

    def __init__(self, kube: Kube, clock: Callable[[], float] = boottime) -> None:
        self._kube = kube
        self._clock = clock
        self._held: list[Lock] = []
        self._due = 0.0

    def add(self, lock: Lock) -> None:
        self._due = min(self._due, self._next()) if self._held else self._clock() + interval(lock)
        self._held.append(lock)

    def due_in(self) -> float | None:
        """For how many seconds to wait now at most; None without a lock."""
        return min(WAKE_SECONDS, max(0.0, self._due - self._clock())) if self._held else None

    def keep(self, wait: Callable[[float], bool]) -> None:
        """Renew until no lock is left, or until `wait`, which waits for so many seconds, returns False."""
        while (seconds := self.due_in()) is not None and wait(seconds):
            self.renew_due()

    def renew_due(self) -> None:
        """Renew all locks if that is due. An unreachable server is asked again next time; a lost lock is forgotten."""
        if not self._held or self._clock() < self._due:
            return
        self._due = self._next()
        results = self._kube.in_parallel(lambda lock: renew(self._kube, lock), self._held)
        answers = zip(self._held, results, strict=True)
        self._held = [lock if isinstance(result, KubeError) else result for lock, result in answers if not isinstance(result, LockLost)]

    def any_held(self) -> bool:
        """Whether the run has not released its locks, nor lost them to another run. One that the server does not show counts as held."""
        results = self._kube.in_parallel(lambda lock: verify(self._kube, lock), self._held)
        return not all(isinstance(result, LockLost) and not isinstance(result, LockExpired) for result in results)

    def _next(self) -> float:
        return self._clock() + min(map(interval, self._held))


def interval(lock: Lock) -> float:
    return lock.duration / 3


class Renewer:
    """The renewing process, as the task sees that starts it. Threads may share it."""

    def __init__(self, options: Mapping[str, Any], run: RunProcess, seconds: float = RUN_SECONDS, *, ends_run: bool = False) -> None:
        """Locks are renewed over the connection of `options`, for `seconds` at most; then `ends_run` ends a run that still has one."""
        self.run = run
        self._unconfirmed = 0
        self._mutex = threading.Lock()
        path = os.pathsep.join([str(COLLECTIONS), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        try:
            self.process = subprocess.Popen(
                # -P: no file in the working directory of the run is imported as a module.
                [sys.executable, "-P", "-m", __name__, *map(str, run.handles)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=run.handles,
                env=dict(os.environ) | {"PYTHONPATH": path},
                # Signals to the terminal of the run are not for it: it ends with the run.
                start_new_session=True,
            )
        except OSError as error:
            raise RenewerFailed(f"{sys.executable} does not start ({error.strerror})") from error
        self._send({"options": dict(options), "seconds": seconds, "ends_run": ends_run})

    def __enter__(self) -> Renewer:
        return self

    def __exit__(self, *_error: object) -> None:
        """No lock follows. The process continues with those that it has, or ends."""
        for pipe in filter(None, (self.process.stdin, self.process.stdout)):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def keep(self, lock: Lock) -> None:
        """Renew the lock from now on; RunEnded where the run has ended since the lock was requested."""
        self.run.require()
        with self._mutex:
            self._send(lock.as_dict())
            self._unconfirmed += 1

    def keep_all(self, locks: Iterable[Lock]) -> None:
        """Renew these locks, and wait until the process has them."""
        for lock in locks:
            self.keep(lock)
        self.confirm()

    def confirm(self) -> None:
        """Wait until the process has all the locks; RenewerFailed where it has not."""
        deadline = boottime() + START_SECONDS
        with self._mutex:
            while self._unconfirmed and self.process.stdout:
                ready, _write, _error = select.select([self.process.stdout], [], [], max(0.0, deadline - boottime()))
                confirmed = os.read(self.process.stdout.fileno(), self._unconfirmed) if ready else b""
                if not confirmed:
                    self.process.kill()
                    raise RenewerFailed(f"its process ended with status {self.process.wait()}" if ready else "its process does not answer")
                self._unconfirmed -= len(confirmed)

    def _send(self, content: Mapping[str, Any]) -> None:
        try:
            if self.process.stdin:
                self.process.stdin.write(json.dumps(content).encode() + b"\n")
                self.process.stdin.flush()
        except BrokenPipeError:
            raise RenewerFailed(f"its process ended with status {self.process.wait()}") from None


@contextlib.contextmanager
def renewed(kube: Kube, lock: Lock, run: RunProcess) -> Iterator[None]:
    """Renew a lock within the context, while the run lives."""
    stop, stopped = os.pipe()
    watched = select.poll()
    for handle in (stop, *run.handles):
        watched.register(handle, select.POLLIN | select.POLLHUP)
    renewals = Renewals(kube)
    renewals.add(lock)
    thread = threading.Thread(target=renewals.keep, args=(lambda seconds: not watched.poll(seconds * 1000),), daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(stopped)
        thread.join()
        os.close(stop)


class Inbox:
    """What the task sends, line by line, and the end of the run or of its engine."""

    def __init__(self, processes: Sequence[int], pipe: int) -> None:
        self.is_open = True
        self._processes, self._pipe = processes, pipe
        self._rest = b""
        self._watched = select.poll()
        for handle in (*processes, pipe):
            self._watched.register(handle, select.POLLIN)

    def receive(self, seconds: float) -> list[bytes] | None:
        """The lines that arrive within so many seconds; None once a process has ended."""
        ready = [handle for handle, _event in self._watched.poll(seconds * 1000)]
        if not set(self._processes).isdisjoint(ready):
            return None
        if self._pipe not in ready:
            return []
        data = os.read(self._pipe, 65536)
        if not data:
            self.is_open = False
            self._watched.unregister(self._pipe)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines


def main() -> None:
    processes = [int(handle) for handle in sys.argv[1:]]
    inbox = Inbox(processes, sys.stdin.fileno())
    options: dict[str, Any] | None = None
    renewals: Renewals | None = None
    ends, ends_run = float("inf"), False
    while boottime() < ends:
        due_in = renewals.due_in() if renewals else None
        if due_in is None and not inbox.is_open:
            return
        lines = inbox.receive(WAKE_SECONDS if due_in is None else due_in)
        if lines is None:
            break
        for content in map(json.loads, lines):
            if options is None:
                options, ends, ends_run = content["options"], boottime() + content["seconds"], content["ends_run"]
                continue
            lock = Lock(**content)
            renewals = renewals or Renewals(Kube.connect(options, _timeout(lock)))
            renewals.add(lock)
            with contextlib.suppress(BrokenPipeError):  # the task was killed, and its run was not
                os.write(sys.stdout.fileno(), CONFIRMED)
        if renewals:
            renewals.renew_due()
    if ends_run and renewals and renewals.any_held():
        with contextlib.suppress(ProcessLookupError):  # it may be what has ended
            signal.pidfd_send_signal(processes[0], signal.SIGTERM)


def _timeout(lock: Lock) -> urllib3.Timeout:
    """All tries of a hanging request together end about when the next renewal is due, before the Lease expires."""
    return urllib3.Timeout(connect=interval(lock) / TRIES, read=interval(lock))


if __name__ == "__main__":
    main()
