"""The shipped alerts and the dashboard against the metrics of the engine: each alert fires by its metric, and every metric exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State

from .alerts import Monitoring, metrics_of, names, samples

SHIPPED = Monitoring("monitoring")

HEALTHY = State(
    leads=True,
    phases={"Ready": 5, "Failed": 0, "Degraded": 0},
    actions={("pending", "provision"): 1},
    runs=1,
    queue=2,
    watch_restarts={"Lease": 1},
    orphans={"Namespace": 0, "Lease": 3},
)


def count(metric: str) -> Callable[[Metrics], None]:
    """Something that happens between two scrapes."""
    many: dict[str, Callable[[Metrics], None]] = {
        "unstarted": lambda metrics: metrics.was_not_started("provision"),
        "runs": lambda metrics: metrics.finished("provision", 1000.0),
        "webhooks": lambda metrics: [metrics.answered("create-hosted-cluster", 401) for _each in range(1000)] and None,
    }
    return many[metric]


@pytest.mark.parametrize(
    ("alert", "state", "happens"),
    [
        ("OpenfleetNoLeader", {"leads": False}, None),
        ("OpenfleetOrdersFailed", {"phases": {"Failed": 1}}, None),
        ("OpenfleetOrdersDegraded", {"phases": {"Degraded": 1}}, None),
        ("OpenfleetActionsPending", {"actions": {("pending", "provision"): 15, ("pending", "delete"): 15}}, None),
        ("OpenfleetQueueGrows", {"queue": 1000}, None),
        ("OpenfleetWatchRestarts", {"watch_restarts": {"Lease": 1000}}, None),
        ("OpenfleetRunsSlow", {}, count("runs")),
        ("OpenfleetRunsNotStarted", {}, count("unstarted")),
        ("OpenfleetWebhooksRefused", {}, count("webhooks")),
        ("OpenfleetOrphans", {"orphans": {"Namespace": 1}}, None),
    ],
)
def test_an_alert_fires_by_its_metric_and_by_no_other(alert: str, state: dict[str, Any], happens: Callable[[Metrics], None] | None) -> None:
    current = HEALTHY
    metrics = Metrics(lambda: current)
    metrics.finished("provision", 1.0)
    metrics.answered("create-hosted-cluster", 202)
    metrics.was_not_started("provision")
    before = samples(metrics.text())
    assert SHIPPED.firing(before, before) == []
    current = State(**vars(HEALTHY) | state)
    if happens:
        happens(metrics)
    assert SHIPPED.firing(before, samples(metrics.text())) == [alert]


def test_without_an_engine_an_alert_fires() -> None:
    assert SHIPPED.firing([], []) == ["OpenfleetEnginesAbsent"]


def test_every_alert_is_tested_and_says_what_to_do() -> None:
    (mark,) = [mark for mark in test_an_alert_fires_by_its_metric_and_by_no_other.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} | {"OpenfleetEnginesAbsent"} == set(SHIPPED.alerts)
    assert SHIPPED.say_what_to_do()


def test_dashboard_shows_only_metrics_that_exist_and_all_of_the_engine() -> None:
    metrics = Metrics(lambda: HEALTHY)
    metrics.finished("provision", 1.0)
    metrics.answered("create-hosted-cluster", 202)
    metrics.emitted("provision")
    metrics.wrote_status()
    metrics.was_not_started("provision")
    exist = names(samples(metrics.text()))
    shown = SHIPPED.shown("openfleet_orders", "process")
    assert shown <= exist
    assert metrics_of(exist, "openfleet_orders") == metrics_of(shown, "openfleet_orders")
