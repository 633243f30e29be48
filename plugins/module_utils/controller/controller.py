# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The control loop: whatever changes for an order, look at it, mirror what is seen into its status, ask for what is missing.

An event only says *look*. A look takes all from the copies of the hub that mirrors keep, so it costs no request unless something has to be
written or done. Before an action is asked for, what it depends on is read once more: two watches are never equally far.

All state is in the event loop's thread. What talks to the hub does so in threads of a pool, and gives back what it found.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..lock import lease
from ..lock.lease import LockState
from ..orders.fulfillment import Fulfillment
from ..orders.model import DEGRADED, FAILED, READY, ClusterOrder, working_namespace
from ..orders.observed import ObservedState, provider_type, recorded_cluster, unknown_cluster
from ..orders.selection import OrderName
from ..orders.snapshot import cluster_ref
from ..orders.status import Action, next_action
from ..providers.base import Provider
from ..providers.factory import ProviderFactory
from ..providers.model import ObservedCluster
from .in_flight import RESYNC, InFlightRuns, PendingAction, Run, transition
from .informer import Informer, broken
from .metrics import Metrics, State
from .settings import Settings
from .work_queue import Key, WorkQueue

log = logging.getLogger(__name__)

Result = TypeVar("Result")

LOOKERS = 8
# A change of a cluster is looked at when no other has followed for so long, at the latest after the second time: a burst is one look.
CALM_SECONDS, LONGEST_BURST_SECONDS = 0.02, 0.1
LINGER_SECONDS = 0.05  # what is wanted within this time goes into one run
BROKEN_SECONDS = 60.0  # a watch that is broken for longer is told of
ASKED_SECONDS = 5.0  # for so long an answer of a provider that has to be asked is good
SECOND_MORE = 1.0  # times in a status have no fractions, and the server's clock is known to a second
# A run that leaves an order needing the same again is done again: a few times at once, then less and less often.
REPEATS_AT_ONCE, LONGEST_REPEAT_SECONDS = 3, 300.0
TRANSITIONS = {READY: "ready", DEGRADED: "degraded", FAILED: "failed"}


@dataclass(frozen=True)
class Done:
    """What was last done for an order, how many times in a row without more coming of it, and when."""

    uid: str
    generation: int
    action: Action
    times: int
    at: float

    def pause(self, clock: float) -> float:
        """How long to wait until doing it once more."""
        if self.times < REPEATS_AT_ONCE:
            return 0.0
        return max(0.0, self.at + min(2.0 ** (self.times - REPEATS_AT_ONCE), LONGEST_REPEAT_SECONDS) - clock)


