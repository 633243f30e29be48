"""Contenders for one place on a virtual clock, a store with S3's rules in memory, and every fault between them, all by a script of bytes.

The library runs as it is, each contender in a thread of its own, but only one at a time: who waits hands over to who is next in time. The
script decides for each request how long it takes and what becomes of it, so the same script is the same run.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import Documents, Place
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, verify
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import FIELDS, Decision, History, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import (
    Fenced,
    Missing,
    PreconditionFailed,
    S3Error,
    ServerError,
    Unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, Stored

PLACE = Place("orders", "demo")
LOCK, STATE, DECISION, HISTORY = (PLACE.key(part) for part in ("lock", "state", "decision", "history/"))
SECONDS = 180.0
# When nothing goes wrong any more, what has gone wrong shows within this time, or never.
CALM_SECONDS = 65.0
TIMEOUT = 4.5
POLL = 5.0
WRITES = 4
FAULTS = ("lost", "late", "dropped", "500", "500 done", "409", "412 done", "asleep before", "asleep after")


class Violation(AssertionError):
    """A promise was broken."""


class Over(BaseException):
    """The run has ended; threads that still wait are unwound by this."""


class MemoryBucket:
    """What is stored, by S3's rules. An ETag is the hash of the content, as it is on real stores."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    @staticmethod
    def etag(body: bytes) -> str:
        return hashlib.md5(body, usedforsecurity=False).hexdigest()

    def read(self, key: str, known: Stored | None = None) -> Stored | None:
        body = self.objects.get(key)
        if body is None:
            return None
        etag = self.etag(body)
        return known if known and known.etag == etag else Stored(body, etag)

    def write(self, key: str, body: bytes, match: str | None) -> str:
        there = self.objects.get(key)
        if match is None and there is not None:
            raise PreconditionFailed("412")
        if match is not None and there is None:
            raise Missing("404")
        if match is not None and there is not None and self.etag(there) != match:
            raise PreconditionFailed("412")
        self.objects[key] = body
        return self.etag(body)

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    def remove(self, key: str) -> None:
        self.objects.pop(key, None)


@dataclass(frozen=True)
class Rules:
    """What the contenders are made of. A test replaces one of these by one that breaks a rule."""

    bucket: type[MemoryBucket] = MemoryBucket
    store: type[ObjectStore] = ObjectStore
    documents: type[Documents] = Documents
    lease: type[Lease] = Lease
    states: type[StateStore] = StateStore
    history: type[History] = History


@dataclass(frozen=True)
class Story:
    """One run: what happens to the requests, how fast the clocks go, how long the leases last, whether somebody deletes the lock.

    `mortal` are leaders that are killed in every other step.
    """

    script: bytes
    calm: int
    speeds: tuple[float, ...]
    ttls: tuple[float, ...]
    deleted_at: float | None = None
    mortal: bool = False


class Watched(MemoryBucket):
    """Judges each write as it happens, with what nobody but the simulation knows."""

    simulation: Simulation
    inner: MemoryBucket

    def __init__(self, simulation: Simulation, inner: MemoryBucket) -> None:
        super().__init__()
        self.simulation, self.inner, self.objects = simulation, inner, inner.objects
        self.revisions: list[dict[str, Any]] = []
        self.mirrored = 0

    def write(self, key: str, body: bytes, match: str | None) -> str:
        before = self.objects.get(key)
        etag = self.inner.write(key, body, match)
        content = json.loads(body)
        if key == STATE:
            if content["epoch"] < self.simulation.highest_leader:
                raise Violation(
                    f"state written under epoch {content['epoch']} after epoch {self.simulation.highest_leader} has begun to act"
                )
            if self.revisions and content["revision"] != self.revisions[-1]["revision"] + 1:
                raise Violation(f"revision {content['revision']} follows on {self.revisions[-1]['revision']}")
            self.revisions.append(content)
        elif key == DECISION:
            if content["revision"] < self.mirrored:
                raise Violation("the decision went back")
            self.mirrored = content["revision"]
        elif key.startswith(HISTORY) and before is not None and before != body:
            raise Violation(f"{key} was written twice")
        return etag


