# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The metrics of the event source of cluster orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from .source_metrics import SourceMetrics
from .third_party import prometheus_client

# Runs take seconds, or in a busy AAP minutes.
SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)


@dataclass(frozen=True)
class State:
    """The current state; the defaults are those of a source that stands by."""

    leads: bool = False
    phases: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    runs: int = 0
    queue: int = 0
    watch_restarts: Mapping[str, int] = field(default_factory=dict)
    orphans: Mapping[str, int] = field(default_factory=dict)


class Metrics(SourceMetrics):
    """`state` is called at each scrape."""

    PREFIX = "openfleet_orders"

    def __init__(self, state: Callable[[], State]) -> None:
        self._state = state
        super().__init__()
        self._responses = self._counter("webhook_responses", "Responses to webhooks, by endpoint and status code", "endpoint", "code")
        self._refused = self._counter("webhook_refused_connections", "Connections beyond the limits of the webhook server")
        self._emitted = self._counter("events", "Events emitted, by action", "action")
        self._unstarted = self._counter("runs_not_started", "Orders that no run locked in time, by action", "action")
        self._writes = self._counter("status_writes", "Status writes of orders")
        self._durations = self._histogram("action_seconds", "Time from an action's event until its run ends", "action", SECONDS)

    def answered(self, endpoint: str, code: int) -> None:
        self._responses.labels(endpoint, str(code)).inc()

    def refused_connection(self) -> None:
        self._refused.inc()

    def emitted(self, action: str) -> None:
        self._emitted.labels(action).inc()

    def was_not_started(self, action: str) -> None:
        self._unstarted.labels(action).inc()

    def wrote_status(self) -> None:
        self._writes.inc()

    def finished(self, action: str, seconds: float) -> None:
        self._durations.labels(action).observe(seconds)

    def collect(self) -> Iterator[prometheus_client.Metric]:
        state = self._state()
        yield self._gauge("leader", "1 if this instance is the leader", int(state.leads))
        yield self._gauges("phase", "Orders by phase", state.phases, "phase")
        yield self._gauges("actions", "Orders with a pending action or a run in flight", state.actions, "state", "action")
        yield self._gauge("runs_in_flight", "Runs in flight", state.runs)
        yield self._gauge("workqueue_depth", "Orders in the work queue", state.queue)
        yield self._gauges("orphans", "Objects on the hub whose order no longer exists, by kind", state.orphans, "kind")
        yield self._watch_restarts(state.watch_restarts)
