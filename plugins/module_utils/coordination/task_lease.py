# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A lease held by the tasks of a playbook.

Each task is a process of its own, so nothing renews the lease between tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..common.clock import boottime
from ..s3.errors import LeaseHeld
from ..s3.store import ObjectStore
from .documents import DocumentStore, WorkloadRef
from .lease import Lease, LockRecord, read_lock
from .term import begin_term

Check = Callable[[], None]
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class LeaseResult:
    """The lock after a task, or as it would be in check mode."""

    changed: bool
    lock: LockRecord
    acting_seconds: float = 0.0


class TaskLease:
    """The lease of one workload for one holder.

    `full_check` and `quick_check` raise if the store drops conditions on writes.
    """

    def __init__(
        self, store: ObjectStore, workload: WorkloadRef, holder: str, ttl: float, *, full_check: Check, quick_check: Check
    ) -> None:
        self._store = store
        self._full_check, self._quick_check = full_check, quick_check
        self._lease = Lease(store, workload, holder, holder, ttl)

    def read(self) -> LockRecord:
        workload = self._lease.workload
        return read_lock(DocumentStore(self._store, workload.identity()), workload)

    def acquire(self, wait_timeout: float) -> LeaseResult:
        """Renew the term of an earlier task, or begin a new term.

        LeaseHeld if another holder leads for all of `wait_timeout`.
        """
        renewed = self._renew()
        if not renewed:
            self._wait_and_acquire(wait_timeout)
        begin_term(self._store, self._lease)
        return LeaseResult(not renewed, self.read(), self._lease.acting_seconds())

    def preview_acquire(self, wait_timeout: float) -> LeaseResult:
        """What `acquire` would do. It assumes that a lease to wait for is free in time."""
        lock = self.read()
        if self._lease.resume():
            return LeaseResult(False, lock)
        self._refuse_without_wait(wait_timeout)
        return LeaseResult(True, LockRecord(self._lease.holder, self._lease.instance, lock.epoch + 1, self._lease.ttl))

    def release(self, check_mode: bool) -> LeaseResult:
        """Release the lease if this holder has it."""
        lock = self.read()
        ours = lock.instance == self._lease.instance
        if ours and not check_mode:
            self._quick_check()
            ours = self._lease.release()
        return LeaseResult(ours, LockRecord(epoch=lock.epoch, ttl=lock.ttl) if ours else lock)

    def _renew(self) -> bool:
        if not self._lease.resume():
            return False
        self._quick_check()
        # Twice: the second write stores the deadline that the first one gained, for the next task.
        return self._lease.renew() and self._lease.renew()

    def _wait_and_acquire(self, wait_timeout: float) -> None:
        self._refuse_without_wait(wait_timeout)
        self._full_check()
        deadline = boottime() + wait_timeout
        while not self._lease.try_acquire():
            lock = self._lease.observe()
            if boottime() >= deadline:
                raise _held(self._lease, lock)
            time.sleep(min(POLL_SECONDS, max(0.05, min(self._lease.expires_in(), deadline - boottime()))))

    def _refuse_without_wait(self, wait_timeout: float) -> None:
        """LeaseHeld if another holder has the lease and there is no time to wait until it expires."""
        lock = self._lease.observe()
        if lock and lock.held and lock.instance != self._lease.instance and wait_timeout <= 0:
            raise _held(self._lease, lock)


def _held(lease: Lease, lock: LockRecord | None) -> LeaseHeld:
    holder = f"{lock.holder} under epoch {lock.epoch}" if lock and lock.held else "another holder"
    ttl = f"{lock.ttl:g}" if lock else "ttl"
    return LeaseHeld(
        f"The lease of {lease.workload} is held by {holder}. It is free after a release, or {ttl} seconds after its last renewal:"
        " set a longer wait_timeout."
    )
