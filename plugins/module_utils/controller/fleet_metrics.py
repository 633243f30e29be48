# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The metrics of the event source of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from .source_metrics import SourceMetrics
from .third_party import prometheus_client

SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(frozen=True)
class FleetState:
    """The current state; the defaults are those of a source that stands by."""

    leads: bool = False
    states: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    hubs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    ready_hubs: Mapping[str, int] = field(default_factory=dict)
    queue: int = 0
    orphans: int = 0
    watch_restarts: Mapping[str, int] = field(default_factory=dict)


class FleetMetrics(SourceMetrics):
    """`state` is called at each scrape."""

    PREFIX = "openfleet_fleet"

    def __init__(self, state: Callable[[], FleetState]) -> None:
        self._state = state
        super().__init__()
        self._emitted = self._counter("events", "Events emitted, by type", "type")
        self._outcomes = self._counter("reconciles", "Reconciled clusters, by result", "result")
        self._repaired = self._counter("repaired_reservations", "Reservations that a sweep released or restored")
        self._exported = self._counter("exported_records", "Records written to the bucket")
        self._batches = self._histogram("batch_seconds", "Time of a batch of clusters, by lane", "lane", SECONDS)

    def emitted(self, kind: str) -> None:
        self._emitted.labels(kind).inc()

    def reconciled(self, result: str) -> None:
        self._outcomes.labels(result).inc()

    def repaired(self, count: int) -> None:
        self._repaired.inc(count)

    def exported(self, count: int) -> None:
        self._exported.inc(count)

    def took(self, lane: str, seconds: float) -> None:
        self._batches.labels(lane).observe(seconds)

    def collect(self) -> Iterator[prometheus_client.Metric]:
        state = self._state()
        yield self._gauge("leader", "1 if this instance is the leader", int(state.leads))
        yield self._gauges("clusters", "Clusters by state", state.states, "state")
        yield self._gauges("waiting", "Clusters that wait, by reason", state.waiting, "reason")
        yield self._gauges("hub_clusters", "Clusters and capacity of each hub", state.hubs, "hub", "kind")
        yield self._gauges("hub_ready", "1 for a hub that is Ready, 0 for one that is not", state.ready_hubs, "hub")
        yield self._gauge("workqueue_depth", "Clusters in the work queue", state.queue)
        yield self._gauge("orphans", "Assignments whose cluster no longer exists", state.orphans)
        yield self._watch_restarts(state.watch_restarts)
