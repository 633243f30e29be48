# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The control loop: whatever changes for an order, observe it, update its status, and start the run it needs.

An event only means that something may have changed. A reconcile reads everything from the informer caches, so it costs no request unless
something has to be written or started. Before a run is started, what it depends on is read from the hub: two watches never lag equally.
What causes a reconcile is in `order_triggers`, the result of its run in `runs`.

All state belongs to the event loop's thread. Requests to the hub are sent by threads of a pool, and those to clusters of tenants by
threads of the poller, for which no worker waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..lock import lease
from ..lock.lease import LockState
from ..orders.lost_hosts import lost_hosts
from ..orders.model import ClusterOrder
from ..orders.next_action import action_reason, next_action
from ..orders.observe import ObservedState, observe
from ..orders.outcome import Action, Outcome
from ..orders.run import Run
from ..orders.selection import OrderName
from ..orders.status_writer import StatusWriter
from .gitops_watch import GitOpsWatch
from .host_watch import HostWatch
from .hub_cache import Handlers, HubCache
from .in_flight import RESYNC, PendingAction
from .informer import in_thread
from .metrics import Metrics, State
from .order_notifications import OrderNotifications
from .order_triggers import OrderTriggers
from .orphan_search import OrphanSearch
from .poller import Poller
from .runs import Runs
from .settings import Settings
from .work_queue import Key, WorkQueue, sentence

log = logging.getLogger(__name__)

Result = TypeVar("Result")

WORKERS = 8
WINDOW_SECONDS = 1.0  # between two writes of one status while its cluster keeps changing
HOSTS_SECONDS = 10.0  # until hosts are read again after an error
LAST_EVENTS_SECONDS = 5.0  # for the Events of a source that ends: less than its Lease as the leader lasts
BROKEN_SECONDS = 60.0  # a watch that is broken for longer is reported


class Controller:
    """One for a hub. `emit` hands an event to the rules engine, and may take its time."""

    def __init__(self, settings: Settings, watching: Kube, kube: Kube, emit: Callable[[Object], Awaitable[None]], metrics: Metrics) -> None:
        self._settings = settings
        self._kube = kube
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="reconcile")
        self._queue = WorkQueue(self._reconcile, WINDOW_SECONDS)
        triggers = OrderTriggers(settings.names, self._queue, self._cached)
        self._triggers = triggers
        handlers = Handlers(self._order_changed, triggers.lock_changed, triggers.namespace_changed, triggers.cluster_changed)
        self._cache = HubCache(watching, kube, settings.names, handlers)
        self._run = Run(kube, settings.names, view=self._cache.live())
        self._status = StatusWriter(self._run)
        self._poller = Poller(self._queue.add)
        self._gitops = GitOpsWatch(kube, self._queue.add, settings.poll)
        self._hosts = HostWatch(watching, kube, settings.names, self._queue.add)
        self._runs = Runs(settings, self._queue, self._pool, self._confirmed, emit, metrics)
        self._notifications = OrderNotifications(emit, metrics)
        self._orphans = OrphanSearch(self._run, self._cache, self._pool, settings.remove_orphans_after)

    async def run(self) -> None:
        """Work until cancelled. An error of the hub ends nothing."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._poller.start(tasks)
                self._gitops.start(tasks)
                await self._cache.start(tasks)
                log.info("following %d orders", sum(1 for _each in self._cache.orders()))
                tasks.create_task(self._runs.start_pending())
                tasks.create_task(self._notifications.send())
                tasks.create_task(self._orphans.run())
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
        return State(True, phases, self._runs.counts(), self._runs.in_flight, len(self._queue), restarts, self._orphans.counts)

    async def _in_pool(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _cached(self, key: Key) -> Object | None:
        """For the triggers, which are made before the cache: it passes its changes to them."""
        return self._cache.order(key)

    def _order_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before or {}
        key = Key(item["metadata"]["namespace"], item["metadata"]["name"])
        if after is None:
            self._forget(key)
            self._notifications.deleted(key, self._order(item))
            return
        self._triggers.follow(key)
        self._hosts.order_changed(key, after)
        if not self._cache.is_listed:
            self._notifications.listed(key, self._order(item))
        self._triggers.order_changed(key, before, after)

    def _enqueue_all(self) -> None:
        for key, _item in self._cache.orders():
            self._queue.add(key)

    def _forget(self, key: Key) -> None:
        for known in (self._triggers, self._notifications, self._cache, self._poller, self._queue, self._hosts, self._gitops):
            known.forget(key)
        self._runs.forget(key, self._cache.lock(key))

    # Reconcile

    async def _reconcile(self, key: Key) -> None:
        order: ClusterOrder | None = None
        try:
            order = await self._reconcile_order(key)
        finally:
            self._triggers.reconciled(key, order.resource_version if order else None)

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
            self._triggers.follow_namespaces(key, sorted(self._cache.namespaces_of(before)))
        lock = await self._lock(key)
        # First of all: no error with an order may keep its run in flight, because other orders wait for that slot.
        self._runs.complete_if_ended(key, before, lock, self._now())
        if before.management_state == "unmanaged":
            self._runs.cancel(key)
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
        self._notifications.reconciled(key, order)
        await self._runs.decide(key, order, observed, lock, self._now())
        return order

    def _order(self, item: Object) -> ClusterOrder:
        return ClusterOrder.from_object(item, self._settings.names)

    def _readable(self, key: Key, item: Object) -> ClusterOrder:
        try:
            return self._order(item)
        except Exception:
            self._runs.complete(key)  # other orders wait for its slot
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
        unstarted, missing = self._runs.unstarted(key), await self._lost_hosts(key, order)
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
        self._runs.unstarted_is_reported(key)
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

    def _confirmed(self, key: Key, action: Action, resync: bool) -> PendingAction | None:
        """The action decided again on the hub's own state, not on the caches. Where they differ, the next event brings the rest."""
        lock = lease.read(self._kube, *key, site=self._settings.names.site_namespace)
        order = self._run.find(*key)
        if order is None or not lock.is_free(self._kube.server_time()):
            return None
        observed = self._run.observe(order)
        if next_action(order, observed, self._now()) != (None if resync else action):
            return None
        reason = RESYNC if resync else action_reason(order, observed.cluster, action)
        return PendingAction(action, reason, order.uid, order.generation, lock.token)

    def _now(self) -> datetime:
        return self._kube.server_time() or datetime.now(UTC)
