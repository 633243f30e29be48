"""Follows the VolumeReplicationGroup and the Deployment of a workload on each cluster, and checks what was written to them.

It knows nothing of what the processes of disaster recovery think: only the order in which each API server stored the objects.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.informer import Informer
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.ramen_api import VRGCondition
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.stamps import position
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.vrg import VRG

RAMEN, APPS = "ramendr.openshift.io/v1alpha1", "apps/v1"
GROUP, DEPLOYMENT = "VolumeReplicationGroup", "Deployment"


@dataclass(frozen=True)
class Stored:
    """A version of an object. Versions of one cluster, of all its kinds, are in one order."""

    site: str
    kind: str
    version: int
    item: Object


class Observer:
    def __init__(self, sites: Mapping[str, Access], namespace: str) -> None:
        self._sites = sites
        self._namespace = namespace
        self._stored: list[Stored] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[Observer]:
        loop = asyncio.new_event_loop()
        following = loop.create_task(self._follow())
        thread = threading.Thread(target=self._serve, args=(loop, following), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(following.cancel)
            thread.join(30)
            loop.close()

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop, following: asyncio.Task[None]) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(following)

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for site, access in self._sites.items():
                for kind, api_version in ((GROUP, RAMEN), (DEPLOYMENT, APPS)):
                    tasks.create_task(self._informer(site, access, api_version, kind).follow())

    def _informer(self, site: str, access: Access, api_version: str, kind: str) -> Informer:
        def changed(_before: Object | None, after: Object | None) -> None:
            if after:
                self._stored.append(Stored(site, kind, int(after["metadata"]["resourceVersion"]), after))

        return Informer(access.kube, api_version, kind, changed, namespace=self._namespace)

    @property
    def count(self) -> int:
        return len(self._stored)

    def violations(self, count: int, revisions: Collection[tuple[int, int]]) -> list[str]:
        """Broken invariants in the first so many versions. `revisions` are those that the bucket has, as epoch and revision."""
        found: list[str] = []
        for site in self._sites:
            of_site = sorted((stored for stored in self._stored[:count] if stored.site == site), key=lambda stored: stored.version)
            found += self._of_site(site, of_site, revisions)
        return found

    def _of_site(self, site: str, stored: list[Stored], revisions: Collection[tuple[int, int]]) -> Iterator[str]:
        last: dict[str, Object] = {}
        for each in stored:
            before, stamp = last.get(each.kind), position(each.item)
            if before and position(before) > stamp:
                yield f"{each.kind} of {site} goes back from {position(before)} to {stamp}"
            if stamp != (0, 0) and stamp not in revisions:
                yield f"{each.kind} of {site} has the stamp {stamp}, which was never recorded"
            if each.kind == DEPLOYMENT and before and _is_started(before, each.item):
                yield from _without_data(site, last.get(GROUP))
            last[each.kind] = each.item


def _is_started(before: Object, after: Object) -> bool:
    return bool(not before["spec"]["replicas"] and after["spec"]["replicas"])


def _without_data(site: str, item: Object | None) -> Iterator[str]:
    vrg = VRG.from_object(item) if item else None
    if not vrg or not vrg.is_primary or not vrg.is_true(VRGCondition.CLUSTER_DATA_READY):
        yield f"the workload is started on {site} without its data"
