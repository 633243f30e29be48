"""Simulates runs that contend for the lock of one order: API servers whose clocks differ, machines that sleep, runs that are killed.

The library runs unchanged, in virtual time: the Lease, the renewals, the clock of a server and the fenced writer. The hub is in memory and
has the API's rules about conditional writes. It checks the invariants at each write, with knowledge that only the simulation has.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import itertools
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict, KubeError, NotFound, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.server_clock import ServerClock
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock, LockHeld
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import Renewals
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunEnded

from ..virtual_time import Violation, VirtualTime

NAMESPACE, ORDER, TOKEN = "team-a", "demo", "example.com/lock-token"
DURATION = 200.0
SETTLE_SECONDS = 30.0
LOCK_SECONDS = 15
TIMEOUT = 4.5
WRITES = 12
OBJECTS = ("a", "b")
START = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
# Late: the server processes the request after the client has given up. Slow: the answer is on its way for long.
FAULTS = ("lost", "late", "dropped", "slow", "paused before", "paused after", "asleep before", "asleep after")


@dataclass(frozen=True)
class Scenario:
    """One run: faults of requests, speed of the runs' clocks, how far each API server is ahead, and whether servers send a Date."""

    script: bytes
    fault_threshold: int
    clock_speeds: tuple[float, ...]
    offsets: tuple[float, ...]
    sends_date: bool = True


