# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The control loop: whatever changes for an order, observe it, update its status, and start the run it needs.

An event only means that something may have changed. A reconcile reads everything from the informer caches, so it costs no request unless
something has to be written or started. Before a run is started, what it depends on is read from the hub: two watches never lag equally.

All state belongs to the event loop's thread. Requests to the hub are sent by threads of a pool, and those to clusters of tenants by
threads of the poller, for which no worker waits.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from ..common.types import Object
from ..infrastructure.address_pools import read_pools
from ..infrastructure.claim_record import read_records
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..lock import lease
from ..lock.lease import LockState
from ..orders.lost_hosts import lost_hosts
from ..orders.model import ClusterOrder, label_value
from ..orders.next_action import action_reason, next_action
from ..orders.observe import ObservedState, observe
from ..orders.orphans import KINDS, find_orphans
from ..orders.outcome import Action, Outcome, UnstartedRun
from ..orders.run import Run
from ..orders.selection import OrderName
from ..orders.status_writer import StatusWriter
from ..orders.sweep import Sweep
from .gitops_watch import GitOpsWatch
from .host_watch import HostWatch
from .hub_cache import Handlers, HubCache
from .in_flight import ABANDONED_SECONDS, RESYNC, InFlightRun, InFlightRuns, PendingAction
from .informer import in_thread
from .key_index import KeyIndex
from .metrics import Metrics, State
from .poller import Poller
from .retry import SECOND_MORE, RetryPolicy
from .rulebook_events import Transitions, action_event, deletion_event
from .settings import Settings
from .work_queue import Key, WorkQueue, sentence

log = logging.getLogger(__name__)

Result = TypeVar("Result")

WORKERS = 8
BATCH_SECONDS = 0.05  # actions that become pending within this time go into one run
WINDOW_SECONDS = 1.0  # between two writes of one status while its cluster keeps changing
SWEEP_SECONDS = 300.0  # between two searches for what deleted orders have left behind
HOSTS_SECONDS = 10.0  # until hosts are read again after an error
LAST_EVENTS_SECONDS = 5.0  # for the Events of a source that ends: less than its Lease as the leader lasts
BROKEN_SECONDS = 60.0  # a watch that is broken for longer is reported


