"""The shipped alerts and the dashboard against the metrics of the engine: each alert fires by its metric, and every metric exists.

The evaluator knows the few forms that the alerts use: a function of series with labels, a rate, a quotient, and a threshold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from prometheus_client.parser import text_string_to_metric_families

MONITORING = Path(__file__).resolve().parents[3] / "extensions/eda/deploy/kubernetes/monitoring"
RULES = yaml.safe_load((MONITORING / "prometheus_rule.yaml").read_text(encoding="utf-8"))["spec"]["groups"][0]["rules"]
ALERTS = {rule["alert"]: rule for rule in RULES}
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
SELECTOR = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})?(?:\[(?P<minutes>\d+)m\])?")
TERM = re.compile(r"(?P<function>sum|max|absent)\((?:rate\((?P<rated>[^)]+)\)|(?P<plain>[^)]+))\)")
Samples = list[tuple[str, Mapping[str, str], float]]


def samples(metrics: Metrics) -> Samples:
    families = text_string_to_metric_families(metrics.text().decode())
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def values(selector: str, scraped: Samples) -> tuple[list[float], int]:
    """The values of the series that a selector means, and the minutes of its range."""
    found = SELECTOR.fullmatch(selector)
    assert found, selector
    matchers = re.findall(r'(\w+)(=~?)"([^"]*)"', found["labels"] or "")

    def matches(labels: Mapping[str, str]) -> bool:
        return all(re.fullmatch(text if how == "=~" else re.escape(text), labels.get(name, "")) for name, how, text in matchers)

    return [value for name, labels, value in scraped if name == found["name"] and matches(labels)], int(found["minutes"] or 0)


def term(found: re.Match[str], before: Samples, after: Samples) -> float | None:
    """The value of one function of series, between two scrapes where it is a rate; None for no series."""
    now, minutes = values(found["rated"] or found["plain"], after)
    if found["function"] == "absent":
        return None if now else 1.0
    if found["rated"]:
        earlier, _minutes = values(found["rated"], before)
        return (sum(now) - sum(earlier)) / (minutes * 60) if now else None
    return (max(now) if found["function"] == "max" else sum(now)) if now else None


def fires(alert: str, before: Samples, after: Samples) -> bool:
    expression = ALERTS[alert]["expr"]
    comparison = re.fullmatch(r"(.*?) ([<>]) ([\d.]+)", expression)
    terms = [term(found, before, after) for found in TERM.finditer(expression)]
    assert TERM.sub("", comparison[1] if comparison else expression).strip() in ("", "/"), expression
    if None in terms:
        return False
    known = [value for value in terms if value is not None]
    if len(known) == 2 and not known[1]:
        return False
    value = known[0] / known[1] if len(known) == 2 else known[0]
    if comparison is None:
        return bool(value)
    return value < float(comparison[3]) if comparison[2] == "<" else value > float(comparison[3])


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
    before = samples(metrics)
    assert [name for name in ALERTS if fires(name, before, before)] == []
    current = State(**vars(HEALTHY) | state)
    if happens:
        happens(metrics)
    assert [name for name in ALERTS if fires(name, before, samples(metrics))] == [alert]


def test_without_an_engine_an_alert_fires() -> None:
    assert [name for name in ALERTS if fires(name, [], [])] == ["OpenfleetEnginesAbsent"]


def test_every_alert_is_tested_and_says_what_to_do() -> None:
    (mark,) = [mark for mark in test_an_alert_fires_by_its_metric_and_by_no_other.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} | {"OpenfleetEnginesAbsent"} == set(ALERTS)
    assert all(rule["annotations"].keys() == {"summary", "description"} and rule["for"] for rule in RULES)


def test_dashboard_shows_only_metrics_that_exist_and_all_of_the_engine() -> None:
    metrics = Metrics(lambda: HEALTHY)
    metrics.finished("provision", 1.0)
    metrics.answered("create-hosted-cluster", 202)
    metrics.emitted("provision")
    metrics.wrote_status()
    metrics.was_not_started("provision")
    exist = {name for name, _labels, _value in samples(metrics)}
    shown = {
        name
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:openfleet_orders|process)_\w+", target["expr"])
    }
    assert shown <= exist
    assert own(exist) == own(shown)


def own(names: set[str]) -> set[str]:
    """The metrics of the engine among these series."""
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names if name.startswith("openfleet_orders_") and "_created" not in name}
