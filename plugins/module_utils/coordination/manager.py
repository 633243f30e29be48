# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs all coordination of one process: an elector and a watcher for each workload, cluster health, and event delivery.

Requests run in threads over one client with a bounded number of connections. A slow consumer of events delays no
renewal.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from ..s3.store import ObjectStore
from .documents import WorkloadRef
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
        self._leases: dict[WorkloadRef, Lease] = {}
        self._tasks: dict[WorkloadRef, asyncio.Task[None]] = {}  # also of workloads that are no longer followed, until they end
        self._start: Callable[[WorkloadRef], None] | None = None
        for workload in settings.workloads:
            self._add(workload)

    @property
    def leases(self) -> list[Lease]:
        return list(self._leases.values())

    def is_acting(self, workload: WorkloadRef, epoch: int) -> bool:
        """Whether the term of this epoch lasts."""
        lease = self._leases.get(workload)
        return lease is not None and lease.epoch == epoch and lease.acting()

    async def run(self, put: Callable[[Event], Awaitable[None]]) -> None:
        """Run until cancelled, and hand each event to `put`. Release all leases when cancelled."""
        workers, errors = Workers(self._settings.connections), ErrorLog()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._start = functools.partial(self._start_in, tasks, workers, errors)
                for workload in self._leases:
                    self._start(workload)
                tasks.create_task(ClusterWatcher(self._store, workers, errors, self._events.put_nowait).run(self._settings.poll))
                if cluster := self._settings.cluster:
                    reporter = HealthReporter(self._store, cluster, self._identity, self._settings.probe, workers, errors)
                    tasks.create_task(reporter.run(self._settings.health_interval))
                tasks.create_task(self._deliver(put))
        finally:
            self._start = None
            workers.shutdown()

    def follow(self, workloads: Iterable[WorkloadRef]) -> None:
        """Contend for the leases of these workloads, and of no others. Leases of others that are held are released."""
        wanted = set(workloads)
        for workload in self._leases.keys() - wanted:
            del self._leases[workload]
            if workload in self._tasks:
                self._tasks[workload].cancel()
        for workload in sorted(wanted - self._leases.keys()):
            self._add(workload)
            if self._start:
                self._start(workload)

    def _add(self, workload: WorkloadRef) -> None:
        self._leases[workload] = Lease(self._store, workload, self._settings.holder, self._identity, self._settings.ttl)

    def _start_in(self, tasks: asyncio.TaskGroup, workers: Workers, errors: ErrorLog, workload: WorkloadRef) -> None:
        lease, before = self._leases[workload], self._tasks.get(workload)
        task = self._tasks[workload] = tasks.create_task(self._contend(lease, before, workers, errors))
        task.add_done_callback(functools.partial(self._ended, workload))

    def _ended(self, workload: WorkloadRef, task: asyncio.Task[None]) -> None:
        if self._tasks.get(workload) is task:
            del self._tasks[workload]

    async def _contend(self, lease: Lease, before: asyncio.Task[None] | None, workers: Workers, errors: ErrorLog) -> None:
        """Contend for a lease and watch its workload, after an earlier task for the same workload has released it."""
        if before:
            try:
                await asyncio.wait({before})
            except asyncio.CancelledError:
                await asyncio.wait({before})  # it ends by itself, and a task that comes after this one must not be earlier
                raise
        poll, emit = self._settings.poll, self._events.put_nowait
        elector = Elector(self._store, lease, poll, workers, errors, emit)
        watcher = StateWatcher(self._store, lease.workload, workers, errors, emit)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._spread(elector.run, poll))
            tasks.create_task(self._spread(lambda: watcher.run(self._interval), self._interval()))

    def _interval(self) -> float:
        return max(self._settings.poll, len(self._leases) / POLLS_PER_SECOND)

    async def _spread(self, run: Callable[[], Coroutine[Any, Any, None]], interval: float) -> None:
        """Start at a random moment, so that the requests of a thousand workloads do not coincide in every interval."""
        await asyncio.sleep(random.uniform(0, interval) if len(self._leases) > 1 else 0)  # noqa: S311 - not cryptographic
        await run()

    async def _deliver(self, put: Callable[[Event], Awaitable[None]]) -> None:
        while True:
            await put(await self._events.get())
