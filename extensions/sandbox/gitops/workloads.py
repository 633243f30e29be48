"""A stand-in for the nodes of a cluster that has none: it runs the images that it knows, and reports all others as running.

It knows the images of Flux's controllers. A Deployment of one starts the real controller as a process of this machine, with the
cluster's admin kubeconfig. The Deployment is available while that process is ready, and the process restarts as a container does. Of
every other Deployment, StatefulSet or Pod only the status is written: nothing runs behind it, there are no ReplicaSets, and
Deployments have no Pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import logging
from pathlib import Path

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import Informer, in_thread
from ....plugins.module_utils.controller.work_queue import Key, WorkQueue
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import Conflict, NotFound
from .flux_controllers import FluxControllers
from .workload_status import STATUS, problem

log = logging.getLogger("workloads-standin")

FIELD_MANAGER = "workloads-standin"
KINDS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "Pod": "v1"}


class Workloads:
    """The workloads of one cluster. `folder` is for the processes of its controllers, and `name` for the report of them."""

    def __init__(self, name: str, kube: Kube, kubeconfig: Path, folder: Path) -> None:
        self._kube = kube
        self._queues = {kind: WorkQueue(functools.partial(self._reconcile, kind)) for kind in KINDS}
        self._informers = {kind: Informer(kube, api, kind, functools.partial(self._changed, kind)) for kind, api in KINDS.items()}
        self._controllers = FluxControllers(name, kubeconfig, folder, self._queues["Deployment"].add)

    async def run(self) -> None:
        """Work until cancelled; then end every process."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for kind in KINDS:
                    tasks.create_task(self._informers[kind].follow())
                    tasks.create_task(self._queues[kind].work())
        finally:
            await self._controllers.stop_all()

    async def listed(self) -> None:
        """Wait until every kind is followed."""
        await asyncio.gather(*(informer.listed.wait() for informer in self._informers.values()))

    def _changed(self, kind: str, before: Object | None, after: Object | None) -> None:
        metadata = (after or before or {})["metadata"]
        self._queues[kind].add(Key(metadata["namespace"], metadata["name"]))

    async def _reconcile(self, kind: str, key: Key) -> None:
        item = self._informers[kind].get(key)
        # Members of a list do not name their kind.
        item = {"apiVersion": KINDS[kind], "kind": kind, **item} if item else None
        waits = await self._controllers.ensure(key, item) if kind == "Deployment" else ""
        if item is None or "deletionTimestamp" in item["metadata"]:
            return
        status = STATUS[kind](item, waits or problem(item), _now())
        if status != item.get("status"):
            with contextlib.suppress(Conflict, NotFound):  # the change that it lost to comes as an event
                changed = await in_thread(lambda: self._kube.replace(item | {"status": status}, subresource="status"))
                self._informers[kind].remember(changed)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
