# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The event source s3_coordination as a whole: the owner of every task, which ends them all when one of them fails.

Leases follow the DRPlacementControls that exist, and the health of registries is kept current, as far as the settings ask for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..coordination.events import Event
from ..coordination.health import HEALTHY
from ..coordination.manager import LeaseManager
from ..coordination.probe import Probe, api_server_probe
from ..coordination.settings import Settings
from ..dr.kinds import DRPC, RAMEN
from ..kube.client import Kube
from ..s3.store import ObjectStore
from .informer import Informer
from .leader_election import LeaderElector
from .registry_health import RegistryHealth

PROBES = 6  # of the API server within the time of a lease


class CoordinationSource:
    """The tasks of one process."""

    def __init__(self, store: ObjectStore, settings: Settings) -> None:
        self._settings = settings
        self.manager = LeaseManager(store, settings)

    async def run(self, put: Callable[[Event], Awaitable[None]]) -> None:
        """Run until cancelled, and hand each event to `put`."""
        settings = self._settings
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.manager.run(put))
            if settings.follow_drpcs:
                kube, probe = Kube.connect(settings.connection), api_server_probe(settings.connection)
                tasks.create_task(DrpcFollower(kube, probe, settings.ttl, self.manager.follow).run())
            if namespace := settings.registry_namespace:
                kube = Kube.connect(settings.connection)
                election = LeaderElector(kube, namespace, "cluster-registry-health")
                tasks.create_task(election.lead(RegistryHealth(kube, namespace, settings.registry_interval).run))


class DrpcFollower:
    """Calls `follow` with the workloads of all DRPlacementControls, at the start and after each change.

    While the API server does not answer, the last known ones stay for `timeout` seconds. Then this process follows none: a leader that
    cannot read its own cluster does nothing, and while it keeps the leases no other cluster can lead.
    """

    def __init__(self, kube: Kube, probe: Probe, timeout: float, follow: Callable[[list[WorkloadRef]], None]) -> None:
        self._informer = Informer(kube, RAMEN, DRPC, self._changed)
        self._probe, self._timeout = probe, timeout
        self._follow = follow
        self._change = asyncio.Event()
        self._can_lead = True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informer.follow())
            tasks.create_task(self._check_api_server())
            tasks.create_task(self._work())

    def _changed(self, before: Object | None, after: Object | None) -> None:
        if before is None or after is None:
            self._change.set()

    async def _check_api_server(self) -> None:
        answered = time.monotonic()
        while True:
            state, _reason = await asyncio.to_thread(self._probe)
            if state == HEALTHY:
                answered = time.monotonic()
            can_lead = time.monotonic() - answered < self._timeout
            if can_lead != self._can_lead:
                self._can_lead = can_lead
                self._change.set()
            await asyncio.sleep(self._timeout / PROBES)

    async def _work(self) -> None:
        while True:
            await self._change.wait()
            self._change.clear()
            items = [item["metadata"] for item in self._informer.all()] if self._can_lead else []
            self._follow([WorkloadRef(metadata["namespace"], metadata["name"]) for metadata in items])
