# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller of disaster recovery on one cluster: it leads the workloads whose lease it has, and shows the others.

What causes a reconcile is a change of a DRPlacementControl or VolumeReplicationGroup of this cluster, of the state in the bucket, or of the
leader; and, while a request is in progress, time: changes on other clusters are noticed by reading them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..coordination.events import Event
from ..coordination.settings import Settings
from ..dr.kinds import DRPC, RAMEN, VRG
from ..dr.modes import Modes
from ..dr.reconcile import Reconciler, Result
from ..dr.summary import result_info
from ..kube.client import Kube
from ..s3.store import ObjectStore
from .coordination_source import CoordinationSource
from .informer import Informer
from .work_queue import Key, WorkQueue

WORKERS = 8
PROGRESS_SECONDS = 1.0  # while a request is in progress, or something is waited for
RESYNC_SECONDS = 300.0
UNSETTLED = ("Waiting", "Acting", "TimeIsOver", "StaleRevision")


class DrController:
    """The tasks of one process. Events of coordination are passed on; each reconcile that changed something is an event too."""

    def __init__(self, store: ObjectStore, settings: Settings, site_namespace: str) -> None:
        self._kube = Kube.connect(settings.connection)
        self._store = store
        self._writer = f"{settings.holder}-{settings.instance}"
        self._modes = Modes(self._kube, site_namespace, store, self._writer)
        self._source = CoordinationSource(store, settings)
        self._queue = WorkQueue(self._handle)
        self._epochs: dict[Key, int] = {}
        self._put: Callable[[Event], Awaitable[None]] = _drop
        self._drpcs = Informer(self._kube, RAMEN, DRPC, self._changed)
        self._vrgs = Informer(self._kube, RAMEN, VRG, self._changed)

    async def run(self, put: Callable[[Event], Awaitable[None]]) -> None:
        """Run until cancelled, and hand each event to `put`."""
        self._put = put
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._source.run(self._coordinate))
            tasks.create_task(self._drpcs.follow())
            tasks.create_task(self._vrgs.follow())
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

    async def _handle(self, key: Key) -> None:
        if self._drpcs.get(key) is None and key not in self._epochs:
            self._queue.forget(key)
            return
        result = await asyncio.to_thread(self._reconcile, key)
        self._queue.add_after(key, PROGRESS_SECONDS if result.ended in UNSETTLED else RESYNC_SECONDS)
        if result.recorded or result.actions or result.problems:
            await self._put({"type": "placement_reconciled"} | result_info(result))

    def _reconcile(self, key: Key) -> Result:
        # The settings are read each time: the mode can be changed on a running system. Connections are kept.
        reconciler = Reconciler(self._kube, self._modes.access(), self._store, self._writer)
        workload, epoch = WorkloadRef(*key), self._epochs.get(key)
        return reconciler.watch(workload) if epoch is None else reconciler.lead(workload, epoch)


async def _drop(_event: Event) -> None:
    """Before the controller runs there is no consumer."""
