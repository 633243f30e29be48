"""Processes of the benchmark of disaster recovery, with their settings on standard input: a controller, and cycles of a leader."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.dr_controller import WORKERS, DrController
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.modes import Modes
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Reconciler, Result
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore, connect

from .floor import BareClient
from .s3_rows import Counted, memory

CYCLES = 2  # the first one also connects


async def control(arguments: dict[str, Any]) -> None:
    """The controller of a cluster, until SIGTERM."""

    async def drop(_event: Event) -> None:
        pass

    settings = Settings.from_arguments(arguments)
    task = asyncio.ensure_future(DrController(connect(settings.store, settings.connections), settings, SITE_NAMESPACE).run(drop))
    asyncio.get_running_loop().add_signal_handler(15, task.cancel)
    await asyncio.wait({task})


def lead(kubeconfig: str, store: dict[str, Any], epochs: dict[str, int], clusters: list[str]) -> dict[str, Any]:
    """Reconcile all workloads as the workers of a controller do, several times; the figures are those of the last time."""
    kube, bucket, empty = Kube.connect({"kubeconfig": kubeconfig}), ObjectStore(Counted(store, WORKERS)), memory()
    modes = Modes(kube, SITE_NAMESPACE, bucket, "bench")

    def reconcile(name: str) -> Result:
        return Reconciler(kube, modes.access(), bucket, "bench").lead(WorkloadRef(*name.split("/")), epochs[name])

    def requests() -> int:
        """To the API servers of all clusters, by their own metrics."""
        return sum(BareClient(Path(cluster)).requests() for cluster in clusters)

    for _cycle in range(CYCLES):
        before, to_bucket, started, cpu = requests(), Counted.requests.total(), time.monotonic(), time.process_time()
        with ThreadPoolExecutor(WORKERS) as threads:
            results = list(threads.map(reconcile, epochs))
        seconds = time.monotonic() - started
    if found := [result for result in results if result.changed or result.ended != "Settled"]:
        raise RuntimeError(f"{len(found)} of {len(results)} applications are not settled: {found[0].ended} {found[0]}")
    return {
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "requests": requests() - before,
        "s3": Counted.requests.total() - to_bucket,
        "memory": memory(),
        "empty": empty,
    }


if __name__ == "__main__":
    if sys.argv[1] == "control":
        asyncio.run(control(json.load(sys.stdin)))
    else:
        print(json.dumps(lead(**json.load(sys.stdin))))
