# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller of disaster recovery on one cluster: it leads the workloads whose lease it has, and shows the others.

What causes a reconcile is a change of a DRPlacementControl or VolumeReplicationGroup of this cluster, of the state in the bucket, or of the
leader. The leader follows those of the other clusters too. While a request is in progress, time causes one as well: workloads on other
clusters are read again. Without a hub it also fences clusters, as the DRClusters of this cluster request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..coordination.events import Event
from ..coordination.settings import Settings
from ..dr.drpc_status import show_failure
from ..dr.fence_reconciler import FenceReconciler
from ..dr.kinds import DR_CLUSTER, DRPC, RAMEN, VRG
from ..dr.modes import Modes
from ..dr.reconcile import Reconciler, Result
from ..dr.settings import DIRECT
from ..dr.summary import result_info
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..s3.errors import S3Error
from ..s3.store import ObjectStore
from .coordination_source import CoordinationSource
from .informer import Informer
from .peer_watch import PeerWatch
from .work_queue import Key, WorkQueue

WORKERS = 8
PROGRESS_SECONDS = 1.0  # while a request is in progress, or something is waited for
RESYNC_SECONDS = 300.0
UNSETTLED = ("Waiting", "Acting", "DeadlineExceeded", "StaleRevision", "Superseded")


class DrController:
    """The tasks of one process. Events of coordination are passed on; each reconcile that changed something is an event too."""

    def __init__(self, store: ObjectStore, settings: Settings) -> None:
        self._kube = Kube.connect(settings.connection)
        self._store = store
        self._writer = f"{settings.holder}-{settings.instance}"
        # A leader stops a third of the ttl before the next one begins. The last request that it sends takes half of the
        # timeout.
        self._modes = Modes(self._kube, settings.site_namespace, store, self._writer, longest=settings.ttl / 2)
        self._source = CoordinationSource(store, settings)
        self._queue = WorkQueue(self._handle)
        self._epochs: dict[Key, int] = {}
        self._put: Callable[[Event], Awaitable[None]] = _drop
        self._drpcs = Informer(self._kube, RAMEN, DRPC, self._changed)
        self._vrgs = Informer(self._kube, RAMEN, VRG, self._changed)
        self._fence_queue = WorkQueue(self._fence)
        self._fences = FenceReconciler(self._kube, settings.cluster)
        self._clusters = Informer(self._kube, RAMEN, DR_CLUSTER, self._cluster_changed)
        self._peers = PeerWatch(lambda: self._modes.peers(settings.cluster), self._changed_on_peer)

    async def run(self, put: Callable[[Event], Awaitable[None]]) -> None:
        """Run until cancelled, and hand each event to `put`."""
        self._put = put
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._source.run(self._coordinate))
            tasks.create_task(self._drpcs.follow())
            tasks.create_task(self._vrgs.follow())
            tasks.create_task(self._clusters.follow())
            tasks.create_task(self._fence_queue.work())
            tasks.create_task(self._peers.run())
            for _worker in range(WORKERS):
                tasks.create_task(self._queue.work())

    async def _coordinate(self, event: Event) -> None:
        if "namespace" in event and "name" in event:
            key = Key(event["namespace"], event["name"])
            if event["type"] == "leader_acquired":
                self._epochs[key] = event["epoch"]
            elif event["type"] == "leader_lost":
                self._epochs.pop(key, None)
            self._queue.add_coalesced(key)
        await self._put(event)

    def _changed(self, before: Object | None, after: Object | None) -> None:
        metadata = (after or before or {})["metadata"]
        self._queue.add_coalesced(Key(metadata["namespace"], metadata["name"]))

    def _cluster_changed(self, before: Object | None, after: Object | None) -> None:
        self._fence_queue.add_coalesced(Key("", (after or before or {})["metadata"]["name"]))

    async def _fence(self, key: Key) -> None:
        if self._clusters.get(key) is None:
            self._fence_queue.forget(key)
            return
        # Ramen's hub operator fences where there is a hub.
        complete = await asyncio.to_thread(lambda: self._modes.shared_access().mode != DIRECT or self._fences.reconcile(key.name))
        self._fence_queue.add_after(key, RESYNC_SECONDS if complete else PROGRESS_SECONDS)

    def _changed_on_peer(self, key: Key) -> None:
        """The leader acts on it. The others show what the leader records then."""
        if key in self._epochs:
            self._queue.add_coalesced(key)

    async def _handle(self, key: Key) -> None:
        if self._drpcs.get(key) is None and key not in self._epochs:
            self._queue.forget(key)
            return
        result = await asyncio.to_thread(self._reconcile, key)
        self._queue.add_after(key, PROGRESS_SECONDS if result.ended in UNSETTLED else RESYNC_SECONDS)
        if result.recorded or result.actions or result.problems:
            await self._put({"type": "placement_reconciled"} | result_info(result))

    def _reconcile(self, key: Key) -> Result:
        workload = WorkloadRef(*key)
        try:
            return self._reconcile_workload(workload, self._epochs.get(key))
        except (S3Error, KubeError) as error:
            with contextlib.suppress(KubeError):
                show_failure(self._kube, workload, error)
            raise

    def _reconcile_workload(self, workload: WorkloadRef, epoch: int | None) -> Result:
        # The settings are read again and again: the mode can be changed on a running system. Connections are kept.
        reconciler = Reconciler(self._kube, self._modes.shared_access(), self._store, self._writer)
        if epoch is None:
            return reconciler.watch(workload)
        return reconciler.lead(workload, epoch, lambda: self._source.manager.is_acting(workload, epoch))


async def _drop(_event: Event) -> None:
    """Before the controller runs there is no consumer."""
