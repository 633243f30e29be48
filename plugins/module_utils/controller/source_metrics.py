# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of the metrics of an event source, for Prometheus. They hold no name of a tenant or cluster: these have no limit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from .third_party import prometheus_client


class SourceMetrics(ABC):
    """A registry of its own, because one process may have two sources. The names of its metrics begin with `PREFIX`."""

    PREFIX: ClassVar[str]

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(self)
        prometheus_client.ProcessCollector(registry=self.registry)

    @abstractmethod
    def collect(self) -> Iterator[prometheus_client.Metric]:
        """The metrics of the current state. Called by the registry at each scrape."""

    def text(self) -> bytes:
        return bytes(prometheus_client.generate_latest(self.registry))

    def _counter(self, name: str, text: str, *labels: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(f"{self.PREFIX}_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, label: str, buckets: tuple[float, ...]) -> prometheus_client.Histogram:
        return prometheus_client.Histogram(f"{self.PREFIX}_{name}", text, [label], buckets=buckets, registry=self.registry)

    def _gauge(self, name: str, text: str, value: int) -> prometheus_client.Metric:
        return prometheus_client.core.GaugeMetricFamily(f"{self.PREFIX}_{name}", text, value=value)

    def _gauges(self, name: str, text: str, values: Mapping[Any, int], *labels: str) -> prometheus_client.Metric:
        """One for each entry, which is the value of the label, or a tuple of them."""
        gauge = prometheus_client.core.GaugeMetricFamily(f"{self.PREFIX}_{name}", text, labels=labels)
        for entry, count in sorted(values.items()):
            gauge.add_metric(entry if isinstance(entry, tuple) else (entry,), count)
        return gauge

    def _watch_restarts(self, restarts: Mapping[str, int]) -> prometheus_client.Metric:
        text = "Restarts of watches, by kind"
        found = prometheus_client.core.CounterMetricFamily(f"{self.PREFIX}_watch_restarts", text, labels=["kind"])
        for kind, count in restarts.items():
            found.add_metric([kind], count)
        return found
