"""Processes of the benchmark of disaster recovery, with their settings on standard input: a controller, a new leader, and cycles of one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.dr_controller import WORKERS, DrController
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import DR_PLACEMENTS, Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.modes import Modes
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Reconciler, Result
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect

from .floor import BareClient
from .s3_rows import Counted, memory

CYCLES = 2  # the first one also connects


class CountingController(DrController):
    """A controller that counts the workloads that it has reconciled as their leader, until there was nothing to do."""

    settled: ClassVar[set[WorkloadRef]] = set()

    def _reconcile_workload(self, workload: WorkloadRef, epoch: int | None) -> Result:
        result = super()._reconcile_workload(workload, epoch)
        if epoch is not None and result.ended == "Settled":
            self.settled.add(workload)
        return result


async def control(arguments: dict[str, Any]) -> None:
    """The controller of a cluster, until SIGTERM."""
    task = _controller(DrController, arguments)
    asyncio.get_running_loop().add_signal_handler(15, task.cancel)
    await asyncio.wait({task})


async def take_over(size: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """A whole controller that leads so many workloads: until each is reconciled, and its memory then."""
    empty, started = memory(), time.monotonic()
    task = _controller(CountingController, arguments)
    while len(CountingController.settled) < size and not task.done():  # noqa: ASYNC110 - it is changed by other threads
        await asyncio.sleep(0.1)
    seconds = time.monotonic() - started
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return {"seconds": seconds, "memory": memory(), "empty": empty}


def _controller(kind: type[DrController], arguments: dict[str, Any]) -> asyncio.Future[None]:
    async def drop(_event: Event) -> None:
        pass

    settings = Settings.from_arguments(arguments, DR_PLACEMENTS)
    return asyncio.ensure_future(kind(connect(settings.store, settings.connections), settings).run(drop))


def lead(kubeconfig: str, store: dict[str, Any], workloads: list[str], epoch: int, clusters: list[str]) -> dict[str, Any]:
    """Reconcile all workloads as the workers of a controller do, several times; the figures are those of the last time."""
    kube, bucket = Kube.connect({"kubeconfig": kubeconfig}), ObjectStore(Counted(store, WORKERS))
    modes = Modes(kube, SITE_NAMESPACE, bucket, "bench")

    def reconcile(name: str) -> Result:
        return Reconciler(kube, modes.shared_access(), bucket, "bench").lead(WorkloadRef(*name.split("/")), epoch)

    def requests() -> int:
        """To the API servers of all clusters, by their own metrics."""
        return sum(BareClient(Path(cluster)).requests() for cluster in clusters)

    for _cycle in range(CYCLES):
        before, to_bucket, started, cpu = requests(), Counted.requests.total(), time.monotonic(), time.process_time()
        with ThreadPoolExecutor(WORKERS) as threads:
            results = list(threads.map(reconcile, workloads))
        seconds = time.monotonic() - started
    if found := [result for result in results if result.changed or result.ended != "Settled"]:
        raise RuntimeError(f"{len(found)} of {len(results)} applications are not settled: {found[0].ended} {found[0]}")
    return {
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "requests": requests() - before,
        "s3": Counted.requests.total() - to_bucket,
    }


if __name__ == "__main__":
    if sys.argv[1] == "control":
        asyncio.run(control(json.load(sys.stdin)))
    elif sys.argv[1] == "take_over":
        print(json.dumps(asyncio.run(take_over(**json.load(sys.stdin)))))
    else:
        print(json.dumps(lead(**json.load(sys.stdin))))