class Controller:
    """One for a hub. `emit` hands an event to the rules engine, and may take its time."""

    def __init__(self, settings: Settings, watching: Kube, kube: Kube, emit: Callable[[Object], Awaitable[None]], metrics: Metrics) -> None:
        self._settings = settings
        self._kube = kube
        self._emit = emit
        self._metrics = metrics
        handlers = Handlers(self._order_changed, self._lock_changed, self._namespace_changed, self._cluster_changed)
        self._cache = HubCache(watching, kube, settings.names, handlers)
        self._run = Run(kube, settings.names, view=self._cache.live())
        self._status = StatusWriter(self._run)
        grace = timedelta(seconds=settings.remove_orphans_after) if settings.remove_orphans_after else None
        self._sweep = Sweep(self._run, grace)
        self._orphans = dict.fromkeys(KINDS, 0)
        self._queue = WorkQueue(self._reconcile, WINDOW_SECONDS)
        self._poller = Poller(self._queue.add)
        self._gitops = GitOpsWatch(kube, self._queue.add, settings.poll)
        self._hosts = HostWatch(watching, kube, settings.names, self._queue.add)
        pending_timeout = settings.pending_timeout or settings.start_timeout
        self._in_flight = InFlightRuns(settings.batch_size, settings.max_in_flight, settings.start_timeout, pending_timeout)
        # Orders whose status changed during their reconcile: mostly by its own write, whose event may come before its answer.
        self._status_changed: set[Key] = set()
        self._unstarted: dict[Key, UnstartedRun] = {}  # until the status of the order says so
        self._retries = RetryPolicy(settings.resync)
        self._transitions = Transitions()
        self._may_start = asyncio.Event()
        self._notifications: asyncio.Queue[Object] = asyncio.Queue()
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="reconcile")
        # The orders of each working namespace. Two may claim one; the run of the second reports that.
        self._by_namespace = KeyIndex()
        self._by_label = KeyIndex()  # on the namespaces of an external controller

    async def run(self) -> None:
        """Work until cancelled. An error of the hub ends nothing."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._poller.start(tasks)
                self._gitops.start(tasks)
                await self._cache.start(tasks)
                log.info("following %d orders", sum(1 for _each in self._cache.orders()))
                tasks.create_task(self._start_runs())
                tasks.create_task(self._send_notifications())
                tasks.create_task(self._sweep_orphans())
                tasks.create_task(self._hosts.run())
                for _each in range(WORKERS):
                    tasks.create_task(self._queue.work())
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            await in_thread(lambda: self._run.events.flush(LAST_EVENTS_SECONDS))

    def enqueue(self, order: OrderName) -> None:
        """Reconcile an order: a webhook named it."""
        self._queue.add(Key(order.namespace, order.name))

    def notified(self, uid: str) -> None:
        """Observe Flux in the cluster of the order with this uid: the cluster asks for it."""
        self._gitops.notify(uid)

    def problems(self) -> list[str]:
        """Why the source is not healthy; empty where it is."""
        return self._cache.problems(BROKEN_SECONDS)

    def state(self) -> State:
        """The state for the metrics."""
        phases = Counter(str((item.get("status") or {}).get("phase") or "Unknown") for _key, item in self._cache.orders())
        informers = [*self._cache.informers(), *([self._hosts.informer] if self._hosts.informer else [])]
        restarts = {informer.kind: informer.restarts for informer in informers}
        return State(True, phases, self._in_flight.counts(), self._in_flight.runs, len(self._queue), restarts, self._orphans)

    async def _start_runs(self) -> None:
        while True:
            await self._may_start.wait()
            await asyncio.sleep(BATCH_SECONDS)
            while run := self._in_flight.start(time.monotonic()):
                await self._emit(action_event(run, self._settings.workflows))
                self._metrics.emitted(run.action)
                run.began = time.monotonic()
                log.info("%s of %s", run.action, ", ".join(map(str, run.orders)))
                for key in run.orders:
                    self._queue.add(key)  # to notice when it takes too long to begin
            self._may_start.clear()

    async def _send_notifications(self) -> None:
        while True:
            event = await self._notifications.get()
            await self._emit(event)
            self._metrics.emitted(event["action"])

    async def _sweep_orphans(self) -> None:
        """Report and remove what deleted orders have left behind. Lists namespaces, pools and claims each time; the rest is cached."""
        names = self._settings.names
        while True:
            try:
                namespaces = await self._in_pool(lambda: self._kube.list_all("v1", "Namespace"))
                pools = await self._in_pool(lambda: read_pools(self._kube, names.site_namespace))
                claims = await self._in_pool(lambda: read_records(self._kube, names.site_namespace))
                orders = (item for _key, item in self._cache.orders())
                found = find_orphans(names, orders, namespaces, self._cache.leases(), pools, claims)
                confirmed = await self._in_pool(functools.partial(self._sweep.sweep, found))
                self._orphans = dict.fromkeys(KINDS, 0) | Counter(orphan.kind for orphan in confirmed)
            except Exception as error:  # noqa: BLE001 - no fault of this search ends the work on orders
                log.warning("the hub was not searched for what deleted orders left behind: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)

    async def _in_pool(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    # Handlers of the informers

    def _order_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before or {}
        key = Key(item["metadata"]["namespace"], item["metadata"]["name"])
        if after is None:
            self._forget(key)
            self._notifications.put_nowait(deletion_event(key, self._order(item)))
            return
        names = self._settings.names
        if names.external_controller:
            self._by_label.put(key, [label_value(key.name)])
        else:
            self._by_namespace.put(key, [names.working_namespace(*key)])
        self._hosts.order_changed(key, after)
        if not self._cache.is_listed:
            self._transitions.record(key, self._order(item).phase)
        if self._queue.is_active(key) and before and _metadata(before) == _metadata(after):
            self._status_changed.add(key)
        else:
            self._queue.add(key)

    def _lock_changed(self, before: Object | None, after: Object | None) -> None:
        state = lease.state_of(after or before or {})
        # A Lease outlives its order, and a tenant may leave any number of them. A new order is enqueued by its own event.
        if state and self._cache.order(Key(state.namespace, state.order)):
            self._queue.add(Key(state.namespace, state.order))

    def _namespace_changed(self, before: Object | None, after: Object | None) -> None:
        # Only the creation and the deletion of a namespace matter.
        if before is None or after is None:
            metadata = (after or before or {})["metadata"]
            self._enqueue_coalesced(self._by_namespace.get(metadata["name"]))
            self._enqueue_coalesced(self._by_label.get((metadata.get("labels") or {}).get(self._settings.names.order_label, "")))

    def _cluster_changed(self, before: Object | None, after: Object | None) -> None:
        self._enqueue_coalesced(self._by_namespace.get((after or before or {})["metadata"]["namespace"]))

    def _enqueue_coalesced(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._queue.add_coalesced(key)

    def _enqueue_all(self) -> None:
        for key, _item in self._cache.orders():
            self._queue.add(key)

    def _forget(self, key: Key) -> None:
        for known in (self._by_namespace, self._by_label, self._transitions, self._retries, self._cache, self._poller, self._queue):
            known.forget(key)
        self._hosts.forget(key)
        self._gitops.forget(key)
        self._in_flight.cancel(key)
        self._unstarted.pop(key, None)
        self._abandon(key, self._cache.lock(key))

    # Reconcile

    async def _reconcile(self, key: Key) -> None:
        order: ClusterOrder | None = None
        try:
            order = await self._reconcile_order(key)
        finally:
            if key in self._status_changed:
                self._status_changed.discard(key)
                cached = self._cache.order(key)
                if cached and (order is None or cached["metadata"]["resourceVersion"] != order.resource_version):
                    self._queue.add(key)  # another writer's change

    async def _reconcile_order(self, key: Key) -> ClusterOrder | None:
        """The order as this reconcile has read or written it; None where it got no further than that."""
        known = self._cache.order(key)
        item = known or await self._in_pool(
            lambda: self._kube.find(self._settings.names.api_version, "ClusterOrder", key.name, key.namespace)
        )
        if item is None:
            self._forget(key)  # also what a reconcile has kept that was under way when the order was deleted
            return None
        before = self._readable(key, item)
        if known and self._settings.names.external_controller:
            # Before it is observed: from now on, what changes in these namespaces enqueues it.
            self._by_namespace.put(key, sorted(self._cache.namespaces_of(before)))
        lock = await self._lock(key)
        # First of all: no error with an order may keep its run in flight, because other orders wait for that slot.
        self._complete_if_ended(key, before, lock)
        if before.management_state == "unmanaged":
            self._in_flight.cancel(key)
            return before
        if not self._can_be_observed(key, before):
            return before
        try:
            order, observed = await self._sync(key, before, lock)
        except NotFound:
            return None
        if known and self._cache.order(key) is None:
            return None  # deleted meanwhile
        if order.resource_version != before.resource_version:
            self._cache.remember(order)
            self._metrics.wrote_status()
        if (order.generation, order.management_state) != (before.generation, before.management_state):
            # A tenant's change came before our write, whose answer includes it: no event reports it any more.
            self._queue.add(key)
            return order
        if event := self._transitions.event(key, order):
            self._notifications.put_nowait(event)
        await self._decide(key, order, observed, lock)
        return order

    def _order(self, item: Object) -> ClusterOrder:
        return ClusterOrder.from_object(item, self._settings.names)

    def _readable(self, key: Key, item: Object) -> ClusterOrder:
        try:
            return self._order(item)
        except Exception:
            self._complete(key)  # other orders wait for its slot
            raise

    def _can_be_observed(self, key: Key, order: ClusterOrder) -> bool:
        """Whether all is known that the state of the order depends on; else it is being read, and the order is enqueued then."""
        if not self._cache.follows(order, self._enqueue_all):
            return False
        if not self._cache.must_be_polled(order):
            return True
        self._queue.add_after(key, self._settings.poll)
        if self._poller.use(key):
            return True
        self._poller.request(key, lambda: self._cache.poll(order))
        return False

    async def _sync(self, key: Key, order: ClusterOrder, lock: LockState | None) -> tuple[ClusterOrder, ObservedState]:
        """The order with its status updated, and what was observed of it."""
        unstarted, missing = self._unstarted.get(key), await self._lost_hosts(key, order)
        gitops = self._gitops.answer(key, order)
        if (wait := self._gitops.follow(key, order)) is not None:
            self._queue.add_after(key, wait)

        def work() -> tuple[ClusterOrder, ObservedState]:
            observed = replace(observe(order, self._cache), gitops=gitops)
            return self._status.sync(order, observed, lock, unstarted, missing), observed

        try:
            result = await self._in_pool(work)
        except KubeError:
            if missing:
                self._hosts.suspect(order.uid)
            raise
        self._unstarted.pop(key, None)
        if gitops is not None:
            self._gitops.has_used(key)
        return result

    async def _lost_hosts(self, key: Key, order: ClusterOrder) -> Outcome | None:
        """What to report where the order may have lost a host, and the hub says so."""
        if not self._hosts.take(order):
            return None
        try:
            return (await self._in_pool(lambda: lost_hosts(self._kube, self._settings.names, [order]))).get(order.uid)
        except KubeError as error:
            log.warning("the hosts of %s: %s", key, sentence(error))
            asyncio.get_running_loop().call_later(HOSTS_SECONDS, self._hosts.suspect, order.uid)
            return None  # the rest of its status is worth more

    async def _lock(self, key: Key) -> LockState | None:
        """The order's lock. Only the hub's answer counts for an expired one: the cache may lag."""
        lock = self._cache.lock(key)
        if lock and lock.expired_at(self._now()):
            return await self._in_pool(lambda: lease.read(self._kube, *key, site=self._settings.names.site_namespace))
        return lock

    async def _decide(self, key: Key, order: ClusterOrder, observed: ObservedState, lock: LockState | None) -> None:
        now, clock = self._now(), time.monotonic()
        if self._in_flight.run_of(key):
            return
        if lock and not lock.is_free(now):
            self._in_flight.cancel(key)
            self._queue.add_after(key, _until_expiry(lock, now) or BROKEN_SECONDS)
            return
        action = self._next_action(order, observed)
        resync = action is None and self._retries.resync_is_due(key, order, clock)
        if action is None and not resync:
            self._retries.settled(key)
            self._in_flight.cancel(key)
            self._queue.add_after(key, self._retries.next_wake_up(key, order, now, clock))
            return
        action = action or "provision"
        if self._in_flight.is_pending(key, action, order.generation):
            return
        if delay := self._retries.delay(key, order, action, clock):
            self._queue.add_after(key, delay)
            return
        pending = await self._in_pool(lambda: self._confirmed(key, action, resync))
        if pending:
            self._in_flight.request(key, pending)
            self._may_start.set()
        else:
            self._in_flight.cancel(key)

    def _confirmed(self, key: Key, action: Action, resync: bool) -> PendingAction | None:
        """The action decided again on the hub's own state, not on the caches. Where they differ, the next event brings the rest."""
        lock = lease.read(self._kube, *key, site=self._settings.names.site_namespace)
        order = self._run.find(*key)
        if order is None or not lock.is_free(self._kube.server_time()):
            return None
        observed = self._run.observe(order)
        if self._next_action(order, observed) != (None if resync else action):
            return None
        reason = RESYNC if resync else action_reason(order, observed.cluster, action)
        return PendingAction(action, reason, order.uid, order.generation, lock.token)

    def _next_action(self, order: ClusterOrder, observed: ObservedState) -> Action | None:
        return next_action(order, observed, self._now())

    def _now(self) -> datetime:
        return self._kube.server_time() or datetime.now(UTC)

    # In-flight runs

    def _complete_if_ended(self, key: Key, order: ClusterOrder, lock: LockState | None) -> None:
        """Complete the order's run if it has ended; else reconcile again when it may have."""
        now, clock, run = self._now(), time.monotonic(), self._in_flight.run_of(key)
        if run is None:
            return
        # A run that has yet to lock the order will skip it then.
        obsolete = order.management_state != "managed" or (order.is_deleting and run.action != "delete")
        if not obsolete and self._in_flight.is_late(key, lock, clock):
            until = now + timedelta(seconds=self._in_flight.gives_up_in(key, clock))
            self._unstarted[key] = UnstartedRun(run.orders[key].uid, run.id, run.action, self._settings.start_timeout, until)
            self._metrics.was_not_started(run.action)
            log.warning("no run locked %s for %s: check the output of the last run, and that it works on the same hub", key, run.action)
        if not self._in_flight.has_ended(key, lock, now, clock, obsolete):
            timeout = self._in_flight.next_check_in(key, clock) + SECOND_MORE
            self._queue.add_after(key, _until_expiry(lock, now) or timeout)
            return
        if obsolete:
            self._abandon(key, lock)
        else:
            self._complete(key)
        self._retries.run_ended(key, order, run.action, clock)

    def _complete(self, key: Key) -> None:
        self._has_completed(self._in_flight.complete(key))

    def _abandon(self, key: Key, lock: LockState | None) -> None:
        run = self._in_flight.abandon(key, lock.token if lock else 0, time.monotonic())
        if run:
            asyncio.get_running_loop().call_later(ABANDONED_SECONDS, self._may_start.set)
        self._has_completed(run)

    def _has_completed(self, run: InFlightRun | None) -> None:
        if run:
            if run.began is not None:
                self._metrics.finished(run.action, time.monotonic() - run.began)
            self._may_start.set()


def _metadata(item: Object) -> Object:
    """What changes with everything but the status: the generation is that of the spec."""
    return {name: value for name, value in item["metadata"].items() if name != "resourceVersion"}


def _until_expiry(lock: LockState | None, now: datetime) -> float | None:
    """How long until a held lock is free, unless it is renewed: the renewal is an event."""
    free = lock.free_at() if lock and lock.holder else None
    return max(0.0, (free - now).total_seconds()) + SECOND_MORE if free else None
