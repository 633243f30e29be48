"""The stand-in's control loop: one reconcile of a HostedCluster and its NodePools does all that can be done now, and ends.

Starting an API server takes seconds, so a task of its own does it and adds the key to the queue again when it is done.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import secrets
from pathlib import Path

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import in_thread
from ....plugins.module_utils.controller.work_queue import Key, WorkQueue
from ....plugins.module_utils.kube.client import Kube
from .. import gobuild
from ..cluster import Cluster
from ..gitops.workloads import Workloads
from ..processes import ProcessDied
from .agents import Agents, agent_namespace
from .console import publish
from .dependencies import Dependencies, generated_fields, generated_key
from .hub import NODE_POOL, Hub, connect, is_deleting, key_of, unreachable_kubeconfig
from .nodes import HostedNodes, Machines, ready_count
from .pools import node_pool_status
from .status import (
    MODE,
    RECONCILED,
    STATUS_ONLY,
    VALID_CONFIGURATION,
    ControlPlane,
    Faults,
    Problem,
    annotation,
    hosted_cluster_status,
    running_release,
)

log = logging.getLogger("hypershift-standin")

FINALIZER = "hypershift.openshift.io/finalizer"
WORKERS = 8
STARTS_AT_ONCE = 2
CHECK_SECONDS = 1.0
RESTART_SECONDS = 5.0
GONE_SECONDS = 0.2


class HostedControlPlane:
    """The processes of one HostedCluster, started by a task of their own; the queue gets the key when the API server is ready."""

    def __init__(self, key: Key, folder: Path, queue: WorkQueue, turns: asyncio.Semaphore) -> None:
        self.key = key
        self.cluster = Cluster(str(key), folder, gobuild.programs(gobuild.KUBERNETES))
        self.nodes: HostedNodes | None = None
        self._queue = queue
        self._turns = turns
        self._starting: asyncio.Task[None] | None = None
        self._workloads: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        return self.nodes is not None and self.cluster.running

    @property
    def crashed(self) -> bool:
        return self.nodes is not None and not self.cluster.running

    def start(self) -> None:
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())

    async def _start(self) -> None:
        async with self._turns:
            self.nodes = None
            await self._stop_workloads()
            try:
                await self.cluster.start()
                kube, folder = connect(self.cluster.kubeconfig), self.cluster.folder / "flux"
                self._workloads = asyncio.create_task(Workloads(str(self.key), kube, self.cluster.kubeconfig, folder).run())
                self.nodes = HostedNodes(kube)
            except ProcessDied as death:
                log.error("%s: %s", self.key, death)
                self._queue.add_after(self.key, RESTART_SECONDS)
                return
        log.info("%s: control plane is up at %s", self.key, self.cluster.url)
        self._queue.add(self.key)

    async def stop(self) -> None:
        if self._starting:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        self.nodes = None
        await self._stop_workloads()
        await self.cluster.stop()

    async def _stop_workloads(self) -> None:
        if self._workloads:
            self._workloads.cancel()
            await asyncio.gather(self._workloads, return_exceptions=True)
        self._workloads = None

    async def remove(self) -> None:
        await self.stop()
        await self.cluster.remove()


class Operator:
    """Reconciles every HostedCluster of the hub with its NodePools."""

    def __init__(self, hub: Kube, folder: Path, status_only: bool) -> None:
        self._hub = Hub(hub, self._changed)
        self._agents = Agents(hub, self._agents_changed)
        self._folder = folder
        self._status_only = status_only
        self._queue = WorkQueue(self._reconcile)
        self._turns = asyncio.Semaphore(STARTS_AT_ONCE)
        self._planes: dict[str, HostedControlPlane] = {}
        self._dependencies = Dependencies(self._hub, new_namespaces=not status_only)
        self._secrets_written: dict[str, bytes] = {}
        self._consoles: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled; then end every process."""
        try:
            async with asyncio.TaskGroup() as tasks:
                informers = (*self._hub.informers, self._agents.informer)
                for informer in informers:
                    tasks.create_task(informer.follow())
                for informer in informers:
                    await informer.listed.wait()
                (self._folder / "ready").touch()
                tasks.create_task(self._requeue_crashed())
                for _worker in range(WORKERS):
                    tasks.create_task(self._queue.work())
                    tasks.create_task(self._agents.queue.work())
        finally:
            await asyncio.gather(*(plane.stop() for plane in self._planes.values()))

    def _changed(self, item: Object) -> None:
        """The key of a NodePool is that of its HostedCluster."""
        name = item["spec"]["clusterName"] if item["kind"] == NODE_POOL else item["metadata"]["name"]
        self._queue.add(Key(item["metadata"]["namespace"], name))

    def _agents_changed(self, namespace: str) -> None:
        for cluster in self._hub.hosted_clusters.all():
            if agent_namespace(cluster) == namespace:
                self._queue.add_coalesced(key_of(cluster))

    async def _requeue_crashed(self) -> None:
        """Restart control planes that have crashed, as a kubelet would."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for plane in self._planes.values():
                if plane.crashed:
                    self._queue.add(plane.key)

    async def _reconcile(self, key: Key) -> None:
        cluster = self._hub.hosted_clusters.get(key)
        pools = [pool for pool in self._hub.node_pools.below(key.namespace) if pool["spec"]["clusterName"] == key.name]
        if cluster is None or is_deleting(cluster):
            await self._tear_down(cluster, pools)
            return
        cluster = await self._accept(cluster)
        plane = await self._control_plane(key, cluster)
        if plane.available:
            await self._write_secrets(cluster)
        stuck = plane.problem is not None and plane.problem.condition == RECONCILED and not plane.available
        ready = 0 if stuck else await self._node_pools(cluster, [pool for pool in pools if not is_deleting(pool)], plane)
        for pool in filter(is_deleting, pools):
            await self._agents.unbind_all(pool)
            await self._remove_finalizer(pool)
        await self._publish_console(cluster)
        await self._hub.write_status(cluster, hosted_cluster_status(cluster, plane, ready, _now()))

    async def _accept(self, cluster: Object) -> Object:
        """The HostedCluster as HyperShift takes it over: it has a first status before the finalizer, and the fields that are generated."""
        if not cluster.get("status"):
            await self._hub.write_status(cluster, hosted_cluster_status(cluster, ControlPlane(), 0, _now()))
            cluster = self._hub.latest(cluster)
        await self._add_finalizer(cluster, {})
        cluster = self._hub.latest(cluster)
        if filled := generated_fields(cluster):
            if encryption := filled.get("secretEncryption"):
                await self._hub.apply_secret(cluster, encryption["aescbc"]["activeKey"]["name"], generated_key())
            await self._hub.patch_spec(cluster, filled)
            cluster = self._hub.latest(cluster)
        return cluster

    async def _add_finalizer(self, item: Object, changes: Object) -> None:
        """Add the finalizer, as HyperShift does before it creates anything for an object."""
        finalizers = item["metadata"].get("finalizers", [])
        if FINALIZER not in finalizers:
            await self._hub.patch_metadata(item, {"finalizers": [*finalizers, FINALIZER], **changes})

    async def _remove_finalizer(self, item: Object) -> None:
        finalizers = item["metadata"].get("finalizers", [])
        if FINALIZER in finalizers:
            await self._hub.patch_metadata(item, {"finalizers": [name for name in finalizers if name != FINALIZER]})

    async def _tear_down(self, cluster: Object | None, pools: list[Object]) -> None:
        """Delete the NodePools first, then the control plane with its namespace, then the finalizer.

        A NodePool without a cluster only waits.
        """
        for pool in pools:
            if is_deleting(pool):
                await self._agents.unbind_all(pool)
                await self._remove_finalizer(pool)
            elif cluster:
                await self._hub.delete(pool)
        if cluster is None or pools:
            return
        if not await self._dependencies.remove(cluster):
            self._queue.add_after(key_of(cluster), GONE_SECONDS)
            return
        uid = cluster["metadata"]["uid"]
        # Also the folder of one that an earlier stand-in started.
        plane = self._planes.pop(uid, None) or self._new_plane(cluster)
        await plane.remove()
        log.info("%s: control plane is removed", plane.key)
        self._secrets_written.pop(uid, None)
        self._consoles.discard(uid)
        await self._remove_finalizer(cluster)

    async def _control_plane(self, key: Key, cluster: Object) -> ControlPlane:
        faults = Faults.of(cluster)
        problem = await self._problem(key, cluster, faults)
        if faults.never_available or (problem and "controlPlaneEndpoint" not in cluster.get("status", {})):
            return ControlPlane(problem=problem)
        if (wait := faults.slow - _age(cluster)) > 0:
            self._queue.add_after(key, wait)
            return ControlPlane(problem=problem)
        if self._only_status(cluster):
            return ControlPlane(available=True, host="127.0.0.1", port=9, problem=problem)
        uid = cluster["metadata"]["uid"]
        plane = self._planes.get(uid)
        if plane is None:
            plane = self._planes[uid] = self._new_plane(cluster)
        if not plane.up:
            plane.start()
            return ControlPlane(problem=problem)
        return ControlPlane(available=True, host="127.0.0.1", port=plane.cluster.port, problem=problem)

    def _new_plane(self, cluster: Object) -> HostedControlPlane:
        key = key_of(cluster)
        return HostedControlPlane(key, self._folder / f"{key.name[:40]}-{cluster['metadata']['uid'][:8]}", self._queue, self._turns)

    async def _problem(self, key: Key, cluster: Object, faults: Faults) -> Problem | None:
        if faults.unknown:
            return Problem(VALID_CONFIGURATION, "InvalidConfiguration", f"The stand-in knows no fault {', '.join(faults.unknown)}")
        problem = await self._dependencies.ensure(cluster)
        if problem:  # it may be solved without an event of a kind that is watched
            self._queue.add_after(key, CHECK_SECONDS)
        return problem

    def _only_status(self, cluster: Object) -> bool:
        return self._status_only or annotation(cluster, MODE) == STATUS_ONLY

    async def _write_secrets(self, cluster: Object) -> None:
        uid, name = cluster["metadata"]["uid"], cluster["metadata"]["name"]
        plane = self._planes.get(uid)
        kubeconfig = plane.cluster.kubeconfig.read_bytes() if plane else unreachable_kubeconfig(name)
        if self._secrets_written.get(uid) == kubeconfig:
            return
        await self._hub.apply_secret(cluster, f"{name}-admin-kubeconfig", {"kubeconfig": kubeconfig})
        if "kubeadminPassword" not in cluster.get("status", {}) and not cluster["spec"].get("configuration", {}).get("oauth"):
            await self._hub.apply_secret(cluster, f"{name}-kubeadmin-password", {"password": secrets.token_urlsafe(18).encode()})
        self._secrets_written[uid] = kubeconfig

    async def _publish_console(self, cluster: Object) -> None:
        uid = cluster["metadata"]["uid"]
        hosted = self._planes.get(uid)
        if hosted and hosted.up and running_release(cluster) and uid not in self._consoles:
            await in_thread(lambda: publish(connect(hosted.cluster.kubeconfig), cluster))
            self._consoles.add(uid)

    async def _node_pools(self, cluster: Object, pools: list[Object], plane: ControlPlane) -> int:
        """Reconcile the nodes and the status of the NodePools; returns how many nodes are Ready in all."""
        owner = {
            "apiVersion": cluster["apiVersion"],
            "kind": cluster["kind"],
            "name": cluster["metadata"]["name"],
            "uid": cluster["metadata"]["uid"],
        }
        for pool in pools:
            references = pool["metadata"].get("ownerReferences", [])
            await self._add_finalizer(pool, {"ownerReferences": [*references, owner]})
        pools = [self._hub.latest(pool) for pool in pools]
        machines = await self._agents.machines(cluster, pools)
        counts, running = await self._ready_nodes(cluster, pools, plane, machines), running_release(cluster).get("version", "")
        for pool in pools:
            name = pool["metadata"]["name"]
            await self._hub.write_status(pool, node_pool_status(pool, counts[name], plane, _now(), running, machines.get(name)))
        return sum(counts.values())

    async def _ready_nodes(self, cluster: Object, pools: list[Object], plane: ControlPlane, machines: Machines) -> dict[str, int]:
        if not plane.available:
            return {pool["metadata"]["name"]: 0 for pool in pools}
        hosted = self._planes.get(cluster["metadata"]["uid"])
        if hosted and (nodes := hosted.nodes):
            return await in_thread(lambda: nodes.reconcile(pools, machines))
        return {pool["metadata"]["name"]: ready_count(pool, machines.get(pool["metadata"]["name"])) for pool in pools}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _age(item: Object) -> float:
    created = datetime.datetime.fromisoformat(item["metadata"]["creationTimestamp"])
    return (datetime.datetime.now(datetime.UTC) - created).total_seconds()
