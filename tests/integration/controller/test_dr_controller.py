"""The controllers of disaster recovery of two clusters, each in its own task: one leads, the other shows, and takes over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.dr_controller import DrController
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from ..support.dr_run import SECONDS, Recovery, recovery
from ..support.replication import Protected


@pytest.fixture
def dr(application: Protected, bucket: dict[str, str]) -> Iterator[Recovery]:
    with recovery(application, bucket) as created:
        yield created


@asynccontextmanager
async def running(dr: Recovery, site: str) -> AsyncIterator[list[Event]]:
    """The controller of a cluster, with the permissions of the shipped roles, and the events it has emitted so far."""
    given = {"cluster": site, "kubernetes": {"kubeconfig": dr.kubeconfig(site)}, "poll_interval": 0.5}
    settings = Settings.from_arguments(dr.options | given)
    events: list[Event] = []

    async def put(event: Event) -> None:
        events.append(event)

    task = asyncio.create_task(DrController(connect(dr.options), settings, dr.namespace).run(put))
    try:
        yield events
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, f"{what} did not happen"
        await asyncio.sleep(0.2)


def test_one_leads_the_other_shows_and_takes_over(dr: Recovery) -> None:
    dr.application.place("east")
    dr.application.place("west", replicas=0)
    dr.protect("east")

    def shows(site: str, phase: str, progression: str) -> bool:
        status = dr.drpc(site).get("status", {}) if dr.has_drpc(site) else {}
        return (status.get("phase"), status.get("progression")) == (phase, progression)

    async def scenario() -> None:
        async with running(dr, "west") as seen:
            async with running(dr, "east") as events:
                await until(lambda: shows("east", "Deployed", "Completed") and shows("west", "Deployed", "Completed"), "the deployment")
                assert any(event["type"] == "leader_acquired" and event["holder"] == "east" for event in events)
                assert any(event["type"] == "placement_reconciled" and "make east primary" in event["actions"] for event in events)
                if not any(event["type"] == "leader_acquired" for event in seen):
                    assert not any(event["type"] == "placement_reconciled" for event in seen), "a follower acts on nothing"
            dr.ask("west", action="Failover", failoverCluster="west")
            await until(lambda: shows("west", "FailedOver", "Completed"), "the failover by the next leader")
            assert any(event["type"] == "leader_acquired" and event["holder"] == "west" for event in seen)

    asyncio.run(scenario())
    dr.application.until_running("west")
