# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Polls states and cluster health in the bucket and emits changes; reports the health of one cluster. Holds no lease.

A poll is a conditional GET: the store sends no content while nothing has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..s3.store import ObjectStore
from .documents import DocumentStore, WorkloadRef
from .events import Emit, state_fields
from .health import HEALTHY, ClusterHealth, Report, reporting_clusters
from .probe import Probe
from .state import State, StateStore
from .workers import ErrorLog, Workers


class StateWatcher:
    """Emits new revisions and decisions of one workload."""

    def __init__(self, store: ObjectStore, workload: WorkloadRef, workers: Workers, errors: ErrorLog, emit: Emit) -> None:
        self._workload = workload
        self._states = StateStore(DocumentStore(store, workload.identity()), workload)
        self._workers, self._errors, self._emit = workers, errors, emit
        self._last = State()

    async def run(self, interval: Callable[[], float]) -> None:
        while True:
            async with self._errors.tolerate(f"state of {self._workload}"):
                self._compare(await self._workers.poll(self._states.read, self._last))
            await asyncio.sleep(interval())

    def _compare(self, state: State) -> None:
        last, self._last = self._last, state
        common = self._workload.identity() | {"epoch": state.epoch, "revision": state.revision}
        if state.revision != last.revision:
            self._emit({"type": "state_changed"} | common | {"state": state_fields(state)})
        if state.decision != last.decision:
            self._emit({"type": "decision_changed"} | common | {"decision": state.decision, "previous": last.decision})


class ClusterWatcher:
    """Emits changes in the reported health of all clusters."""

    def __init__(self, store: ObjectStore, workers: Workers, errors: ErrorLog, emit: Emit) -> None:
        self._store, self._workers, self._errors, self._emit = store, workers, errors, emit
        self._known: dict[str, tuple[ClusterHealth, Report]] = {}

    async def run(self, interval: float) -> None:
        while True:
            async with self._errors.tolerate("health of clusters"):
                for cluster in await self._workers.poll(reporting_clusters, self._store):
                    # A malformed status of one cluster must not hide the next ones.
                    async with self._errors.tolerate(f"status of cluster {cluster}"):
                        await self._observe(cluster)
            await asyncio.sleep(interval)

    async def _observe(self, cluster: str) -> None:
        health, last = self._known.get(cluster) or (ClusterHealth(self._store, cluster), Report())
        report = await self._workers.poll(health.observe)
        self._known[cluster] = health, report
        if report.state != last.state:
            changes = {"health": report.state, "previous": last.state, "reason": report.reason}
            self._emit({"type": "cluster_health_changed", "cluster": cluster} | changes)


class HealthReporter:
    """Reports the health of one cluster. Without a probe it only reports that this process is alive."""

    def __init__(self, store: ObjectStore, cluster: str, reporter: str, probe: Probe | None, workers: Workers, errors: ErrorLog) -> None:
        self._health = ClusterHealth(store, cluster)
        self._reporter, self._probe = reporter, probe
        self._workers, self._errors = workers, errors

    async def run(self, interval: float) -> None:
        while True:
            async with self._errors.tolerate(f"health report of {self._health.cluster}"):
                await self._workers.poll(self._report, interval)
            await asyncio.sleep(interval)

    def _report(self, interval: float) -> None:
        state, reason = self._probe() if self._probe else (HEALTHY, "")
        self._health.report(state, reason, interval, self._reporter)
