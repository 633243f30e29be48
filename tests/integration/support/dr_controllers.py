"""The controller of disaster recovery of a cluster, in a task of the test's own process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.dr_controller import DrController
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import DR_PLACEMENTS, Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import connect

from .dr_run import SECONDS, Recovery


@asynccontextmanager
async def running(dr: Recovery, site: str, **arguments: Any) -> AsyncIterator[list[Event]]:
    """The controller, with the permissions of the shipped roles, and the events it has emitted so far."""
    given = dr.options | {"cluster": site, "kubernetes": {"kubeconfig": dr.kubeconfig(site)}, "poll_interval": 0.5} | arguments
    settings = Settings.from_arguments(given | {"site_namespace": dr.namespace}, DR_PLACEMENTS)
    events: list[Event] = []

    async def put(event: Event) -> None:
        events.append(event)

    task = asyncio.create_task(DrController(connect(settings.store), settings).run(put))
    try:
        yield events
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], Any], what: str, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(condition):
        assert time.monotonic() < deadline, f"{what} did not happen"
        await asyncio.sleep(0.2)
