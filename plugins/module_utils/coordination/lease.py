# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lease of a workload: the lock object says which holder leads, and is only replaced while it is unchanged.

Assumption about clocks: they run at about the same speed. Times of two machines are never compared.
- A watcher takes the lease over when it has observed the same ETag for a whole ttl, the holder's ttl, on its own clock.
- The leader stops acting a third of the ttl earlier, counted from before its last successful write was sent.

A term that is over stays over: the next term has a new epoch, also for the same holder. The lock object also has the
deadline of the term, on the clock of the leader's machine, for the next process of the same holder on that machine
only. Releasing a lock clears its holder and keeps its epoch. A lock that was deleted by hand is restored with the epoch
of the state, and must then expire.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..common.clock import boot_id as this_boot_id
from ..common.clock import boottime, utc_now
from ..s3.errors import BadOptions, Fenced, NoSuchKey, PreconditionFailed
from ..s3.store import ObjectStore
from .documents import Content, Document, DocumentStore, WorkloadRef, required_field

TTL = 30.0
MIN_TTL = 3.0
RESTORED = "(restored)"


@dataclass(frozen=True)
class LockRecord:
    """The content of the lock object. `holder` is empty while there is no leader.

    `deadline` is when the holder must stop acting, on the clock of the boot `boot_id`, as known when it wrote this.
    """

    holder: str = ""
    instance: str = ""
    epoch: int = 0
    ttl: float = TTL
    acquired_at: str = ""
    boot_id: str = ""
    deadline: float = 0.0

    @property
    def held(self) -> bool:
        return bool(self.holder)

    def content(self) -> Content:
        return dict(vars(self))


@dataclass(frozen=True)
class Term:
    """An uninterrupted time of leading: its epoch, the lock as last written, and when to stop acting, on our clock."""

    epoch: int
    document: Document
    deadline: float


def _serialized(step: Callable[[Lease], bool]) -> Callable[[Lease], bool]:
    @functools.wraps(step)
    def with_mutex(lease: Lease) -> bool:
        with lease.mutex:
            return step(lease)

    return with_mutex


