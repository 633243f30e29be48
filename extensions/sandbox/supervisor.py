"""The process that owns a sandbox: it starts what `desired.json` asks for, watches the processes, and ends them with itself.

SIGHUP makes it reconcile again, SIGTERM and SIGINT end it; with --attached the end of its standard input ends it too, which is
the end of the process that started it. It restarts nothing by itself: a crash is recorded, and the next `up` restarts the process.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import signal
import sys
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from . import gobuild, upstream
from .capi import ClusterApi
from .cluster import Cluster
from .crds import AGENTS_CRD, COLLECTION_CRDS, crds_in, load_crd
from .gitops.gitea import GiteaService
from .gitops.service import GitOpsServices
from .gitops.standin import WorkloadsStandin
from .processes import Process, read_json, write_json
from .replication.service import Replication
from .s3 import ObjectStore
from .screen import UserError
from .site import site_objects

log = logging.getLogger("sandbox")

HUB = "hub"
STANDIN = "hypershift-standin"
PACKAGE = __package__


@dataclass
class DesiredState:
    """The desired state of the sandbox; `request` identifies the command that wrote it."""

    request: str = ""
    clusters: list[str] = field(default_factory=lambda: [HUB])
    s3: bool = False
    capi: bool = False
    replication: bool = False
    gitops: bool = False
    gitea: bool = False
    workloads: list[str] = field(default_factory=list)
    port: int = 0
    status_only: bool = False
    hypershift_crds: str = ""

    @classmethod
    def read(cls, state: Path) -> DesiredState:
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in read_json(state / "desired.json").items() if name in known})

    def write(self, state: Path) -> None:
        write_json(state / "desired.json", asdict(self))


class Supervisor:
    """Reconciles the sandbox in `state` with the desired state."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._clusters: dict[str, Cluster] = {}
        self._store: ObjectStore | None = None
        self._cluster_api: ClusterApi | None = None
        self._replication = Replication(state / "replication")
        self._gitops: GitOpsServices | None = None
        self._gitea: GiteaService | None = None
        self._workloads: dict[str, WorkloadsStandin] = {}
        self._standin: Process | None = None
        self._changed = asyncio.Event()
        self._end = asyncio.Event()

    async def run(self, attached: bool) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._changed.set)
        for stop in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(stop, self._end.set)
        if attached:
            loop.add_reader(sys.stdin.fileno(), self._on_input)
        ending = asyncio.create_task(self._end.wait())
        working = asyncio.create_task(self._work())
        await asyncio.wait({ending, working}, return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await self._stop_all()
        log.info("ended")

    def _on_input(self) -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._end.set()

    async def _work(self) -> None:
        while True:
            self._changed.clear()
            desired = DesiredState.read(self._state)
            error = ""
            try:
                await self._reconcile(desired)
            except UserError as problem:
                error = str(problem)
                log.error("%s", error)
            except Exception as problem:
                error = f"The sandbox cannot start: {problem}"
                log.exception("unexpected")
            write_json(self._state / "sandbox.json", {"answered": desired.request, "error": error})
            if error and not self._clusters:
                return
            await self._changed.wait()

    async def _reconcile(self, desired: DesiredState) -> None:
        for name in [name for name in self._clusters if name not in desired.clusters]:
            if name in self._workloads:
                await self._workloads.pop(name).stop()
            await self._clusters.pop(name).remove()
        binaries = gobuild.programs(gobuild.KUBERNETES)
        for name in desired.clusters:
            port = desired.port if name == HUB else 0
            cluster = self._clusters.get(name) or Cluster(name, self._state / "clusters" / name, binaries, port)
            if not cluster.running:
                log.info("starting cluster %s", name)
                await cluster.start()
                self._clusters[name] = cluster
                if name == HUB:
                    hypershift = crds_in(Path(desired.hypershift_crds)) if desired.hypershift_crds else upstream.hypershift_crds()
                    await cluster.install_crds("crds.json", [*crds_in(COLLECTION_CRDS), *hypershift, load_crd(AGENTS_CRD)])
                    await cluster.apply("site.json", site_objects())
        if HUB in self._clusters and not (self._standin and self._standin.running):
            await self._start_standin(self._clusters[HUB], desired.status_only)
        await self._reconcile_services(desired)

    async def _reconcile_services(self, desired: DesiredState) -> None:
        """What runs beside the clusters."""
        if desired.s3 and not (self._store and self._store.running):
            self._store = self._store or ObjectStore(self._state / "s3", gobuild.programs(gobuild.S3))
            await self._store.start()
        if desired.replication and self._store:
            clusters = [cluster for name, cluster in self._clusters.items() if name != HUB]
            await self._replication.start(clusters, self._store, desired.workloads)
        if desired.gitops and not (self._gitops and self._gitops.running):
            self._gitops = self._gitops or GitOpsServices(self._state / "gitops", gobuild.programs(gobuild.REGISTRY))
            await self._gitops.start()
        if desired.gitea and not (self._gitea and self._gitea.running):
            self._gitea = self._gitea or GiteaService(self._state / "gitea", gobuild.programs(gobuild.GITEA))
            await self._gitea.start()
        for name in [name for name in desired.workloads if name in self._clusters]:
            standin = self._workloads.setdefault(name, WorkloadsStandin(self._clusters[name], self._state / "workloads" / name))
            await standin.start()
        if desired.capi and not (self._cluster_api and self._cluster_api.running):
            programs = gobuild.programs(gobuild.CLUSTER_API)
            self._cluster_api = self._cluster_api or ClusterApi(self._state / "capi", self._clusters[HUB], programs)
            await self._cluster_api.start()

    async def _start_standin(self, hub: Cluster, status_only: bool) -> None:
        folder = self._state / "hypershift"
        folder.mkdir(exist_ok=True, mode=0o700)
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", f"{PACKAGE}.hypershift", "--kubeconfig", str(hub.kubeconfig), "--folder", str(folder)]
        self._standin = Process(STANDIN, [*command, *(["--status-only"] if status_only else [])], folder)
        await self._standin.start()
        while not ready.exists():
            self._standin.check()
            await asyncio.sleep(0.05)
        write_json(folder / "standin.json", {"name": STANDIN, "processes": [self._standin.describe()]})

    async def _stop_all(self) -> None:
        if self._standin:
            await self._standin.stop()
        await asyncio.gather(*(standin.stop() for standin in self._workloads.values()))
        if self._gitops:
            await self._gitops.stop()
        if self._gitea:
            await self._gitea.stop()
        if self._cluster_api:
            await self._cluster_api.stop()
        await self._replication.stop()
        if self._store:
            await self._store.stop()
        await asyncio.gather(*(cluster.stop() for cluster in self._clusters.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Own the sandbox of a state folder until SIGTERM.")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--attached", action="store_true")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    with open(arguments.state / "sandbox.lock", "w") as lock:
        try:
            # A POSIX lock: the kernel names its holder to every process, and releases it however this process ends.
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 0
        asyncio.run(Supervisor(arguments.state).run(arguments.attached))
    return 0


if __name__ == "__main__":
    sys.exit(main())