class Actor:
    """A thread that runs only when it is its turn."""

    def __init__(self, simulation: Simulation, work: Callable[[], None]) -> None:
        self.simulation = simulation
        self.turn = threading.Lock()
        self.turn.acquire()
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        self.turn.acquire()
        simulation = self.simulation
        try:
            if not simulation.over:
                work()
        except Over:
            return
        except BaseException as error:  # noqa: BLE001 - the test sees it
            simulation.failure = simulation.failure or error
        simulation.hand_over()


class Simulation:
    """One run of a story."""

    def __init__(self, story: Story, rules: Rules) -> None:
        self.story, self.rules = story, rules
        self.now = 0.0
        self.over = False
        self.failure: BaseException | None = None
        self.highest_leader = 0
        self.terms: dict[int, str] = {}
        self.leaders: dict[int, str] = {}
        self.ended: set[int] = set()
        self.requests = 0
        self.resumed = 0
        self.bucket = Watched(self, rules.bucket())
        self._script: Iterator[int] = iter(story.script)
        self._end = SECONDS
        self._events: list[tuple[float, int, Actor | Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._finished = threading.Lock()
        self._finished.acquire()
        self._current: Actor | None = None
        self._actors: list[Actor] = []
        self.contenders = [Contender(self, number) for number in range(len(story.speeds))]

    def run(self) -> None:
        for contender in self.contenders:
            self.start(contender.live, 0.01 * contender.number)
        if self.story.deleted_at is not None:
            self.after(self.story.deleted_at, self._delete_lock)
        self.hand_over()
        self._finished.acquire()
        self.over = True
        for actor in self._actors:
            if actor.thread.is_alive():
                actor.turn.release()
                actor.thread.join()
        if self.failure:
            raise self.failure
        self._judge_history()

    def _delete_lock(self) -> None:
        """Somebody deletes it by hand. Of a place so new that not all have seen its lock, nothing is promised then."""
        if STATE in self.bucket.objects and all(contender.lease._seen for contender in self.contenders):  # noqa: SLF001
            self.bucket.remove(LOCK)

    # Time and turns

    def start(self, work: Callable[[], None], delay: float = 0.0) -> None:
        actor = Actor(self, work)
        self._actors.append(actor)
        self._push(delay, actor)

    def after(self, delay: float, effect: Callable[[], None]) -> None:
        self._push(delay, effect)

    def wait(self, seconds: float) -> None:
        """Of the current actor: go on after so many seconds."""
        actor = self._current
        assert actor is not None
        self._push(seconds, actor)
        if self._next() is not actor:
            actor.turn.acquire()
        if self.over:
            raise Over
        self._current = actor

    def hand_over(self) -> None:
        """Of an actor that has ended."""
        self._next()

    def _push(self, delay: float, what: Actor | Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), what))

    def _next(self) -> Actor | None:
        """Move on in time, and wake up whoever is next, unless that is the current actor."""
        while self._events and not self.failure:
            when, _number, what = heapq.heappop(self._events)
            if when > self._end:
                break
            self.now = when
            try:
                self.check()
                if not isinstance(what, Actor):
                    what()
                    continue
            except Violation as error:
                self.failure = error
                break
            if what is not self._current or self._current is None:
                self._current = what
                what.turn.release()
            return what
        self._finished.release()
        return None

    # The script

    def _byte(self) -> int:
        byte = next(self._script, None)
        if byte is None:
            self._end = min(self._end, self.now + CALM_SECONDS) if self.story.script else SECONDS
        return byte or 0

    def choose(self, of: int) -> int:
        return self._byte() % of

    def fault(self) -> tuple[str, float]:
        """What becomes of a request, and a number of seconds to do it with."""
        self.requests += 1
        byte = self._byte()
        if byte < self.story.calm:
            return "", 0.01 + (byte % 4) * 0.05
        return FAULTS[byte % len(FAULTS)], 0.5 * 1.25 ** (self._byte() % 24)

    # The promises

    def won(self, epoch: int, who: str) -> None:
        # Where the lock was deleted by hand, only an epoch that has been acted under is known from the state.
        if self.story.deleted_at is None:
            self._use(self.terms, epoch, who)

    def leads(self, epoch: int, who: str) -> None:
        self._use(self.leaders, epoch, who)
        self.highest_leader = max(self.highest_leader, epoch)
        self.check()

    def goes_on(self, epoch: int, who: str) -> None:
        """Of one that was restarted in the midst of its term: nobody else may have had that epoch."""
        if self.leaders.get(epoch) != who:
            raise Violation(f"{who} goes on under epoch {epoch} of {self.leaders.get(epoch)}")
        self.resumed += 1
        self.check()

    @staticmethod
    def _use(used: dict[int, str], epoch: int, who: str) -> None:
        if epoch in used:
            raise Violation(f"epoch {epoch} of {who} was that of {used[epoch]}")
        used[epoch] = who

    def check(self) -> None:
        acting = []
        for contender in self.contenders:
            # The term of one that was killed ends when it would have ended, unless who was started in its place has renewed it by then.
            if contender.killed and not contender.killed.acting():
                self.ended.add(contender.killed.epoch)
            epoch = contender.leading
            if not epoch:
                continue
            if contender.lease.acting():
                acting.append(epoch)
                if epoch in self.ended:
                    raise Violation(f"epoch {epoch} acts again after it has stopped")
            else:
                self.ended.add(epoch)
        if len(acting) > 1:
            raise Violation(f"two leaders act: {acting} at {self.now:.1f}")

    def _judge_history(self) -> None:
        for revision in self.bucket.revisions[:-1]:
            key = f"{HISTORY}{revision['epoch']:010d}-{revision['revision']:010d}"
            kept = self.bucket.objects.get(key)
            if kept is None:
                raise Violation(f"history has no {key}")
            if any(json.loads(kept)[name] != revision[name] for name in FIELDS):
                raise Violation(f"{key} says something else")


