# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The metrics of the agent of a hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from .source_metrics import SourceMetrics
from .third_party import prometheus_client


@dataclass(frozen=True)
class AgentState:
    """The current state; the defaults are those of an agent that stands by."""

    leads: bool = False
    ready: bool = False  # every check of the hub passes
    home_failures: int = 0  # heartbeats in a row
    states: Mapping[str, int] = field(default_factory=dict)  # of assignments
    queue: int = 0


class AgentMetrics(SourceMetrics):
    """`state` is called at each scrape."""

    PREFIX = "openfleet_agent"

    def __init__(self, state: Callable[[], AgentState]) -> None:
        self._state = state
        super().__init__()
        self._reconciles = self._counter("reconciles", "Reconciled assignments, by result", "result")

    def reconciled(self, result: str) -> None:
        self._reconciles.labels(result).inc()

    def collect(self) -> Iterator[prometheus_client.Metric]:
        state = self._state()
        yield self._gauge("leader", "1 if this instance is the leader", int(state.leads))
        yield self._gauge("hub_ready", "1 while every check of the hub passes", int(state.ready))
        yield self._gauge("home_failures", "Failed heartbeats in a row", state.home_failures)
        yield self._gauge("workqueue_depth", "Assignments that wait to be reconciled", state.queue)
        yield self._gauges("assignments", "Assignments, by state", state.states, "state")
