# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The control loop of a fleet on its home cluster: whatever changes for a cluster, reconcile it; whatever changes for a hub, show it.

Clusters are reconciled in batches, from informer caches: one write reserves for all clusters of a tenant, or on a hub. Clusters without a
hub are placed in one lane. Those with a hub, whose state is shown, have another, so that they do not wait behind thousands of new ones.

A cluster that was refused waits for its quota to change, one that no hub fits for a hub to change. Time is only the safety net: for
these, and for a cluster that was reconciled from a cache without a write whose answer was lost.

All state belongs to the event loop's thread. Requests are sent by threads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from ..common.types import Object
from ..fleet.hub_state import is_not_reporting, is_ready
from ..fleet.kinds import QUOTA_NAME
from ..fleet.lifetime import Expiry, warned_from
from ..fleet.model import PENDING, FleetCluster
from ..fleet.reconcile import Outcome, Reconciler, ends_of, needs_reconcile
from ..fleet.secret_copies import names_of
from ..fleet.sweep import Swept, sweep
from ..kube.client import Kube
from ..kube.config import target
from .batch_queue import BatchQueue
from .fleet_cache import FleetCache, Handlers
from .fleet_events import cluster_events, deleted_event, ended_event, hub_events
from .fleet_metrics import FleetMetrics, FleetState
from .fleet_settings import FleetSettings
from .hub_monitor import HubMonitor
from .informer import in_thread
from .queueing_hints import hub_may_fit, is_relevant_to_all, quota_freed
from .record_pruner import RecordPruner
from .record_writer import RecordWriter
from .recording_kube import RecordingKube
from .secret_watch import SecretWatch
from .waiting import GROWTH, HUB, QUOTA, Wait, Waiting
from .work_queue import Key, sentence

log = logging.getLogger(__name__)

PLACING, TENDING = "placing", "tending"
# Clusters at most. A batch of placements writes nearly every hub, whose reservations are large: fewer batches, fewer of
# these writes.
BATCHES = {PLACING: 2000, TENDING: 200}
RESYNC_SECONDS = 600.0
FIRST_SWEEP_SECONDS = 30.0  # a new leader first does what waits
BROKEN_SECONDS = 60.0  # a watch that is broken for longer is reported
A_MOMENT = 0.1  # after a time limit, so that it has passed
NAMED = 5  # clusters in a line of the log


