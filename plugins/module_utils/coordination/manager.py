# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs all coordination of one process: an elector and a watcher for each workload, cluster health, and event delivery.

Requests run in threads over one client with a bounded number of connections. A slow consumer of events delays no
renewal.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ..s3.store import ObjectStore
from .elector import Elector
from .events import Event
from .lease import Lease
from .settings import Settings
from .watchers import ClusterWatcher, HealthReporter, StateWatcher
from .workers import ErrorLog, Workers

# With many workloads, states are polled less often: a thousand every 20 seconds. That leaves room for renewals.
POLLS_PER_SECOND = 50


class LeaseManager:
    """The leases, watchers and reports of one process."""

    def __init__(self, store: ObjectStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._identity = f"{settings.holder}-{settings.instance}"
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self.leases = [Lease(store, workload, settings.holder, self._identity, settings.ttl) for workload in settings.workloads]

    async def run(self, put: Callable[[Event], Awaitable[None]]) -> None:
        """Run until cancelled, and hand each event to `put`. Release all leases when cancelled."""
        workers = Workers(self._settings.connections)
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in self._work(workers, ErrorLog()):
                    tasks.create_task(work)
                tasks.create_task(self._deliver(put))
        finally:
            workers.shutdown()

    def _work(self, workers: Workers, errors: ErrorLog) -> list[Coroutine[Any, Any, None]]:
        settings, emit = self._settings, self._events.put_nowait
        interval = max(settings.poll, len(self.leases) / POLLS_PER_SECOND)
        electors = [Elector(self._store, lease, settings.poll, workers, errors, emit) for lease in self.leases]
        watchers = [StateWatcher(self._store, workload, workers, errors, emit) for workload in settings.workloads]
        work = [
            *(self._spread(elector.run, settings.poll) for elector in electors),
            *(self._spread(lambda watcher=watcher: watcher.run(interval), interval) for watcher in watchers),  # type: ignore[misc]
            ClusterWatcher(self._store, workers, errors, emit).run(settings.poll),
        ]
        if settings.cluster:
            reporter = HealthReporter(self._store, settings.cluster, self._identity, settings.probe, workers, errors)
            work.append(reporter.run(settings.health_interval))
        return work

    async def _spread(self, run: Callable[[], Coroutine[Any, Any, None]], interval: float) -> None:
        """Start at a random moment, so that the requests of a thousand workloads do not coincide in every interval."""
        await asyncio.sleep(random.uniform(0, interval) if len(self.leases) > 1 else 0)  # noqa: S311 - not cryptographic
        await run()

    async def _deliver(self, put: Callable[[Event], Awaitable[None]]) -> None:
        while True:
            await put(await self._events.get())
