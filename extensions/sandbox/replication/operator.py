"""The stand-in's control loop: every change of a cluster queues what depends on it, and each reconcile reads everything again.

Groups are reconciled over all clusters at once, claims, workloads, DRClusters and NetworkFences on each.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from ....plugins.module_utils.common.timestamps import format_time
from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import in_thread
from ....plugins.module_utils.controller.work_queue import Key, WorkQueue
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import NotFound
from . import claims
from .drclusters import PREFIX, drcluster_status, fence_status, is_failing_over
from .faults import ACTIVATE, Delays, Faults, Step
from .faults import FENCE as FENCE_STEP
from .groups import Groups, now_in_utc
from .member import Member, namespaces_of
from .site import CLAIM, CLUSTER, CONTROL, FENCE, GROUP, VOLUME, Site
from .volumes import Volume, selected
from .workloads import KINDS as WORKLOADS
from .workloads import claims_of, templated_claims, unready_because, uses, workload_status

WORKERS = 4
CHECK_SECONDS = 0.5
LISTED_SECONDS = 20.0


class Operator:
    """Serves all clusters that take part, by name."""

    def __init__(self, clusters: Mapping[str, Kube], folder: Path, foreign_workloads: Collection[str] = ()) -> None:
        """On the clusters of `foreign_workloads` another stand-in writes the status of workloads: two would never agree."""
        self._folder = folder
        self._foreign_workloads = foreign_workloads
        self._groups = Groups()
        self._delays = Delays()
        self._sites = [Site(name, kube, self._changed) for name, kube in clusters.items()]
        self._group_queue = WorkQueue(self._reconcile_group)
        self._queues = {
            (site.name, kind): WorkQueue(functools.partial(work, site, kind))
            for site in self._sites
            for kind, work in [
                (CLAIM, self._claim),
                (CLUSTER, self._drcluster),
                (FENCE, self._network_fence),
                *((kind, self._workload) for kind in WORKLOADS),
            ]
        }

    async def run(self) -> None:
        """Work until cancelled. It is ready when it has listed the objects of every cluster; one that does not answer is not waited for."""
        informers = [informer for site in self._sites for informer in site.informers.values()]
        async with asyncio.TaskGroup() as tasks:
            for informer in informers:
                tasks.create_task(informer.follow())
            for queue in (self._group_queue, *self._queues.values()):
                for _worker in range(WORKERS):
                    tasks.create_task(queue.work())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*(informer.listed.wait() for informer in informers)), LISTED_SECONDS)
            (self._folder / "ready").touch()
            await self._follow_outages()

    async def _follow_outages(self) -> None:
        """Queue every group when a cluster begins or ceases to answer: no object of another cluster changes with that."""
        known: set[str] = set()
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            reachable = {site.name for site in self._sites if site.reachable}
            if reachable != known:
                known = reachable
                self._queue_groups()

    # What depends on what

    def _changed(self, site: Site, item: Object) -> None:
        kind, key = item["kind"], Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])
        if (site.name, kind) in self._queues:
            self._queues[site.name, kind].add(key)
        if kind == GROUP:
            self._group_queue.add(key)
        elif kind in (CLUSTER, FENCE):
            if kind == CLUSTER:
                self._queues[site.name, FENCE].add(Key("", f"{PREFIX}{key.name}"))  # it may have other faults
            self._queue_groups()
            for other in self._sites:
                self._queue_workloads(other)
        elif kind == CONTROL:
            self._queue_drclusters(site)
        else:
            namespace = key.namespace or key.name
            self._queue_groups(namespace)
            if kind in (CLAIM, VOLUME):
                self._queue_workloads(site, namespace)
            elif kind in WORKLOADS:
                self._queue_deleted_claims(site, namespace)

    def _queue_groups(self, namespace: str = "") -> None:
        for site in self._sites:
            for vrg in site[GROUP].all():
                if not namespace or namespace in (vrg["metadata"]["namespace"], *namespaces_of(vrg)):
                    self._group_queue.add(_key(vrg))

    def _queue_workloads(self, site: Site, namespace: str = "") -> None:
        for kind in WORKLOADS:
            for workload in site[kind].below(namespace) if namespace else site[kind].all():
                self._queues[site.name, kind].add(_key(workload))

    def _queue_drclusters(self, site: Site) -> None:
        for cluster in site[CLUSTER].all():
            self._queues[site.name, CLUSTER].add(_key(cluster))

    def _queue_deleted_claims(self, site: Site, namespace: str) -> None:
        """A claim that was deleted while a workload used it."""
        for claim in site[CLAIM].below(namespace):
            if "deletionTimestamp" in claim["metadata"]:
                self._queues[site.name, CLAIM].add(_key(claim))

    # Reconciles

    def _fenced(self) -> set[str]:
        return {name for site in self._sites if site.reachable for name in site.fences()}

    async def _reconcile_group(self, key: Key) -> None:
        fenced = self._fenced()
        found = [(site, site[GROUP].get(key)) for site in self._sites if site.reachable]
        members = [Member.of(site, vrg, site.name in fenced) for site, vrg in found if vrg]
        again = await in_thread(lambda: self._groups.reconcile(members))
        for member in members:
            for item in member.written:
                self._remember(member.site, item)
        if again is not None:
            self._group_queue.add_after(key, again)

    async def _claim(self, site: Site, _kind: str, key: Key) -> None:
        claim = site[CLAIM].get(key)
        if claim is None:
            return
        with contextlib.suppress(NotFound):  # deleted meanwhile
            if "deletionTimestamp" not in claim["metadata"]:
                await in_thread(lambda: claims.bind(site.kube, claim))
            elif not uses(site.workloads(key.namespace), key.name):
                groups = [vrg for vrg in site[GROUP].all() if key.namespace in namespaces_of(vrg)]
                is_protected = any(selected(claim, vrg["spec"]["pvcSelector"]) for vrg in groups)
                await in_thread(lambda: claims.release(site.kube, claim, is_protected))

    async def _workload(self, site: Site, kind: str, key: Key) -> None:
        workload = site[kind].get(key)
        if workload is None:
            return
        mounted = {item["metadata"]["name"]: item for item in site[CLAIM].below(key.namespace)}
        if missing := [claim for name, claim in templated_claims(workload).items() if name not in mounted]:
            await in_thread(lambda: claims.create(site.kube, missing))
        if site.name in self._foreign_workloads:
            return
        volumes = {volume.claim: volume for volume in map(Volume.from_object, site[VOLUME].below(key.namespace))}
        is_fenced = bool(claims_of(workload)) and site.name in self._fenced()
        unready = unready_because(workload, mounted, volumes, is_fenced)
        await self._write_status(site, workload, workload_status(workload, unready, format_time(now_in_utc())))

    async def _drcluster(self, site: Site, _kind: str, key: Key) -> None:
        cluster = site[CLUSTER].get(key)
        if cluster is None:
            return
        faults = Faults.of(cluster)
        controls = [control for control in site[CONTROL].all() if is_failing_over(cluster, [control]) and self._needs_maintenance(control)]
        wait = self._remaining(site, cluster, faults, ACTIVATE) if controls else 0.0
        await self._write_status(site, cluster, drcluster_status(cluster, bool(controls), not wait, format_time(now_in_utc())))
        if wait:
            self._queues[site.name, CLUSTER].add_after(key, wait)

    async def _network_fence(self, site: Site, _kind: str, key: Key) -> None:
        """Fencing, and its end, take the time that the DRCluster of that name says."""
        fence = site[FENCE].get(key)
        if fence is None:
            return
        cluster = site[CLUSTER].get(Key("", key.name.removeprefix(PREFIX)))
        wait = self._remaining(site, fence, Faults.of(cluster), FENCE_STEP)
        await self._write_status(site, fence, fence_status(not wait, fence.get("status") or {}))
        if wait:
            self._queues[site.name, FENCE].add_after(key, wait)

    def _needs_maintenance(self, control: Object) -> bool:
        """Whether the storage of an application has to be in a maintenance mode before a failover, also if its cluster is gone."""
        key = _key(control)
        groups = [vrg for site in self._sites if (vrg := site[GROUP].get(key))]
        claims = [claim for vrg in groups for claim in (vrg.get("status") or {}).get("protectedPVCs") or []]
        return any(claim.get("replicationID", {}).get("modes") for claim in claims)

    def _remaining(self, site: Site, cluster: Object, faults: Faults, step: str) -> float:
        metadata = cluster["metadata"]
        key = Step(site.name, metadata["uid"], metadata["generation"], step)
        return self._delays.remaining(key, faults.seconds.get(step, 0.0), time.monotonic())

    async def _write_status(self, site: Site, item: Object, status: Object) -> None:
        if status == item.get("status"):
            return
        with contextlib.suppress(NotFound):  # deleted meanwhile
            self._remember(site, await in_thread(lambda: site.kube.replace(item | {"status": status}, subresource="status")))

    def _remember(self, site: Site, item: Object) -> None:
        """Store the answer to a write. It is a change too, and its watch event is not a newer one."""
        site.remember(item)
        self._changed(site, item)


def _key(item: Object) -> Key:
    return Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])
