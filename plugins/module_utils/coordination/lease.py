# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lease: who leads, by one object that is only ever written if it is still what the writer has seen.

What it assumes of clocks: that they run at about the same speed, and nothing else. Nobody compares times of two machines.
- A watcher takes the lease over when it has seen the same ETag for a whole ttl, the holder's ttl, on a clock of its own.
- The leader stops acting a third of the ttl before anyone could, counted from before its last successful write was sent.

A term, once over, stays over: whoever leads again does so under a new epoch. Until when it lasts for sure stands in the lock as well, on
the clock of the leader's machine, for its next process there and nobody else. A released lock is emptied and keeps its epoch. One that
somebody has deleted is put back with the epoch of the state, and then must expire.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..s3.errors import BadOptions, Fenced, Missing, PreconditionFailed
from ..s3.store import ObjectStore
from .documents import Content, Document, Documents, Place, awake, field, now
from .documents import machine as this_machine

TTL = 30.0
SHORTEST = 3.0
RESTORED = "(restored)"


@dataclass(frozen=True)
class Lock:
    """What the lock object says. `holder` is empty when nobody leads.

    `stops` is until when, on the clock of `machine`, the holder was sure to act when it wrote this.
    """

    holder: str = ""
    instance: str = ""
    epoch: int = 0
    ttl: float = TTL
    acquired: str = ""
    machine: str = ""
    stops: float = 0.0

    @property
    def held(self) -> bool:
        return bool(self.holder)

    def content(self) -> Content:
        return dict(vars(self))


@dataclass(frozen=True)
class Term:
    """An uninterrupted time of leading: the lock as it was written last, and when, on our clock, to stop acting."""

    epoch: int
    document: Document
    deadline: float


def _alone(step: Callable[[Lease], bool]) -> Callable[[Lease], bool]:
    @functools.wraps(step)
    def one_at_a_time(lease: Lease) -> bool:
        with lease.one_at_a_time:
            return step(lease)

    return one_at_a_time


