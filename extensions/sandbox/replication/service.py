"""Replication as a part of the sandbox: the objects on each further cluster, and one process of the stand-in for all of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from ..cluster import Cluster
from ..processes import Process, read_json, write_json
from ..s3 import ObjectStore
from .setup import cluster_crds, cluster_objects, create_buckets

STANDIN = "replication-standin"
PACKAGE = __package__


class Replication:
    """The stand-in in `folder`, which holds its log. It is started again when other clusters take part."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Process | None = None
        self._clusters: list[str] = []  # those that are prepared
        self._options: list[str] = []  # of the process; a cluster that was restarted may have another address

    async def start(self, clusters: Sequence[Cluster], store: ObjectStore, foreign_workloads: Collection[str]) -> None:
        """Start it for these clusters unless it runs for them, and return when it watches them."""
        names = [cluster.name for cluster in clusters]
        options = [f"{cluster.name}={cluster.url}" for cluster in clusters] + sorted(foreign_workloads)
        if options == self._options and (self._process is None or self._process.running):
            return
        await self.stop()
        if names != self._clusters:
            # Not after a crash: a test may have changed the address of a store.
            s3 = read_json(store.folder / "s3.json")
            await asyncio.to_thread(create_buckets, names, s3)
            await asyncio.gather(*(self._prepare(cluster, names, s3) for cluster in clusters))
            self._clusters = names
        if clusters:
            await self._start(clusters, foreign_workloads)
        self._options = options

    async def _prepare(self, cluster: Cluster, names: Sequence[str], s3: dict[str, str]) -> None:
        if cluster.name not in self._clusters:
            await cluster.install_crds("replication_crds.json", cluster_crds())
        await cluster.apply("replication.json", cluster_objects(names, s3), force=True)

    async def _start(self, clusters: Sequence[Cluster], foreign_workloads: Collection[str]) -> None:
        self._folder.mkdir(exist_ok=True, mode=0o700)
        ready = self._folder / "ready"
        ready.unlink(missing_ok=True)
        options = [f"--cluster={cluster.name}={cluster.kubeconfig}" for cluster in clusters]
        options += [f"--foreign-workloads={name}" for name in foreign_workloads]
        command = [sys.executable, "-m", f"{PACKAGE}", *options, "--folder", str(self._folder)]
        self._process = Process(STANDIN, command, self._folder)
        await self._process.start()
        while not ready.exists():
            self._process.check()
            await asyncio.sleep(0.05)
        write_json(self._folder / "standin.json", {"name": STANDIN, "processes": [self._process.describe()]})

    async def stop(self) -> None:
        if self._process:
            await self._process.stop()
        self._process = None
        (self._folder / "standin.json").unlink(missing_ok=True)
