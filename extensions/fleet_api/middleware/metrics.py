"""The metrics of the service. Counts and times only: nothing in them tells one tenant of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import prometheus_client
import prometheus_client.core

PREFIX = "openfleet_api"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """A registry of its own. `streams` and `restarts` are read at each scrape."""

    def __init__(self, streams: Callable[[], int], restarts: Callable[[], dict[str, int]]) -> None:
        self._streams = streams
        self._restarts = restarts
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        self._registry.register(self)
        self._requests = prometheus_client.Counter(
            f"{PREFIX}_requests", "Requests by operation and status", ["method", "route", "code"], registry=self._registry
        )
        self._durations = prometheus_client.Histogram(
            f"{PREFIX}_request_duration_seconds",
            "Time until a response is complete",
            ["method", "route"],
            buckets=SECONDS,
            registry=self._registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._durations.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        return bytes(prometheus_client.generate_latest(self._registry))

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """Called by the registry at each scrape."""
        streams = prometheus_client.core.GaugeMetricFamily(f"{PREFIX}_streams", "Open event streams")
        streams.add_metric([], self._streams())
        yield streams
        restarts = prometheus_client.core.CounterMetricFamily(f"{PREFIX}_watch_restarts", "Restarts of watches, by kind", labels=["kind"])
        for kind, count in self._restarts().items():
            restarts.add_metric([kind], count)
        yield restarts