class Lease:
    """One contender for one place. `instance` is what no other contender has, nor the same one after a restart, unless it resumes.

    `machine` is whose clock `clock` is. Threads may share a lease: what writes is done by one at a time.
    """

    def __init__(
        self,
        store: ObjectStore,
        place: Place,
        holder: str,
        instance: str,
        ttl: float = TTL,
        clock: Callable[[], float] = awake,
        machine: str | None = None,
    ) -> None:
        if ttl < SHORTEST:
            raise BadOptions(f"ttl is {ttl:g}; a lease lasts {SHORTEST:g} seconds at least.")
        if not holder:
            raise BadOptions("holder is empty; an empty holder means that nobody leads.")
        self.place, self.holder, self.instance, self.ttl = place, holder, instance, float(ttl)
        self._documents = Documents(store, place.identity())
        self._key = place.key("lock")
        self.machine = this_machine() if machine is None else machine
        self._clock = clock
        self._seen: Document | None = None
        self._seen_lock: Lock | None = None
        self._seen_since: float | None = None
        self._acquired = ""
        self._term: Term | None = None
        self._last_epoch = 0
        self.one_at_a_time = threading.RLock()

    @property
    def renew_every(self) -> float:
        return self.ttl / 2

    @property
    def epoch(self) -> int:
        """The epoch of the term, 0 if there is none."""
        return self._term.epoch if self._term else 0

    def acting_seconds(self) -> float:
        """For how long the leader may act from now; 0 or less if it may not."""
        return self._term.deadline - self._clock() if self._term else 0.0

    def renewal_in(self) -> float:
        """In how many seconds to renew. It counts from when the last write was sent, as the deadline does, however long its answer took."""
        return self.acting_seconds() - (self._deadline(0.0) - self.renew_every)

    def acting(self) -> bool:
        """Whether work may be started now."""
        return self.acting_seconds() > 0

    def look(self) -> Lock | None:
        """What the lock says now. How long it has said so is remembered."""
        found = self._documents.read(self._key, self._seen)
        if found is not self._seen or self._seen_since is None:
            # The answer's time: the object is at least that old, so nothing expires early.
            self._seen_lock = lock_of(self._key, found) if found else None
            self._seen, self._seen_since = found, self._clock()
        return self._seen_lock

    def expires_in(self) -> float:
        """In how many seconds what was seen last could be taken over, if it stays the same."""
        lasts = self._seen_lock.ttl if self._seen_lock else self.ttl
        return lasts - (self._clock() - self._seen_since) if self._seen_since is not None else lasts

    @_alone
    def attempt(self) -> bool:
        """Take the lead if that is allowed now. Call it again and again: only time shows that a holder is gone."""
        if self.acting():
            return True
        lock = self.look()
        if lock is None:
            last = self._epoch_of_state()
            return self._restore(last) if last else self._take(1)
        # One's own is what an earlier write left that was thought to be lost, or an earlier process; nobody acts under it.
        free = not lock.held or lock.instance == self.instance or self.expires_in() <= 0
        # What was put back has the epoch of the state at that time; whoever led then may have sealed a later one since.
        last = max(lock.epoch, self._epoch_of_state()) if free and lock.holder == RESTORED else lock.epoch
        return free and self._take(last + 1)

    @_alone
    def renew(self) -> bool:
        """Lead for another ttl. False if the term is over; an error means that it is not known yet, so try again."""
        if not self._term or not self.acting():
            self._term = None
            return False
        term, sent = self._term, self._clock()
        # What this gains is not written down, because it is not known yet: it may arrive when the term is long over.
        document = self._swap(term.document, self._lock(term.epoch, term.deadline))
        # An answer that comes after the deadline is too late: whoever acted has been told to stop.
        self._term = replace(term, document=document, deadline=self._deadline(sent)) if document and self.acting() else None
        return self.acting()

    @_alone
    def resume(self) -> bool:
        """Go on with the term that an earlier process of the same instance has begun on this machine, if it is not over; then renew it.

        To another machine, or after a restart of this one, the deadline in the lock says nothing: the term counts as over.
        """
        lock = self.look()
        if lock and self._seen and lock.instance == self.instance and self.machine and lock.machine == self.machine:
            self._acquired, self._term = lock.acquired, Term(lock.epoch, self._seen, lock.stops)
        return self.acting()

    @_alone
    def release(self) -> bool:
        """Stop acting, then empty the lock for the next; its epoch stays. False if it is not ours.

        Ours is also what an earlier process of the same instance has taken.
        """
        term, self._term = self._term, None
        if term:
            return self._swap(term.document, Lock(epoch=term.epoch, ttl=self.ttl)) is not None
        lock = self.look()
        if not lock or not self._seen or lock.instance != self.instance:
            return False
        return self._swap(self._seen, Lock(epoch=lock.epoch, ttl=self.ttl)) is not None

    def _take(self, epoch: int) -> bool:
        # A lock that was deleted and put back may know less than we do.
        self._last_epoch = epoch = max(epoch, self._last_epoch + 1)
        self._acquired, sent = now(), self._clock()
        content = self._lock(epoch, self._deadline(sent)).content()
        try:
            document = self._documents.write(self._key, content, self._seen)
        except (PreconditionFailed, Missing):
            return False
        self._term = Term(epoch, document, self._deadline(sent))
        return self.acting()

    def _restore(self, epoch: int) -> bool:
        """Put back a lock that somebody has deleted, as one that must expire: its holder may act still. Nobody leads by that."""
        with contextlib.suppress(PreconditionFailed):
            self._documents.write(self._key, Lock(RESTORED, "", epoch, self.ttl, now()).content(), None)
        return False

    def _swap(self, known: Document, lock: Lock) -> Document | None:
        """Write our lock over `known`, or over an earlier write of ours that came late. None if it is not ours any more."""
        while True:
            try:
                return self._documents.write(self._key, lock.content(), known)
            except (PreconditionFailed, Missing):
                found = self._documents.read(self._key)
                if found is None or not self._ours(lock_of(self._key, found), lock.epoch):
                    return None
                known = found

    def _ours(self, found: Lock, epoch: int) -> bool:
        return found.instance == self.instance and found.epoch == epoch

    def _lock(self, epoch: int, stops: float) -> Lock:
        return Lock(self.holder, self.instance, epoch, self.ttl, self._acquired, self.machine, stops)

    def _deadline(self, sent: float) -> float:
        return sent + self.ttl - self.ttl / 3

    def _epoch_of_state(self) -> int:
        state = self._documents.read(self.place.key("state"))
        return int(field(state, self.place.key("state"), "epoch", int)) if state else 0


def lock_of(key: str, document: Document) -> Lock:
    return Lock(
        holder=field(document, key, "holder", str),
        instance=field(document, key, "instance", str),
        epoch=field(document, key, "epoch", int),
        ttl=float(field(document, key, "ttl", (int, float))),
        acquired=str(document.content.get("acquired", "")),
        machine=str(document.content.get("machine", "")),
        stops=float(field(document, key, "stops", (int, float))) if "stops" in document.content else 0.0,
    )


def read_lock(documents: Documents, place: Place) -> Lock:
    """What the lock of a place says; one that was never taken has the epoch 0."""
    document = documents.read(place.key("lock"))
    return lock_of(place.key("lock"), document) if document else Lock()


def verify(documents: Documents, place: Place, epoch: int) -> Lock:
    """Fenced unless `epoch` is that of who leads now. Whoever acts for a leader asks this first."""
    lock = read_lock(documents, place)
    if lock.epoch != epoch or not lock.held:
        leads = f"{lock.holder} leads under epoch {lock.epoch}" if lock.held else f"nobody leads; the last epoch was {lock.epoch}"
        raise Fenced(f"Epoch {epoch} of {place} is not the current one: {leads}. Nothing was written.")
    return lock
