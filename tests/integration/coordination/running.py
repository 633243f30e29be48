"""A lease manager that runs in the event loop of a test, and the events it has emitted so far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.events import Event
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.manager import LeaseManager
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore

WORKLOAD = WorkloadRef("shop", "database")
TTL = 60.0  # the machine may stall for almost two thirds of it
POLL = 0.1
WAIT_SECONDS = 120


class Running:
    def __init__(self, store: ObjectStore, **settings: Any) -> None:
        self.events: list[Event] = []
        defaults = {"workloads": [WORKLOAD], "holder": "east", "ttl": TTL, "poll": POLL}
        self.manager = LeaseManager(store, Settings(**defaults | settings))
        self.task = asyncio.create_task(self.manager.run(self.put))

    async def put(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["type"] == kind]

    async def until(self, condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := condition()):
            if self.task.done():
                self.task.result()
            assert time.monotonic() < deadline, f"{what} did not happen; events: {self.events}"
            await asyncio.sleep(0.02)
        return found

    async def next(self, kind: str, count: int = 1) -> Event:
        """The `count`-th event of this kind."""
        events = await self.until(lambda: self.of(kind)[count - 1 :], kind)
        event: Event = events[0]
        return event


@asynccontextmanager
async def running(store: ObjectStore, **settings: Any) -> AsyncIterator[Running]:
    """A manager that is cancelled at the end, as ansible-rulebook does."""
    run = Running(store, **settings)
    try:
        yield run
    finally:
        run.task.cancel()
        with suppress(asyncio.CancelledError):
            await run.task


def documents(store: ObjectStore, workload: WorkloadRef = WORKLOAD) -> DocumentStore:
    return DocumentStore(store, workload.identity())
