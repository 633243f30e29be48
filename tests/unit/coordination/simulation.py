"""Simulates contenders for one workload: a virtual clock, an in-memory store with S3's rules, and faults between them.

The library runs unchanged, in virtual time. A script of bytes decides the duration and the fault of each request, so
the same script gives the same run.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.decision import DecisionStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease, verify_epoch
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import FIELDS, History, StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import (
    Fenced,
    PreconditionFailed,
    S3Error,
    ServerError,
    Unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, StoredObject

from ..s3.memory_bucket import MemoryBucket
from ..virtual_time import Violation, VirtualTime

WORKLOAD = WorkloadRef("orders", "demo")
LOCK, STATE, DECISION, HISTORY = (WORKLOAD.key(part) for part in ("lock", "state", "decision", "history/"))
DURATION = 180.0
# After the last fault, a violated invariant shows within this time or never.
SETTLE_SECONDS = 65.0
TIMEOUT = 4.5
POLL = 5.0
WRITES = 4
FAULTS = ("lost", "late", "dropped", "500", "500 written", "409", "412 written", "paused before", "paused after")


@dataclass(frozen=True)
class Rules:
    """The classes that contenders are built of. A test replaces one by a class without one of its rules."""

    bucket: type[MemoryBucket] = MemoryBucket
    store: type[ObjectStore] = ObjectStore
    documents: type[DocumentStore] = DocumentStore
    lease: type[Lease] = Lease
    states: type[StateStore] = StateStore
    history: type[History] = History


@dataclass(frozen=True)
class Scenario:
    """One run: faults of requests, speed of clocks, ttl of leases, and when the lock object is deleted by hand.

    A `crash_prone` leader is killed in every other step. Bytes below `fault_threshold` cause no fault.
    """

    script: bytes
    fault_threshold: int
    clock_speeds: tuple[float, ...]
    ttls: tuple[float, ...]
    lock_deleted_at: float | None = None
    crash_prone: bool = False


class JudgingBucket(MemoryBucket):
    """Checks the invariants at each write, with knowledge that only the simulation has."""

    simulation: Simulation
    inner: MemoryBucket

    def __init__(self, simulation: Simulation, inner: MemoryBucket) -> None:
        super().__init__()
        self.simulation, self.inner, self.objects = simulation, inner, inner.objects
        self.revisions: list[dict[str, Any]] = []
        self.published = (0, 0)

    def write(self, key: str, body: bytes, match: str | None) -> str:
        before = self.objects.get(key)
        etag = self.inner.write(key, body, match)
        content = json.loads(body)
        if key == STATE:
            if content["epoch"] < self.simulation.highest_epoch:
                raise Violation(f"state written under epoch {content['epoch']} after epoch {self.simulation.highest_epoch} began to act")
            if self.revisions and content["revision"] != self.revisions[-1]["revision"] + 1:
                raise Violation(f"revision {content['revision']} follows on {self.revisions[-1]['revision']}")
            self.revisions.append(content)
        elif key == DECISION:
            published = (content["epoch"], content["revision"])
            if published < self.published:
                raise Violation("the published decision went back to an older epoch or revision")
            self.published = published
        elif key.startswith(HISTORY) and before is not None and before != body:
            raise Violation(f"{key} was written twice")
        return etag


class Simulation(VirtualTime):
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, rules: Rules) -> None:
        super().__init__(scenario.script, scenario.fault_threshold, FAULTS, DURATION, SETTLE_SECONDS)
        self.scenario, self.rules = scenario, rules
        self.highest_epoch = 0
        self.terms: dict[int, str] = {}
        self.leaders: dict[int, str] = {}
        self.ended: set[int] = set()
        self.resumed = 0
        self.bucket = JudgingBucket(self, rules.bucket())
        self.contenders = [Contender(self, number) for number in range(len(scenario.clock_speeds))]

    def run(self) -> None:
        for contender in self.contenders:
            self.start(contender.run, 0.01 * contender.number)
        if self.scenario.lock_deleted_at is not None:
            self.after(self.scenario.lock_deleted_at, self._delete_lock)
        self.play()
        self._check_history()

    def _delete_lock(self) -> None:
        """Delete the lock object by hand. The invariants need that all contenders have observed the lock before."""
        if STATE in self.bucket.objects and all(contender.lease._observed for contender in self.contenders):  # noqa: SLF001
            self.bucket.delete(LOCK)

    # The invariants

    def record_acquired(self, epoch: int, instance: str) -> None:
        # After the lock was deleted by hand, the state only has epochs that a leader acted under.
        if self.scenario.lock_deleted_at is None:
            self._use(self.terms, epoch, instance)

    def record_leader(self, epoch: int, instance: str) -> None:
        self._use(self.leaders, epoch, instance)
        self.highest_epoch = max(self.highest_epoch, epoch)
        self.check()

    def record_resumed(self, epoch: int, instance: str) -> None:
        """Called by a contender that was restarted during its term: no other contender may have had that epoch."""
        if self.leaders.get(epoch) != instance:
            raise Violation(f"{instance} resumes epoch {epoch} of {self.leaders.get(epoch)}")
        self.resumed += 1
        self.check()

    @staticmethod
    def _use(used: dict[int, str], epoch: int, instance: str) -> None:
        if epoch in used:
            raise Violation(f"epoch {epoch} of {instance} was that of {used[epoch]}")
        used[epoch] = instance

    def check(self) -> None:
        acting = []
        for contender in self.contenders:
            # The term of a killed process ends at its deadline, unless its successor has renewed it by then.
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

    def _check_history(self) -> None:
        for revision in self.bucket.revisions[:-1]:
            key = f"{HISTORY}{revision['epoch']:010d}-{revision['revision']:010d}"
            recorded = self.bucket.objects.get(key)
            if recorded is None:
                raise Violation(f"history has no {key}")
            if any(json.loads(recorded)[name] != revision[name] for name in FIELDS):
                raise Violation(f"{key} differs from the revision")


class FaultyBucket:
    """The store as one contender reaches it. The store may process a request without an answer, now or later."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def read(self, key: str, known: StoredObject | None = None) -> StoredObject | None:
        return self._request(lambda: self._simulation.bucket.read(key, known))

    def write(self, key: str, body: bytes, match: str | None) -> str:
        return self._request(lambda: self._simulation.bucket.write(key, body, match), writes=True)

    def keys(self, prefix: str) -> list[str]:
        return self._request(lambda: self._simulation.bucket.keys(prefix))

    def delete(self, key: str) -> None:
        return self._request(lambda: self._simulation.bucket.delete(key))

    def _request(self, effect: Callable[[], Any], writes: bool = False) -> Any:
        simulation = self._simulation
        kind, seconds = simulation.fault()
        if kind == "paused before":
            simulation.wait(seconds)
        simulation.wait(0.01 if kind else seconds)
        if kind == "late":
            simulation.after(TIMEOUT + seconds, lambda: ignore_errors(effect))
        if kind in ("lost", "500 written", "412 written") and writes:
            ignore_errors(effect)
        if kind in ("lost", "late", "dropped"):
            simulation.wait(TIMEOUT)
            raise Unreachable("no answer")
        if kind in ("500", "500 written"):
            raise ServerError("500")
        if kind in ("409", "412 written") and writes:
            raise PreconditionFailed(kind)
        answer = effect()
        if kind == "paused after":
            simulation.wait(seconds)
        return answer


