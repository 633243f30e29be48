# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the event source tells Prometheus. Counts and times only: no name of an order, which could be a tenant's secret and has no limit."""

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
    """How things stand at this moment; as it is here with a source that stands by."""

    leads: bool = False
    phases: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    runs: int = 0
    queue: int = 0
    watch_restarts: Mapping[str, int] = field(default_factory=dict)


class Metrics:
    """A registry of its own, so that two sources in one process do not meet in it. `state` is asked when somebody reads."""

    def __init__(self, state: Callable[[], State]) -> None:
        self._state = state
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(self)
        prometheus_client.ProcessCollector(registry=self.registry)
        self._answers = self._counter("webhook_answers", "Answers to webhooks, by endpoint and status code", "endpoint", "code")
        self._emitted = self._counter("events", "Events given to the rulebook, by action", "action")
        self._writes = self._counter("status_writes", "Statuses of orders written")
        self._durations = prometheus_client.Histogram(
            f"{PREFIX}_action_seconds", "From an action's event until its run is over", ["action"], buckets=SECONDS, registry=self.registry
        )

    def answered(self, endpoint: str, code: int) -> None:
        self._answers.labels(endpoint, str(code)).inc()

    def emitted(self, action: str) -> None:
        self._emitted.labels(action).inc()

    def wrote_status(self) -> None:
        self._writes.inc()

    def finished(self, action: str, seconds: float) -> None:
        self._durations.labels(action).observe(seconds)

    def text(self) -> bytes:
        return bytes(prometheus_client.generate_latest(self.registry))

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """The registry asks for this at each reading."""
        state = self._state()
        yield self._gauge("leads", "1 for the source that leads, 0 for one that stands by", {(): int(state.leads)})
        yield self._gauge("phase", "Orders by phase", {(phase,): count for phase, count in state.phases.items()}, "phase")
        yield self._gauge("actions", "Orders that wait for an action, or are under way with one", state.actions, "state", "action")
        yield self._gauge("runs_in_flight", "Events whose runs are not over", {(): state.runs})
        yield self._gauge("queue", "Orders that wait to be looked at", {(): state.queue})
        restarts = prometheus_client.core.CounterMetricFamily(f"{PREFIX}_watch_restarts", "Watches begun again, by kind", labels=["kind"])
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
