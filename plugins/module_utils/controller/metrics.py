# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The metrics of the event source. Counts and times only: names of orders have no limit, and are the tenants' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .third_party import prometheus_client

PREFIX = "openfleet_orders"
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


class Metrics:
    """A registry of its own, because one process may have two sources. `state` is called at each scrape."""

    def __init__(self, state: Callable[[], State]) -> None:
        self._state = state
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(self)
        prometheus_client.ProcessCollector(registry=self.registry)
        self._answers = self._counter("webhook_answers", "Answers to webhooks, by endpoint and status code", "endpoint", "code")
        self._refused = self._counter("webhook_refused_connections", "Connections beyond the limits of the webhook server")
        self._emitted = self._counter("events", "Events handed to the rulebook, by action", "action")
        self._unstarted = self._counter("runs_not_started", "Orders that no run locked in time, by action", "action")
        self._writes = self._counter("status_writes", "Status writes of orders")
        self._durations = prometheus_client.Histogram(
            f"{PREFIX}_action_seconds",
            "Time from an action's event until its run ends",
            ["action"],
            buckets=SECONDS,
            registry=self.registry,
        )

    def answered(self, endpoint: str, code: int) -> None:
        self._answers.labels(endpoint, str(code)).inc()

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

    def text(self) -> bytes:
        return bytes(prometheus_client.generate_latest(self.registry))

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """Called by the registry at each scrape."""
        state = self._state()
        yield self._gauge("leads", "1 for the leader, 0 for a source that stands by", {(): int(state.leads)})
        yield self._gauge("phase", "Orders by phase", {(phase,): count for phase, count in state.phases.items()}, "phase")
        yield self._gauge("actions", "Orders with a pending action or a run in flight", state.actions, "state", "action")
        yield self._gauge("runs_in_flight", "Runs in flight", {(): state.runs})
        yield self._gauge("queue", "Orders in the work queue", {(): state.queue})
        orphans = {(kind,): count for kind, count in state.orphans.items()}
        yield self._gauge("orphans", "Objects on the hub whose order no longer exists, by kind", orphans, "kind")
        restarts = prometheus_client.core.CounterMetricFamily(f"{PREFIX}_watch_restarts", "Restarts of watches, by kind", labels=["kind"])
        for kind, count in state.watch_restarts.items():
            restarts.add_metric([kind], count)
        yield restarts

    def _counter(self, name: str, text: str, *labels: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(f"{PREFIX}_{name}", text, labels, registry=self.registry)

    @staticmethod
    def _gauge(name: str, text: str, values: Mapping[Any, int], *labels: str) -> prometheus_client.Metric:
        gauge = prometheus_client.core.GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
        for entry, count in values.items():
            gauge.add_metric(entry, count)
        return gauge