class FaultyBucket:
    """The store as one contender reaches it. A request that gets no answer may have been carried out, or be carried out later."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def read(self, key: str, known: Stored | None = None) -> Stored | None:
        return self._request(lambda: self._simulation.bucket.read(key, known))

    def write(self, key: str, body: bytes, match: str | None) -> str:
        return self._request(lambda: self._simulation.bucket.write(key, body, match), writes=True)

    def keys(self, prefix: str) -> list[str]:
        return self._request(lambda: self._simulation.bucket.keys(prefix))

    def remove(self, key: str) -> None:
        return self._request(lambda: self._simulation.bucket.remove(key))

    def _request(self, effect: Callable[[], Any], writes: bool = False) -> Any:
        simulation = self._simulation
        kind, seconds = simulation.fault()
        if kind == "asleep before":
            simulation.wait(seconds)
        simulation.wait(0.01 if kind else seconds)
        if kind == "late":
            simulation.after(TIMEOUT + seconds, lambda: quietly(effect))
        if kind in ("lost", "500 done", "412 done") and writes:
            quietly(effect)
        if kind in ("lost", "late", "dropped"):
            simulation.wait(TIMEOUT)
            raise Unreachable("no answer")
        if kind in ("500", "500 done"):
            raise ServerError("500")
        if kind in ("409", "412 done") and writes:
            raise PreconditionFailed(kind)
        answer = effect()
        if kind == "asleep after":
            simulation.wait(seconds)
        return answer


def quietly(effect: Callable[[], Any]) -> None:
    try:
        effect()
    except S3Error:
        return


def honest(simulation: Simulation, store: type[ObjectStore]) -> ObjectStore:
    """A store whose refusals are judged: what it says was not written must not be there."""

    class Honest(store):  # type: ignore[misc,valid-type]
        def _write(self, key: str, body: bytes, match: str | None) -> Stored:
            try:
                return super()._write(key, body, match)  # type: ignore[no-any-return]
            except PreconditionFailed as error:
                if simulation.bucket.objects.get(key) == body:
                    raise Violation(f"the write of {key} was called refused, and is there") from error
                raise

    return Honest(FaultyBucket(simulation))


class Contender:
    """A process that wants to lead, works while it may, and is restarted when it dies."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self.simulation, self.number = simulation, number
        self.leading = 0
        self.killed: Lease | None = None
        self.live_on = True
        self._names, self._machines = itertools.count(), itertools.count()
        self._name, self._machine = next(self._names), next(self._machines)
        self._begin()

    def _begin(self) -> None:
        rules = self.simulation.rules
        store = honest(self.simulation, rules.store)
        instance = f"{self.number}-{self._name}"
        self.documents = rules.documents(store, PLACE.identity())
        clock = functools.partial(self._clock, self._machine)
        ttl, machine = self.simulation.story.ttls[self.number], f"{self.number}.{self._machine}"
        self.lease = rules.lease(store, PLACE, "east", instance, ttl, clock, machine)
        self.lease._documents = self.documents  # noqa: SLF001 - so that a broken rule of documents reaches it
        self.states = self._states()

    def _states(self) -> StateStore:
        states = self.simulation.rules.states(self.documents, PLACE, self.lease.instance)
        states.history = self.simulation.rules.history(self.documents, PLACE)
        return states

    def _clock(self, machine: int) -> float:
        return 1000.0 * self.number - 200.0 * machine + self.simulation.now * self.simulation.story.speeds[self.number]

    def live(self) -> None:
        while self.live_on:
            try:
                pause = self._step()
            except S3Error:
                pause = 1.0
            self.simulation.wait(pause)

    def _step(self) -> float:
        lease, simulation = self.lease, self.simulation
        if self.killed:
            return self._go_on()
        if not lease.acting():
            self.leading = 0
            if not lease.attempt():
                return min(POLL, max(0.1, lease.expires_in()))
            simulation.won(lease.epoch, lease.instance)
        epoch = lease.epoch
        if not self.leading:
            if simulation.choose(8) == 7:
                return self._stop()
            try:
                state = self.states.seal(epoch)
            except Fenced:
                return self._stop()
            if lease.acting():
                self.leading = epoch
                simulation.leads(epoch, lease.instance)
                Decision(self.documents, PLACE).publish(state)
                simulation.start(lambda: self._work(epoch))
            return lease.renew_every / 3
        choice = simulation.choose(16)
        if choice >= 11:
            return self._stop()
        if choice >= (3 if simulation.story.mortal else 9):
            return self._die()
        lease.renew()
        return lease.renew_every * (0.5 if choice < 7 else 1.0)

    def _die(self) -> float:
        """Killed, and started again without any memory: under another name, or under the same, as the tasks of one playbook are."""
        choice = self.simulation.choose(32)
        if choice >= 16:
            self._renew_unheard()
        self.leading, self.killed = 0, self.lease if choice % 4 else None
        if not self.killed:
            self._name = next(self._names)
        elif choice % 4 == 3:
            self._machine = next(self._machines)
        self._begin()
        return 2.0 + 8.0 * (choice // 4 % 4)

    def _renew_unheard(self) -> None:
        """What was killed has sent a renewal, and the store may have it: but nobody has heard of that, and acts by it."""
        known = self.lease._term  # noqa: SLF001
        quietly(self.lease.renew)
        self.lease._term = known  # noqa: SLF001

    def _go_on(self) -> float:
        """What is started under the name of one that was killed goes on with its term if that lasts, and renews it as s3_lock does."""
        resumed, self.killed = self.lease.resume(), None
        if resumed:
            self.leading = self.lease.epoch
            self.simulation.goes_on(self.leading, self.lease.instance)
            for _renewal in range(2):
                self.lease.renew()
        return 0.1

    def _stop(self) -> float:
        self.lease.release()
        self.leading = 0
        return 10.0

    def _work(self, epoch: int) -> None:
        """What a playbook does for the leader: it knows the epoch, and nothing of the lease's clock."""
        states, decision = self._states(), Decision(self.documents, PLACE)
        for number in range(WRITES):
            try:
                verify(self.documents, PLACE, epoch)
                decision.publish(states.write(epoch, {"step": f"{epoch}.{number}", "decision": {"cluster": f"{epoch}.{number}"}}))
            except S3Error:
                # A task that failed is tried again by the next event.
                self.simulation.wait(1.0)
            self.simulation.wait(4.0)
