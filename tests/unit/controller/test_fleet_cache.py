"""When the agent of a hub reported last, from its Lease: as stored, after a renewal is observed, and how long before that."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_cache import FleetCache, Handlers
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import LEASE
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import ObjectList, WatchEvent

NOW, HOUR = datetime(2026, 1, 2, 12, tzinfo=UTC), timedelta(hours=1)
HUB: Object = {
    "metadata": {"name": "east", "uid": "east", "resourceVersion": "1"},
    "spec": {"capacity": {"clusters": 1}},
    "status": {"heartbeat": format_time(NOW - 2 * HOUR)},
}


def lease(version: int, renewed: datetime) -> Object:
    metadata = {"name": LEASE, "namespace": "hub-east", "uid": "lease", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"renewTime": format_time(renewed)}}


class Home:
    """Lists one hub and its Lease, and shows the renewals of the Lease that a test makes. Its clock is the test's."""

    def __init__(self, renewed: datetime) -> None:
        self.time = NOW
        self.renewals: queue.Queue[Object | None] = queue.Queue()
        self._items = {"Hub": HUB, "Lease": lease(1, renewed)}

    def server_time(self) -> datetime:
        return self.time

    def list_all(self, _api_version: str, kind: str, *_selectors: Any) -> ObjectList:
        listed = ObjectList([self._items[kind]] if kind in self._items else [])
        listed.resource_version = "1"
        return listed

    def watch(self, _api_version: str, kind: str, *_more: Any, **_options: Any) -> Iterator[WatchEvent]:
        while kind == "Lease" and (item := self.renewals.get()):
            yield WatchEvent("MODIFIED", item)


def heartbeat(cache: FleetCache) -> datetime | None:
    """As the status of the hub will show it; a reconcile must observe the same."""
    shown = cache.agent("east").heartbeat
    assert cache.fleet([], {}, HOUR).hubs["east"].heartbeat == shown
    return shown


def test_heartbeat_is_that_of_the_lease_and_a_renewal_says_how_long_the_agent_had_not_reported() -> None:
    async def main() -> None:
        home = Home(NOW - HOUR)
        gaps: asyncio.Queue[timedelta] = asyncio.Queue()

        def ignore(*_change: Any) -> None:
            pass

        def reported(_hub: str, gap: timedelta) -> None:
            gaps.put_nowait(gap)

        cache = FleetCache(home, home, Handlers(ignore, ignore, ignore, ignore, ignore, reported))  # type: ignore[arg-type]
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            following = tasks.create_task(follow(cache))
            assert await gaps.get() == timedelta()  # it is listed
            assert heartbeat(cache) == NOW - HOUR
            for version, (passed, gap) in enumerate(((timedelta(), HOUR), (HOUR, HOUR), (timedelta(seconds=10), timedelta(seconds=10))), 2):
                home.time += passed
                home.renewals.put(lease(version, NOW + version * HOUR))  # the clock of the hub is ahead
                assert await gaps.get() == gap
                assert heartbeat(cache) == home.time
            following.cancel()
            home.renewals.put(None)

    asyncio.run(main())


async def follow(cache: FleetCache) -> None:
    async with asyncio.TaskGroup() as tasks:
        await cache.start(tasks)