class FleetController:
    """One for a home cluster. `emit` hands an event to the rules engine, and may take its time."""

    def __init__(
        self,
        settings: FleetSettings,
        watching: Kube,
        home: Kube,
        emit: Callable[[Object], Awaitable[None]],
        metrics: FleetMetrics,
    ) -> None:
        self._settings = settings
        self._home = home
        self._emit = emit
        self._metrics = metrics
        handlers = Handlers(
            self._cluster_changed,
            self._hub_changed,
            self._quota_changed,
            self._assignment_changed,
            self._tenant_changed,
            self._agent_changed,
        )
        self._cache = FleetCache(watching, home, handlers)
        self._queue = BatchQueue(self._lane, BATCHES)
        self._reconcilers = {lane: Reconciler(self._recording(), settings.site_namespace, settings.weights) for lane in BATCHES}
        self._secrets = SecretWatch(home, settings.secrets_poll, self._queue.add)
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="fleet")
        self._hubs = HubMonitor(self._recording(), lambda: self._cache, settings.hub_timeout, self._pool)
        self._records = RecordPruner(home, settings.records, metrics.exported)
        self._unrecorded = RecordWriter(home)
        self._waiting = Waiting()
        self._notifications: asyncio.Queue[Object] = asyncio.Queue()
        self._orphans = 0
        self._outdated: set[Key] = set()  # as the last sweep found them
        self._began = False

    async def run(self) -> None:
        """Work until cancelled. An error of the home cluster ends nothing."""
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._cache.start(tasks)
                self._began = True
                log.info("following %d clusters on %d hubs", sum(1 for _each in self._cache.clusters()), len(self._cache.hubs()))
                tasks.create_task(self._send_notifications())
                tasks.create_task(self._resync())
                tasks.create_task(self._sweep())
                tasks.create_task(self._records.run())
                tasks.create_task(self._unrecorded.run())
                tasks.create_task(self._secrets.run())
                self._hubs.start(tasks)
                for lane in BATCHES:
                    tasks.create_task(self._work(lane))
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def problems(self) -> list[str]:
        """Why the source is not healthy; empty where it is."""
        return self._cache.problems(BROKEN_SECONDS)

    def state(self) -> FleetState:
        """The state for the metrics."""
        states = Counter(str((item.get("status") or {}).get("state") or PENDING) for _key, item in self._cache.clusters())
        hubs, ready = dict[tuple[str, str], int](), dict[str, int]()
        for item in self._cache.hubs():
            status, name = item.get("status") or {}, item["metadata"]["name"]
            hubs[name, "reserved"] = int(status.get("clusters") or 0)
            hubs[name, "capacity"] = int(item["spec"]["capacity"]["clusters"])
            ready[name] = int(is_ready(status))
        restarts = {informer.kind: informer.restarts for informer in self._cache.informers()}
        return FleetState(True, states, self._waiting.counts(), hubs, ready, len(self._queue), self._orphans, restarts)

    def _recording(self) -> Kube:
        """A connection of its own, so that one part of the work does not wait for another's."""
        loop = asyncio.get_running_loop()

        def observed(item: Object) -> None:
            loop.call_soon_threadsafe(self._cache.observe, item)

        return RecordingKube(target(self._settings.connection), observed)

    # Batches

    def _lane(self, key: Key) -> str:
        item = self._cache.cluster(key)
        is_placed = item is None or (item.get("status") or {}).get("hub") or "deletionTimestamp" in item["metadata"]
        return TENDING if is_placed else PLACING

    async def _work(self, lane: str) -> None:
        while True:
            batch = await self._queue.take(lane, BATCHES[lane])
            failed: set[Key] = set(batch)
            began = time.monotonic()
            try:
                failed = await self._reconcile(lane, batch)
            except Exception as error:  # noqa: BLE001 - of any kind: it ends on the cluster that caused it
                log.warning("a batch of %d clusters failed: %s", len(batch), sentence(error))
                failed = await self._one_by_one(lane, batch) if len(batch) > 1 else failed
            finally:
                self._metrics.took(lane, time.monotonic() - began)
                self._queue.done(batch, failed)

    async def _one_by_one(self, lane: str, batch: Sequence[Key]) -> set[Key]:
        """Which of the clusters fail alone."""
        failed: set[Key] = set()
        for key in batch:
            try:
                failed |= await self._reconcile(lane, [key])
            except Exception as error:  # noqa: BLE001 - of any kind: it ends on this cluster
                log.warning("%s: %s", key, sentence(error))
                failed.add(key)
        return failed

    async def _reconcile(self, lane: str, batch: Sequence[Key]) -> set[Key]:
        """Reconcile the clusters once. Returns those that have to be tried again."""
        secrets = await self._secrets.secrets(batch)
        observed, fleet = self._waiting.moment(), self._cache.fleet(batch, secrets, self._settings.hub_timeout)
        outcomes = await in_thread(lambda: self._reconcilers[lane].reconcile(fleet))
        found = {Key(each.cluster.namespace, each.cluster.name): each for each in outcomes}
        ends = ends_of(fleet, self._settings.site_namespace)
        for cluster in fleet.clusters:
            key = Key(cluster.namespace, cluster.name)
            if key in found:
                self._note(key, found[key], ends.get(cluster.uid), fleet.now, observed)
        failed = {key for key, each in found.items() if each.result == "failed"}
        for key in sorted(failed):
            log.warning("%s: %s", key, found[key].message)
        unfinished = {Key(each.namespace, each.name) for each in fleet.clusters} - found.keys()
        return failed | unfinished

    def _note(self, key: Key, outcome: Outcome, expiry: Expiry | None, now: datetime, observed: int) -> None:
        """Store what the cluster waits for, and report its end. A change during its reconcile that may help requeues it."""
        self._metrics.reconciled(outcome.result)
        if self._waiting.note(key, _wait_of(outcome), observed):
            self._queue.add(key)
        if outcome.result in ("expired", "denied") and expiry:
            self._notifications.put_nowait(ended_event(outcome.cluster.raw, expiry.reason, outcome.message))
        if expiry and not outcome.cluster.is_deleting:
            self._wait_for_end(key, outcome.cluster, expiry, now)

    def _wait_for_end(self, key: Key, cluster: FleetCluster, expiry: Expiry, now: datetime) -> None:
        if times := [moment - now for moment in (warned_from(expiry, cluster), expiry.at) if moment > now]:
            self._queue.add_after(key, min(times).total_seconds() + A_MOMENT)

    # What happens by time

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(RESYNC_SECONDS)
            self._enqueue(self._waiting)

    async def _sweep(self) -> None:
        await asyncio.sleep(min(FIRST_SWEEP_SECONDS, self._settings.sweep))
        while True:
            try:
                self._report(await in_thread(lambda: sweep(self._home, self._settings.site_namespace)))
            except Exception as error:  # noqa: BLE001 - of any kind: the next sweep may succeed
                log.warning("the reservations were not compared with the clusters: %s", sentence(error))
            await asyncio.sleep(self._settings.sweep)

    def _report(self, swept: Swept) -> None:
        self._orphans = len(swept.orphans)
        for what, repaired in (("quota", swept.quotas), ("hub", swept.hubs)):
            for name, uids in repaired.items():
                self._metrics.repaired(len(uids))
                log.warning("the %s %s had reservations that did not match the clusters, and was repaired: %s", what, name, ", ".join(uids))
        for orphan in swept.orphans:
            log.warning(
                "hub %s has an assignment for %s/%s, which does not exist: %s", orphan.hub, orphan.namespace, orphan.name, orphan.uid
            )
        for error in swept.errors:
            log.warning("a sweep: %s", error)
        self._wake_outdated({Key(namespace, name) for namespace, name in swept.outdated})

    def _wake_outdated(self, outdated: set[Key]) -> None:
        """Reconcile what two sweeps in a row found outdated: then no reconcile was under way. What waits is woken by what it waits for."""
        missed = sorted((outdated & self._outdated) - {*self._waiting})
        self._outdated = outdated
        if missed:
            log.warning("%d clusters are not as a reconcile leaves them, and are reconciled again: %s", len(missed), _some(missed))
            self._enqueue(missed)

    async def _send_notifications(self) -> None:
        while True:
            event = await self._notifications.get()
            await self._emit(event)
            self._metrics.emitted(event["type"])

    # Handlers of the informers

    def _enqueue(self, keys: Iterable[Key]) -> None:
        """The oldest first: a batch may not have all of them."""
        for key in sorted(keys, key=self._age):
            self._queue.add(key)

    def _age(self, key: Key) -> tuple[str, Key]:
        item = self._cache.cluster(key)
        return (str(item["metadata"].get("creationTimestamp", "")) if item else "", key)

    def _cluster_changed(self, before: Object | None, after: Object | None) -> None:
        item = after or before or {}
        key = Key(item["metadata"]["namespace"], item["metadata"]["name"])
        if after is None:
            self._forget(key)
            self._unrecorded.deleted(item)
            self._notify([deleted_event(item)])
            return
        self._notify(cluster_events(before, after))
        self._secrets.use(key, names_of(FleetCluster.from_object(after)))
        if not before or needs_reconcile(before, after):
            self._queue.add(key)

    def _forget(self, key: Key) -> None:
        self._queue.forget(key)
        self._secrets.forget(key)
        self._waiting.forget(key)

    def _assignment_changed(self, before: Object | None, after: Object | None) -> None:
        """What the hub reports, and that it has deleted the cluster. Who created an assignment knows that it exists.

        A list after a broken watch may show one for the first time when its hub has reported already.
        """
        cluster = (after or before or {})["spec"]["cluster"]
        key = Key(cluster["namespace"], cluster["name"])
        if (before or (after or {}).get("status")) and self._cache.cluster(key):
            self._queue.add(key)

    def _quota_changed(self, before: Object | None, after: Object | None) -> None:
        metadata = (after or before or {})["metadata"]
        namespace = metadata["namespace"]
        if metadata["name"] != QUOTA_NAME:
            return
        if is_relevant_to_all(before, after):
            is_default = namespace == self._settings.site_namespace
            self._enqueue([key for key, _item in self._cache.clusters()] if is_default else self._cache.clusters_of_tenant(namespace))
        elif quota_freed(before, after):
            self._enqueue(self._waiting.quota_freed(namespace))

    def _hub_changed(self, before: Object | None, after: Object | None) -> None:
        name = (after or before or {})["metadata"]["name"]
        if after is not None:
            self._notify(hub_events(before, after))
            self._hubs.changed(name)
        if after is None or before is None or is_not_reporting(before) != is_not_reporting(after):
            self._enqueue(self._cache.clusters_on(name))  # they say whether their hub reports
        if after is not None and hub_may_fit(before, after):
            self._enqueue(self._waiting.hub_may_fit(name, self._cache.clusters_on(name)))

    def _tenant_changed(self, before: Object | None, after: Object | None) -> None:
        if before and after and before["metadata"].get("labels") != after["metadata"].get("labels"):
            self._enqueue(self._waiting.tenant_changed(after["metadata"]["name"]))

    def _agent_changed(self, hub: str, gap: timedelta) -> None:
        """A gap between heartbeats that ends before it is written is not in the status of the hub, but clusters were reconciled in it."""
        if not self._cache.hub(hub):
            return
        self._hubs.changed(hub)
        if gap > self._settings.hub_timeout:
            bound = self._cache.clusters_on(hub)
            self._enqueue(self._waiting.hub_may_fit(hub, bound) | bound)

    def _notify(self, events: Iterable[Object]) -> None:
        """What happened before this source began is not reported."""
        if self._began:
            for event in events:
                self._notifications.put_nowait(event)


def _wait_of(outcome: Outcome) -> Wait | None:
    if outcome.result == "refused":
        return Wait(QUOTA)
    hub = outcome.cluster.hub
    return (Wait(GROWTH, hub) if hub else Wait(HUB)) if outcome.result == "waiting" else None


def _some(keys: Sequence[Key]) -> str:
    return ", ".join(map(str, keys[:NAMED])) + (", ..." if len(keys) > NAMED else "")