class Controller:
    """One for a hub. `emit` gives an event to the rules engine, and may take its time."""

    def __init__(self, settings: Settings, watching: Kube, kube: Kube, emit: Callable[[Object], Awaitable[None]], metrics: Metrics) -> None:
        """Watches have a connection of their own: they would use up the other's."""
        self._settings = settings
        self._watching = watching
        self._kube = kube
        self._emit = emit
        self._run = Fulfillment(kube, settings.names, {}, external_controller=settings.external_controller)
        self._queue = WorkQueue(self._look)
        self._flights = InFlightRuns(settings.batch_size, settings.max_in_flight, settings.start_timeout)
        self._may_start = asyncio.Event()
        self._news: asyncio.Queue[Object] = asyncio.Queue()
        self._pool = ThreadPoolExecutor(LOOKERS, thread_name_prefix="look")
        self._metrics = metrics

        names = settings.names
        self._orders = Informer(watching, names.api_version, "ClusterOrder", self._order_changed)
        self._locks = Informer(watching, lease.API_VERSION, "Lease", self._lock_changed, _selector(lease.labels()))
        self._namespaces = Informer(watching, "v1", "Namespace", self._namespace_changed, names.order_label)
        self._needed = (self._orders, self._locks, self._namespaces)
        self._clusters: dict[tuple[str, str], Informer] = {}  # by apiVersion and kind, each begun when an order needs it
        self._tasks: asyncio.TaskGroup | None = None

        self._places: dict[str, set[Key]] = {}  # which orders mean a working namespace; two may, and one of them is told so by its run
        self._phases: dict[Key, str] = {}  # as last told of
        self._done: dict[Key, Done] = {}
        self._repair_at: dict[Key, float] = {}
        self._asked: dict[Key, tuple[float, ObservedCluster]] = {}
        self._bursts: dict[Key, tuple[float, asyncio.TimerHandle]] = {}  # when it began, and when it is over

    # What runs

    async def run(self) -> None:
        """Work until cancelled. A fault of the hub ends nothing."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for mirror in self._needed:
                    tasks.create_task(mirror.follow())
                for mirror in self._needed:
                    await mirror.listed.wait()
                log.info("%d orders are followed", len(self._orders.all()))
                tasks.create_task(self._start_runs())
                tasks.create_task(self._tell_news())
                for _each in range(LOOKERS):
                    tasks.create_task(self._queue.work())
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def note(self, order: OrderName) -> None:
        """Look at an order: somebody said that there is something to see."""
        self._queue.add(Key(order.namespace, order.name))

    def problems(self) -> list[str]:
        """Why the source is not well; nothing where it is."""
        waiting = [f"{mirror.kind} is not listed yet" for mirror in self._needed if not mirror.listed.is_set()]
        # Kinds of clusters that this hub does not have, or that nobody lets us see, are told of on the orders that mean them.
        return waiting or [f"the watch of {kind} is broken" for kind in broken(filter(_was_listed, self._mirrors()), BROKEN_SECONDS)]

    def state(self) -> State:
        """For whoever reads the metrics."""
        phases = Counter(str((item.get("status") or {}).get("phase") or "Unknown") for item in self._orders.all())
        restarts = {mirror.kind: mirror.restarts for mirror in self._mirrors()}
        return State(True, phases, self._flights.counts(), self._flights.runs, len(self._queue), restarts)

    def _mirrors(self) -> list[Informer]:
        return [*self._needed, *self._clusters.values()]

    async def _start_runs(self) -> None:
        while True:
            await self._may_start.wait()
            await asyncio.sleep(LINGER_SECONDS)
            while run := self._flights.start():
                await self._emit(run.event(self._settings.workflows))
                self._metrics.emitted(run.action)
                run.began = time.monotonic()
                log.info("%s of %s", run.action, ", ".join(map(str, run.wishes)))
                for key in run.wishes:
                    self._queue.add(key)  # to notice when it takes too long to begin
            self._may_start.clear()

    async def _tell_news(self) -> None:
        while True:
            event = await self._news.get()
            await self._emit(event)
            self._metrics.emitted(event["action"])

    async def _in_pool(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    # What the mirrors tell

    def _order_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before or {}
        key = Key(item["metadata"]["namespace"], item["metadata"]["name"])
        if after is None:
            self._gone(key)
            self._news.put_nowait(transition("deleted", key, ClusterOrder.from_object(item, self._settings.names.group), "Gone", ""))
            return
        self._places.setdefault(working_namespace(*key), set()).add(key)
        if not self._orders.listed.is_set():
            # What had happened before this source began is not news.
            self._phases[key] = ClusterOrder.from_object(item, self._settings.names.group).phase
        self._queue.add(key)

    def _lock_changed(self, before: Object | None, after: Object | None) -> None:
        state = lease.state_of(after or before or {})
        if state:
            self._queue.add(Key(state.namespace, state.order))

    def _namespace_changed(self, before: Object | None, after: Object | None) -> None:
        # Of a namespace only matters whether it is there.
        if before is None or after is None:
            self._look_at_place((after or before or {})["metadata"]["name"])

    def _cluster_changed(self, before: Object | None, after: Object | None) -> None:
        self._look_at_place((after or before or {})["metadata"]["namespace"])

    def _look_at_place(self, namespace: str) -> None:
        loop = asyncio.get_running_loop()
        for key in self._places.get(namespace, ()):
            began, timer = self._bursts.get(key, (loop.time(), None))
            if timer:
                timer.cancel()
            calm = min(loop.time() + CALM_SECONDS, began + LONGEST_BURST_SECONDS)
            self._bursts[key] = (began, loop.call_at(calm, self._burst_is_over, key))

    def _burst_is_over(self, key: Key) -> None:
        self._bursts.pop(key, None)
        self._queue.add(key)

    def _gone(self, key: Key) -> None:
        place = working_namespace(*key)
        self._places.get(place, set()).discard(key)
        if not self._places.get(place):
            self._places.pop(place, None)
        for known in (self._phases, self._done, self._repair_at, self._asked):
            known.pop(key, None)
        self._flights.withdraw(key)
        self._land(key)

    # One look

    async def _look(self, key: Key) -> None:
        known = self._orders.get(key)
        item = known or await self._in_pool(
            lambda: self._kube.find(self._settings.names.api_version, "ClusterOrder", key.name, key.namespace)
        )
        if item is None:
            return
        order, lock = ClusterOrder.from_object(item, self._settings.names.group), await self._lock(key)
        # First of all: nothing that is wrong with an order may keep the place of its run, which others wait for.
        self._land_if_over(key, order, lock)
        if order.management_state == "unmanaged":
            self._flights.withdraw(key)
            return
        world = await self._world(key, order)
        if world is None:
            return
        looked_at = order
        try:
            order = await self._in_pool(lambda: self._run.sync(looked_at, world, lock))
        except NotFound:
            return
        if known and self._orders.get(key) is None:
            return  # it went meanwhile
        if order.resource_version != looked_at.resource_version:
            self._orders.remember(order.raw)
            self._metrics.wrote_status()
        if (order.generation, order.management_state) != (looked_at.generation, looked_at.management_state):
            # Somebody's change came before our write, which brought it along: no event will tell of it any more.
            self._queue.add(key)
            return
        self._tell_of_phase(key, order)
        await self._decide(key, order, world, lock)

    async def _lock(self, key: Key) -> LockState | None:
        """The order's lock. That it has run out is believed of the hub only: our copy may be late."""
        item = self._locks.get(Key(key.namespace, lease.lease_name(key.name)))
        lock = lease.state_of(item) if item else None
        if lock and lock.lost_since(self._now()):
            return await self._in_pool(lambda: lease.read(self._kube, *key))
        return lock

    async def _world(self, key: Key, order: ClusterOrder) -> ObservedState | None:
        """What is there for the order; None while the objects of its cluster are being listed for the first time."""
        namespace = working_namespace(order.namespace, order.name)
        exists = self._namespaces.get(Key("", namespace)) is not None
        kind = provider_type(order)
        if not kind:
            return ObservedState(namespace_exists=exists)
        try:
            provider = ProviderFactory.at(kind, cluster_ref(self._kube, order))
            if not provider.WATCHES:
                return ObservedState(await self._ask(key, order, provider) if exists else ObservedCluster(), exists)
            items = []
            for api_version, watched in provider.WATCHES:
                mirror = self._followed(api_version, watched)
                if not mirror.listed.is_set():
                    # A refusal is the trouble of these orders and of no others.
                    return ObservedState(unknown_cluster(order, mirror.refusal), exists) if mirror.refusal else None
                items += mirror.below(namespace)
            return ObservedState(provider.observe_objects(recorded_cluster(order), items), exists)
        except KubeError as error:
            return ObservedState(unknown_cluster(order, error), exists)

    def _followed(self, api_version: str, kind: str) -> Informer:
        known = self._clusters.get((api_version, kind))
        if known is None and self._tasks:
            known = self._clusters[api_version, kind] = Informer(self._watching, api_version, kind, self._cluster_changed)
            self._tasks.create_task(known.follow())
            self._tasks.create_task(self._look_at_all_when(known.refused))
            self._tasks.create_task(self._look_at_all_when(known.listed))
        return self._clusters[api_version, kind]

    async def _look_at_all_when(self, listed: asyncio.Event) -> None:
        await listed.wait()
        for item in self._orders.all():
            self._queue.add(Key(item["metadata"]["namespace"], item["metadata"]["name"]))

    async def _ask(self, key: Key, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        """What a provider says that has to be asked: not at each look, which anybody's webhook may cause, and again after a while."""
        self._queue.add_after(key, self._settings.poll)
        at, spec = self._asked.get(key, (0.0, ObservedCluster()))
        if time.monotonic() - at > ASKED_SECONDS:
            spec = await self._in_pool(lambda: provider.status(recorded_cluster(order)))
            self._asked[key] = (time.monotonic(), spec)
        return spec

    def _tell_of_phase(self, key: Key, order: ClusterOrder) -> None:
        before, self._phases[key] = self._phases.get(key, ""), order.phase
        if order.phase != before and order.phase in TRANSITIONS:
            times = [str(item.get("lastTransitionTime", "")) for item in order.status.get("conditions", [])]
            reason = (order.condition("ClusterAvailable") or {}).get("reason", "")
            failure = order.failure.reason if order.failure else ""
            told = transition(TRANSITIONS[order.phase], key, order, failure or reason, max(times, default=""))
            self._news.put_nowait(told)

    # What is to be done

    async def _decide(self, key: Key, order: ClusterOrder, world: ObservedState, lock: LockState | None) -> None:
        now, clock = self._now(), time.monotonic()
        if self._flights.flying(key):
            return
        if lock and not lock.is_free(now):
            self._flights.withdraw(key)
            self._queue.add_after(key, self._until_lock_ends(lock, now) or BROKEN_SECONDS)
            return
        action = self._next_action(order, world, now)
        resync = action is None and self._is_due_for_resync(key, order, clock)
        if action is None and not resync:
            self._done.pop(key, None)
            self._flights.withdraw(key)
            self._wake_up_for(key, order, now, clock)
            return
        action = action or "provision"
        if self._flights.is_wanted(key, action, order.generation):
            return
        if pause := self._pause(key, order, action, clock):
            self._queue.add_after(key, pause)
            return
        wish = await self._in_pool(lambda: self._confirmed(key, action, resync))
        if wish:
            self._flights.want(key, wish)
            self._may_start.set()
        else:
            self._flights.withdraw(key)

    def _confirmed(self, key: Key, action: Action, resync: bool) -> PendingAction | None:
        """The wish as the hub itself has it now, not our copy of it. Where they differ, the next event brings the rest."""
        lock = lease.read(self._kube, *key)
        order = self._run.find(*key)
        if order is None or not lock.is_free(self._kube.server_time()):
            return None
        world = self._run.look(order)
        found = self._next_action(order, world, self._now())
        if found != (None if resync else action):
            return None
        return PendingAction(action, RESYNC if resync else reason(order, world.cluster, action), order.uid, order.generation, lock.token)

    def _next_action(self, order: ClusterOrder, world: ObservedState, now: datetime) -> Action | None:
        external = self._settings.external_controller
        if external and not order.is_deleting and not world.namespace_exists:
            return None  # the other controller makes the namespace first
        if order.is_deleting and not external and world.cluster.is_gone and self._namespace_is_going(order):
            return None  # its end, which takes a while, is the next event
        return next_action(order, world.cluster, now, external_controller=external)

    def _namespace_is_going(self, order: ClusterOrder) -> bool:
        namespace = self._namespaces.get(Key("", working_namespace(order.namespace, order.name)))
        return namespace is not None and "deletionTimestamp" in namespace["metadata"]

    def _now(self) -> datetime:
        return self._kube.server_time() or datetime.now(UTC)

    @staticmethod
    def _until_lock_ends(lock: LockState | None, now: datetime) -> float | None:
        """How long until a lock that is held runs out, unless it is renewed: then that is an event."""
        ends = lock.expires() if lock and lock.holder else None
        return max(0.0, (ends - now).total_seconds()) + SECOND_MORE if ends else None

    def _land_if_over(self, key: Key, order: ClusterOrder, lock: LockState | None) -> None:
        """Land what is under way for the order if it has ended; else look again when it may have."""
        now, clock, run = self._now(), time.monotonic(), self._flights.flying(key)
        if run is None:
            return
        # A run that has yet to lock the order will leave it alone then.
        unwanted = order.management_state != "managed" or (order.is_deleting and run.action != "delete")
        if not self._flights.is_over(key, lock, now, clock, unwanted):
            self._queue.add_after(key, self._until_lock_ends(lock, now) or self._flights.gives_up_in(key, lock, clock) + SECOND_MORE)
            return
        if self._flights.was_not_taken_up(key, lock) and not unwanted:
            log.warning("no run has taken up %s to %s: see what the last one said, and that it reaches the same hub", key, run.action)
        self._land(key)
        before = self._done.get(key)
        again = before is not None and (before.uid, before.generation, before.action) == (order.uid, order.generation, run.action)
        self._done[key] = Done(order.uid, order.generation, run.action, before.times + 1 if before and again else 1, clock)
        self._repair_at[key] = clock + self._settings.resync

    def _land(self, key: Key) -> Run | None:
        run = self._flights.land(key)
        if run:
            if run.began is not None:
                self._metrics.finished(run.action, time.monotonic() - run.began)
            self._may_start.set()
        return run

    def _pause(self, key: Key, order: ClusterOrder, action: Action, clock: float) -> float:
        done = self._done.get(key)
        if done is None or order.failure or (done.uid, done.generation, done.action) != (order.uid, order.generation, action):
            return 0.0  # a failure has a pause of its own, on the order
        return done.pause(clock)

    def _is_due_for_resync(self, key: Key, order: ClusterOrder, clock: float) -> bool:
        """Whether a settled order is to be carried out once more, which repairs what cannot be seen from here."""
        # Spread over the interval, so that a source that has just begun does not ask for all of them at once.
        due = self._repair_at.setdefault(key, clock + self._settings.resync * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        settled = order.is_carried_out and not order.is_deleting and not order.failure and order.management_state == "managed"
        return settled and clock >= due

    def _wake_up_for(self, key: Key, order: ClusterOrder, now: datetime, clock: float) -> None:
        """Look again when the time itself brings something to do."""
        waits = [self._repair_at[key] - clock]
        if order.failure and order.failure.retryable and order.failure.next_attempt:
            waits.append((order.failure.next_attempt - now).total_seconds() + SECOND_MORE)
        # One that has come and brought nothing, say for an order that somebody manages by hand, does not come again at once.
        self._queue.add_after(key, min((wait for wait in waits if wait > 0), default=float(self._settings.resync)))


def reason(order: ClusterOrder, cluster: ObservedCluster, action: Action) -> str:
    """Why an action is asked for, in a word."""
    if order.failure:
        return "Retry"
    if action == "delete":
        return "DeletionRequested"
    if action == "post_install":
        return "ControlPlaneAvailable"
    if not order.is_carried_out:
        return "SpecNotCarriedOut"
    return "NodesDiffer" if cluster.exists else "ClusterMissing"


def _was_listed(mirror: Informer) -> bool:
    return mirror.listed.is_set()


def _selector(labels: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())