class Lease:
    """One contender for the lease of one workload.

    `instance` is unique to a process, unless a later process of the same holder is to resume its term. `boot_id` says
    whose clock `clock` is. Threads may share a lease: only one at a time writes.
    """

    def __init__(
        self,
        store: ObjectStore,
        workload: WorkloadRef,
        holder: str,
        instance: str,
        ttl: float = TTL,
        clock: Callable[[], float] = boottime,
        boot_id: str | None = None,
    ) -> None:
        if ttl < MIN_TTL:
            raise BadOptions(f"ttl is {ttl:g}: set at least {MIN_TTL:g} seconds.")
        if not holder:
            raise BadOptions("holder is empty: set a name. An empty holder means that the lease is free.")
        self.workload, self.holder, self.instance, self.ttl = workload, holder, instance, float(ttl)
        self.boot_id = this_boot_id() if boot_id is None else boot_id
        self.mutex = threading.RLock()
        self._documents = DocumentStore(store, workload.identity())
        self._key = workload.key("lock")
        self._clock = clock
        self._observed: Document | None = None
        self._observed_record: LockRecord | None = None
        self._observed_at: float | None = None
        self._acquired_at = ""
        self._term: Term | None = None
        self._last_epoch = 0

    @property
    def renew_interval(self) -> float:
        return self.ttl / 2

    @property
    def epoch(self) -> int:
        """The epoch of the term, 0 without a term."""
        return self._term.epoch if self._term else 0

    def acting_seconds(self) -> float:
        """For how long the leader may act from now; 0 or less if it may not."""
        return self._term.deadline - self._clock() if self._term else 0.0

    def renewal_in(self) -> float:
        """Seconds until the next renewal. Like the deadline, it counts from when the last write was sent."""
        return self.acting_seconds() - (self._deadline(0.0) - self.renew_interval)

    def acting(self) -> bool:
        """Whether work may start now."""
        return self.acting_seconds() > 0

    def observe(self) -> LockRecord | None:
        """Read the lock, and remember since when it is unchanged."""
        found = self._documents.read(self._key, self._observed)
        if found is not self._observed or self._observed_at is None:
            # The time of the answer: the object is at least that old, so the lease never expires too early.
            self._observed_record = parse_lock(self._key, found) if found else None
            self._observed, self._observed_at = found, self._clock()
        return self._observed_record

    def expires_in(self) -> float:
        """Seconds until the observed lease can be taken over, if it stays unchanged."""
        ttl = self._observed_record.ttl if self._observed_record else self.ttl
        return ttl - (self._clock() - self._observed_at) if self._observed_at is not None else ttl

    @_serialized
    def try_acquire(self) -> bool:
        """Acquire the lease if it is free or has expired. Call it repeatedly: only time shows that a holder is dead."""
        if self.acting():
            return True
        lock = self.observe()
        if lock is None:
            last = self._state_epoch()
            return self._restore(last) if last else self._acquire(1)
        # A lock of our own instance is from a write that seemed lost, or from an earlier process. No process acts on
        # it.
        free = not lock.held or lock.instance == self.instance or self.expires_in() <= 0
        # A restored lock has the epoch that the state had then. Its leader may have sealed a later epoch since.
        last = max(lock.epoch, self._state_epoch()) if free and lock.holder == RESTORED else lock.epoch
        return free and self._acquire(last + 1)

    @_serialized
    def renew(self) -> bool:
        """Extend the term by another ttl. False if the term is over; after an error the outcome is open, so retry."""
        if not self._term or not self.acting():
            self._term = None
            return False
        term, sent = self._term, self._clock()
        # The lock gets the old deadline: this renewal may arrive after the term is over.
        document = self._swap(term.document, self._record(term.epoch, term.deadline))
        # An answer after the deadline is too late: the work has already stopped.
        self._term = replace(term, document=document, deadline=self._deadline(sent)) if document and self.acting() else None
        return self.acting()

    @_serialized
    def resume(self) -> bool:
        """Continue the term of an earlier process of the same instance on this machine, if it is not over.

        The caller renews it next. On another machine, or after a reboot, the deadline in the lock has no meaning: the
        term counts as over.
        """
        lock = self.observe()
        if lock and self._observed and lock.instance == self.instance and self.boot_id and lock.boot_id == self.boot_id:
            self._acquired_at, self._term = lock.acquired_at, Term(lock.epoch, self._observed, lock.deadline)
        return self.acting()

    @_serialized
    def release(self) -> bool:
        """Stop acting, then clear the holder; the epoch stays. False if another instance holds the lease.

        It also releases a lease that an earlier process of the same instance acquired.
        """
        term, self._term = self._term, None
        if term:
            return self._swap(term.document, LockRecord(epoch=term.epoch, ttl=self.ttl)) is not None
        lock = self.observe()
        if not lock or not self._observed or lock.instance != self.instance:
            return False
        return self._swap(self._observed, LockRecord(epoch=lock.epoch, ttl=self.ttl)) is not None

    def _acquire(self, epoch: int) -> bool:
        # A lock that was deleted and restored may have an older epoch than we do.
        self._last_epoch = epoch = max(epoch, self._last_epoch + 1)
        self._acquired_at, sent = utc_now(), self._clock()
        content = self._record(epoch, self._deadline(sent)).content()
        try:
            document = self._documents.write(self._key, content, self._observed)
        except (PreconditionFailed, NoSuchKey):
            return False
        self._term = Term(epoch, document, self._deadline(sent))
        return self.acting()

    def _restore(self, epoch: int) -> bool:
        """Restore a deleted lock as one that must expire, because its holder may still act. This acquires nothing."""
        with contextlib.suppress(PreconditionFailed):
            self._documents.write(self._key, LockRecord(RESTORED, "", epoch, self.ttl, utc_now()).content(), None)
        return False

    def _swap(self, known: Document, record: LockRecord) -> Document | None:
        """Replace `known`, or an earlier write of ours that arrived late. None if the lease is no longer ours."""
        while True:
            try:
                return self._documents.write(self._key, record.content(), known)
            except (PreconditionFailed, NoSuchKey):
                found = self._documents.read(self._key)
                if found is None or not self._is_ours(parse_lock(self._key, found), record.epoch):
                    return None
                known = found

    def _is_ours(self, found: LockRecord, epoch: int) -> bool:
        return found.instance == self.instance and found.epoch == epoch

    def _record(self, epoch: int, deadline: float) -> LockRecord:
        return LockRecord(self.holder, self.instance, epoch, self.ttl, self._acquired_at, self.boot_id, deadline)

    def _deadline(self, sent: float) -> float:
        return sent + self.ttl - self.ttl / 3

    def _state_epoch(self) -> int:
        state = self._documents.read(self.workload.key("state"))
        return int(required_field(state, self.workload.key("state"), "epoch", int)) if state else 0


def parse_lock(key: str, document: Document) -> LockRecord:
    return LockRecord(
        holder=required_field(document, key, "holder", str),
        instance=required_field(document, key, "instance", str),
        epoch=required_field(document, key, "epoch", int),
        ttl=float(required_field(document, key, "ttl", (int, float))),
        acquired_at=str(document.content.get("acquired_at", "")),
        boot_id=str(document.content.get("boot_id", "")),
        deadline=float(required_field(document, key, "deadline", (int, float))) if "deadline" in document.content else 0.0,
    )


def read_lock(documents: DocumentStore, workload: WorkloadRef) -> LockRecord:
    """The lock of a workload. A lock that was never acquired has epoch 0."""
    document = documents.read(workload.key("lock"))
    return parse_lock(workload.key("lock"), document) if document else LockRecord()


def end_term(documents: DocumentStore, workload: WorkloadRef, epoch: int, last: int) -> None:
    """Release the lease of the leader under `epoch` for it, so that the next epoch is greater than `last`. Fenced if it leads no more."""
    verify_epoch(documents, workload, epoch)
    key = workload.key("lock")
    document = documents.read(key)
    lock = parse_lock(key, document) if document else LockRecord()
    if lock.epoch == epoch and lock.held:
        with contextlib.suppress(PreconditionFailed, NoSuchKey):  # a renewal: the next reconcile tries again
            documents.write(key, LockRecord(epoch=max(epoch, last), ttl=lock.ttl).content(), document)


def verify_epoch(documents: DocumentStore, workload: WorkloadRef, epoch: int) -> LockRecord:
    """Fenced unless `epoch` is the epoch of the current leader. Each task that acts for a leader calls this first."""
    lock = read_lock(documents, workload)
    if lock.epoch != epoch or not lock.held:
        current = f"{lock.holder} leads under epoch {lock.epoch}" if lock.held else f"no holder leads; the last epoch was {lock.epoch}"
        raise Fenced(f"Epoch {epoch} of {workload} is not the current one: {current}. Nothing was written.")
    return lock