class Hub:
    """Leases and objects in memory, as an API server keeps them."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._versions = itertools.count(2)
        self.items: dict[tuple[str, str], Object] = {}
        self.highest: dict[str, int] = {}
        self.tokens: dict[int, str] = {}
        self.token = 0
        self.holder = ""

    def find(self, kind: str, name: str) -> Object | None:
        return copy.deepcopy(self.items.get((kind, name)))

    def create(self, item: Object) -> Object:
        if self.exists(item):
            raise Conflict("it exists already")
        return self._store(copy.deepcopy(item) | {"metadata": {**item["metadata"], "uid": f"uid-{next(self._versions)}"}})

    def merge(self, item: Object, changes: Object) -> Object:
        """A merge patch that is conditional on the version of `item`."""
        if not self.exists(item):
            raise NotFound("there is none")
        present = self.items[_key(item)]
        if self.is_changed(present, item["metadata"]["resourceVersion"]):
            raise Conflict("it has changed")
        metadata = present["metadata"] | (changes.get("metadata") or {})
        return self._store(present | {"spec": present.get("spec", {}) | changes.get("spec", {}), "metadata": metadata})

    def apply(self, item: Object) -> Object:
        """A server-side apply: it creates what is missing, unless it has a uid."""
        metadata = item["metadata"]
        if not self.exists(item):
            if metadata.get("uid"):
                raise Conflict("there is no object with this uid")
            return self._store(copy.deepcopy(item) | {"metadata": {**metadata, "uid": f"uid-{next(self._versions)}"}})
        present = self.items[_key(item)]
        version = metadata.get("resourceVersion")
        if (version and self.is_changed(present, version)) or metadata.get("uid", present["metadata"]["uid"]) != present["metadata"]["uid"]:
            raise Conflict("it has changed")
        return self._store(copy.deepcopy(item) | {"metadata": present["metadata"] | metadata})

    def delete(self, item: Object, **conditions: bool) -> None:
        present = self.items.get(_key(item))
        if present is None:
            return
        if present["metadata"]["uid"] != item["metadata"]["uid"] or (
            conditions.get("unchanged") and self.is_changed(present, item["metadata"]["resourceVersion"])
        ):
            raise Conflict("it has changed")
        del self.items[_key(item)]
        # No condition of the API keeps a create that was sent before from arriving after the deletion.
        self.highest.pop(item["metadata"]["name"], None)

    # The two conditions, which a test removes

    def exists(self, item: Object) -> bool:
        return _key(item) in self.items

    def is_changed(self, present: Object, version: str) -> bool:
        return bool(present["metadata"]["resourceVersion"] != version)

    # The invariants

    def _store(self, item: Object) -> Object:
        item["metadata"]["resourceVersion"] = str(next(self._versions))
        if item["kind"] == "Lease":
            self._judge_lease(item["spec"].get("holderIdentity") or "", item["spec"]["leaseTransitions"])
        else:
            self._judge_object(item["metadata"]["name"], int(item["metadata"]["annotations"][TOKEN]))
        self.items[_key(item)] = item
        return copy.deepcopy(item)

    def _judge_lease(self, holder: str, token: int) -> None:
        if token < self.token:
            raise Violation(f"the token went from {self.token} back to {token}")
        if holder and self.tokens.setdefault(token, holder) != holder:
            raise Violation(f"token {token} of {holder} was that of {self.tokens[token]}")
        if holder and holder != self.holder:
            self._simulation.judge_taken(token)
        self.holder, self.token = holder, token

    def _judge_object(self, name: str, token: int) -> None:
        if token < self.highest.get(name, 0):
            raise Violation(f"{name} was written under token {token} after token {self.highest[name]}")
        self.highest[name] = token


class Simulation(VirtualTime):
    """One run of a scenario. `slept` is for how long each machine was asleep."""

    current: Simulation

    def __init__(self, scenario: Scenario, hub: type[Hub] = Hub) -> None:
        super().__init__(scenario.script, scenario.fault_threshold, FAULTS, DURATION, SETTLE_SECONDS)
        self.scenario = scenario
        self.hub = hub(self)
        self.random = random.Random(scenario.script)  # noqa: S311 - repeatable
        self.slept = [0.0] * len(scenario.clock_speeds)
        self.allowed: dict[int, float] = {}  # until when the holder of a token may write, by its own clock
        self.taken = self.writes = self.refused = self.killed = 0
        type(self).current = self

    def run(self) -> None:
        for number in range(len(self.scenario.clock_speeds)):
            self.start(Machine(self, number).work, 0.01 * number)
        self.play()

    def boottime(self, number: int) -> float:
        return 1000.0 * number + self.now * self.scenario.clock_speeds[number]

    def judge_taken(self, token: int) -> None:
        self.taken += 1
        for earlier, until in self.allowed.items():
            if earlier != token and until > self.now:
                raise Violation(f"token {token} was taken while the run with token {earlier} may write for {until - self.now:.2f} s")


@dataclass
class Run:
    """A run of a playbook; killed at some time, while its worker lives on."""

    name: str
    has_ended: bool = False

    def require(self) -> None:
        if self.has_ended:
            raise RunEnded(1)


class Connection:
    """The hub as one process reaches it, by one of the API servers for each request."""

    def __init__(self, simulation: Simulation, number: int, clock: Callable[[], float]) -> None:
        self._simulation, self._number = simulation, number
        self._clock = ServerClock(clock)

    def find(self, _api_version: str, kind: str, name: str, _namespace: str | None = None) -> Object | None:
        return self._request(lambda: self._simulation.hub.find(kind, name))

    def create(self, item: Object) -> Object:
        return self._request(lambda: self._simulation.hub.create(item))

    def patch(self, item: Object, changes: Object) -> Object:
        return self._request(lambda: self._simulation.hub.merge(item, changes))

    def apply(self, item: Object, **_options: bool) -> Object:
        return self._request(lambda: self._simulation.hub.apply(item))

    def delete(self, item: Object, **conditions: bool) -> None:
        return self._request(lambda: self._simulation.hub.delete(item, **conditions))

    def in_parallel(self, work: Callable[[Any], Any], items: Iterable[Any], connections: int = 16) -> list[Any]:  # noqa: ARG002 - as the client
        results = []
        for item in items:
            try:
                results.append(work(item))
            except KubeError as error:
                results.append(error)
        return results

    def server_time(self) -> datetime.datetime | None:
        if not self._clock.has_reading:
            self._request(lambda: None)
        return self._clock.earliest()

    def latest_server_time(self) -> datetime.datetime | None:
        return self._clock.latest()

    def _request(self, effect: Callable[[], Any]) -> Any:
        simulation = self._simulation
        offsets = simulation.scenario.offsets
        offset = offsets[simulation.choose(len(offsets))]
        kind, seconds = simulation.fault()
        sent = self._clock.now()
        if kind.endswith("before"):
            self._stop(kind, seconds)
        simulation.wait(0.01 if kind else seconds)
        if kind == "late":
            simulation.after(TIMEOUT + seconds, lambda: _ignore_errors(effect))
        if kind == "lost":
            _ignore_errors(effect)
        if kind in ("lost", "late", "dropped"):
            simulation.wait(TIMEOUT)
            raise Unreachable("no answer")
        date = START + datetime.timedelta(seconds=math.floor(simulation.now + offset)) if simulation.scenario.sends_date else None
        try:
            answer = effect()
        except KubeError as error:
            answer = error
        simulation.wait(min(seconds, TIMEOUT) if kind == "slow" else 0.01)
        if kind.endswith("after"):
            self._stop(kind, seconds)
        self._clock.note(date, sent)
        if isinstance(answer, KubeError):
            raise answer
        return answer

    def _stop(self, kind: str, seconds: float) -> None:
        if kind.startswith("asleep"):
            self._simulation.slept[self._number] += seconds
        self._simulation.wait(seconds)


class JudgedWriter(FencedWriter):
    """A writer that reports until when it may write without reading the lock again, and what it lets through."""

    simulation: Simulation
    speed: float

    def verify(self) -> None:
        super().verify()
        if self.simulation.scenario.sends_date:
            self.simulation.allowed[self._lock.token] = self.simulation.now + (self._held_until - self._clock()) / self.speed
        self._judge()

    def _verify(self) -> None:
        super()._verify()
        self._judge()

    def _judge(self) -> None:
        """Without a Date, the next run may have acquired the lock since it was read; what then protects an object is its token."""
        if self.simulation.scenario.sends_date and self.simulation.hub.token != self._lock.token:
            raise Violation(f"a write of the run with token {self._lock.token} is let through under token {self.simulation.hub.token}")


class JudgedRenewals(Renewals):
    run: Run

    def renew_due(self) -> None:
        if self.run.has_ended:
            raise Violation(f"the lock of {self.run.name} is renewed, and its run has ended")
        super().renew_due()


class Machine:
    """A machine on which one run after another works on the order."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self.simulation, self.number = simulation, number
        self._names = itertools.count(1)

    def clock(self) -> float:
        return self.simulation.boottime(self.number)

    def connection(self) -> Any:
        return Connection(self.simulation, self.number, self.clock)

    def work(self) -> None:
        while True:
            run = Run(f"run-{self.number}-{next(self._names)}")
            try:
                self._run(run, self.connection())
            except LockHeld:
                self.simulation.refused += 1
            except KubeError:
                pass
            run.has_ended = True
            self.simulation.wait(2.0 + self.simulation.choose(4))

    def _run(self, run: Run, kube: Any) -> None:
        simulation = self.simulation
        if simulation.choose(4) >= 2:
            simulation.after(0.05 + 2.0 * simulation.choose(8), lambda: self._kill(run))
        wait_timeout = 60.0 if not simulation.scenario.sends_date else 0.0
        lock = lease.acquire(
            kube, NAMESPACE, ORDER, run.name, LOCK_SECONDS, wait_timeout, alive=run.require, clock=self.clock, sleep=simulation.wait
        )
        with contextlib.suppress(KubeError):
            run.require()
            self._start_renewals(run, lock)
            self._write(run, self._writer(kube, lock))
        # It has stopped writing by now.
        simulation.allowed.pop(lock.token, None)
        lease.release(kube, lock)

    def _kill(self, run: Run) -> None:
        self.simulation.killed += not run.has_ended
        run.has_ended = True

    def _writer(self, kube: Any, lock: Lock) -> JudgedWriter:
        writer = JudgedWriter(kube, lock, TOKEN, clock=self.clock)
        writer.simulation, writer.speed = self.simulation, self.simulation.scenario.clock_speeds[self.number]
        return writer

    def _start_renewals(self, run: Run, lock: Lock) -> None:
        renewals = JudgedRenewals(self.connection(), self.clock)
        renewals.run = run
        renewals.add(lock)

        def wait(seconds: float) -> bool:
            self.simulation.wait(max(0.001, seconds))  # less may be too little to change the time
            return self.is_alive(run)

        self.simulation.start(lambda: renewals.keep(wait))

    def is_alive(self, run: Run) -> bool:
        return not run.has_ended

    def _write(self, run: Run, writer: JudgedWriter) -> None:
        """Write as a worker does whose run may be killed at any time: it learns only from the lock that it must stop."""
        for number in range(WRITES):
            choice = self.simulation.choose(8)
            item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": OBJECTS[choice % len(OBJECTS)], "namespace": NAMESPACE}}
            try:
                if choice == 7:
                    writer.delete([item])
                elif choice == 6:
                    writer.verify()
                else:
                    writer.apply([item | {"data": {"by": f"{run.name}.{number}"}}])
                self.simulation.writes += 1
            except Unreachable:
                self.simulation.wait(1.0)
            self.simulation.wait(1.0 + choice)


def _ignore_errors(effect: Callable[[], Any]) -> None:
    try:
        effect()
    except KubeError:
        return


def _key(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]