def ignore_errors(effect: Callable[[], Any]) -> None:
    try:
        effect()
    except S3Error:
        return


def judged_store(simulation: Simulation, store: type[ObjectStore]) -> ObjectStore:
    """A store whose refusals are checked: an object that it reports as refused must not be stored."""

    class JudgedStore(store):  # type: ignore[misc,valid-type]
        def _write(self, key: str, body: bytes, match: str | None) -> StoredObject:
            try:
                return super()._write(key, body, match)  # type: ignore[no-any-return]
            except PreconditionFailed as error:
                if simulation.bucket.objects.get(key) == body:
                    raise Violation(f"the write of {key} was reported as refused, and is stored") from error
                raise

    return JudgedStore(FaultyBucket(simulation))


class Contender:
    """A process that contends for the lease, works while it leads, and is restarted after a crash."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self.simulation, self.number = simulation, number
        self.leading = 0
        self.killed: Lease | None = None
        self.running = True
        self._names, self._boots = itertools.count(), itertools.count()
        self._name, self._boot = next(self._names), next(self._boots)
        self._begin()

    def _begin(self) -> None:
        rules = self.simulation.rules
        store = judged_store(self.simulation, rules.store)
        instance = f"{self.number}-{self._name}"
        self.documents = rules.documents(store, WORKLOAD.identity())
        clock = functools.partial(self._clock, self._boot)
        ttl, boot_id = self.simulation.scenario.ttls[self.number], f"{self.number}.{self._boot}"
        self.lease = rules.lease(store, WORKLOAD, "east", instance, ttl, clock, boot_id)
        self.lease._documents = self.documents  # noqa: SLF001 - rules of documents apply to it too
        self.states = self._states()

    def _states(self) -> StateStore:
        states = self.simulation.rules.states(self.documents, WORKLOAD, self.lease.instance)
        states.history = self.simulation.rules.history(self.documents, WORKLOAD)
        return states

    def _clock(self, boot: int) -> float:
        return 1000.0 * self.number - 200.0 * boot + self.simulation.now * self.simulation.scenario.clock_speeds[self.number]

    def run(self) -> None:
        while self.running:
            try:
                pause = self._step()
            except S3Error:
                pause = 1.0
            self.simulation.wait(pause)

    def _step(self) -> float:
        lease, simulation = self.lease, self.simulation
        if self.killed:
            return self._resume()
        if not lease.acting():
            self.leading = 0
            if not lease.try_acquire():
                return min(POLL, max(0.1, lease.expires_in()))
            simulation.record_acquired(lease.epoch, lease.instance)
        epoch = lease.epoch
        if not self.leading:
            if simulation.choose(8) == 7:
                return self._release()
            try:
                state = self.states.seal(epoch)
            except Fenced:
                return self._release()
            if lease.acting():
                self.leading = epoch
                simulation.record_leader(epoch, lease.instance)
                DecisionStore(self.documents, WORKLOAD).publish(state)
                simulation.start(lambda: self._work(epoch))
            return lease.renew_interval / 3
        choice = simulation.choose(16)
        if choice >= 11:
            return self._release()
        if choice >= (3 if simulation.scenario.crash_prone else 9):
            return self._crash()
        lease.renew()
        return lease.renew_interval * (0.5 if choice < 7 else 1.0)

    def _crash(self) -> float:
        """Crash, and restart without memory: as a new instance, or as the same one like the tasks of a playbook."""
        choice = self.simulation.choose(32)
        if choice >= 16:
            self._renew_without_answer()
        self.leading, self.killed = 0, self.lease if choice % 4 else None
        if not self.killed:
            self._name = next(self._names)
        elif choice % 4 == 3:
            self._boot = next(self._boots)
        self._begin()
        return 2.0 + 8.0 * (choice // 4 % 4)

    def _renew_without_answer(self) -> None:
        """Send a renewal and crash before its answer: the store may have it, and no process acts on it."""
        known = self.lease._term  # noqa: SLF001
        ignore_errors(self.lease.renew)
        self.lease._term = known  # noqa: SLF001

    def _resume(self) -> float:
        """Resume the term of a killed process of the same instance, and renew it as s3_lock does."""
        resumed, self.killed = self.lease.resume(), None
        if resumed:
            self.leading = self.lease.epoch
            self.simulation.record_resumed(self.leading, self.lease.instance)
            for _renewal in range(2):
                self.lease.renew()
        return 0.1

    def _release(self) -> float:
        self.lease.release()
        self.leading = 0
        return 10.0

    def _work(self, epoch: int) -> None:
        """A playbook that acts for the leader: it knows the epoch, and nothing of the clock of the lease."""
        states, decision = self._states(), DecisionStore(self.documents, WORKLOAD)
        for number in range(WRITES):
            try:
                verify_epoch(self.documents, WORKLOAD, epoch)
                decision.publish(states.write(epoch, {"step": f"{epoch}.{number}", "decision": {"cluster": f"{epoch}.{number}"}}))
            except S3Error:
                # The next event retries a failed task.
                self.simulation.wait(1.0)
            self.simulation.wait(4.0)
