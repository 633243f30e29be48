"""The stand-in for nodes as a process beside a cluster of the sandbox: for the hub and for further clusters."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.config import target
from ..cluster import Cluster
from ..processes import Process, write_json
from .workloads import FIELD_MANAGER, Workloads

log = logging.getLogger("workloads-standin")

STANDIN = "workloads-standin"
PACKAGE = __package__


class WorkloadsStandin:
    """The process in `folder`, which holds its log and the folders of the controllers that it runs."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._process: Process | None = None

    async def start(self) -> None:
        """Start it unless it runs, and return when it watches the cluster."""
        if self._process and self._process.running:
            return
        await self.stop()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ready = self._folder / "ready"
        ready.unlink(missing_ok=True)
        options = ["--name", self._cluster.name, "--kubeconfig", str(self._cluster.kubeconfig), "--folder", str(self._folder)]
        self._process = Process(STANDIN, [sys.executable, "-m", f"{PACKAGE}.standin", *options], self._folder)
        await self._process.start()
        while not ready.exists():
            self._process.check()
            await asyncio.sleep(0.05)
        write_json(self._folder / "standin.json", {"name": self._cluster.name, "processes": [self._process.describe()]})

    async def stop(self) -> None:
        if self._process:
            await self._process.stop()
        self._process = None


async def run(name: str, kubeconfig: Path, folder: Path) -> None:
    log.info("This is a stand-in for the nodes of %s: Flux's controllers run, other workloads are only reported as running.", name)
    workloads = Workloads(name, Kube(target({"kubeconfig": str(kubeconfig)}, {}), field_manager=FIELD_MANAGER), kubeconfig, folder)
    working = asyncio.create_task(workloads.run())
    loop = asyncio.get_running_loop()
    for stop in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(stop, working.cancel)
    await workloads.listed()
    (folder / "ready").touch()
    try:
        await working
    except asyncio.CancelledError:
        log.info("ended")


def main() -> int:
    parser = argparse.ArgumentParser(description="A stand-in for the nodes of a cluster.")
    parser.add_argument("--name", required=True, help="of the cluster")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="of the cluster")
    parser.add_argument("--folder", type=Path, required=True, help="for the data and logs of controllers")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(run(arguments.name, arguments.kubeconfig, arguments.folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
