"""The shipped alerts and the dashboard of a fleet against the metrics of its home engine and its REST API, as test_monitoring does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.fleet_api.middleware.metrics import Metrics as ApiMetrics
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_metrics import FleetMetrics, FleetState

from .alerts import MANIFESTS, Monitoring, Samples, metrics_of, names, samples

SHIPPED = Monitoring("fleet/monitoring")
PAGE = MANIFESTS.parents[3] / "docs/fleet.md"
ABSENT = "OpenfleetFleetEnginesAbsent"
PREFIXES = ("openfleet_fleet", "openfleet_api")

HEALTHY = FleetState(
    leads=True,
    states={"Ready": 5, "Failed": 0, "Degraded": 0},
    waiting={"quota": 3, "hub": 0, "growth": 0},
    hubs={("east", "reserved"): 5, ("east", "capacity"): 10, ("west", "reserved"): 0, ("west", "capacity"): 10},
    ready_hubs={"east": 1, "west": 1},
    queue=2,
    watch_restarts={"Hub": 1},
)
FULL = {(hub, kind): 10 for hub in ("east", "west") for kind in ("reserved", "capacity")}


class Site:
    """A home engine and a replica of the API, after a while without trouble."""

    def __init__(self) -> None:
        self.state = HEALTHY
        self.restarts = {"Hub": 1}
        self.engine = FleetMetrics(lambda: self.state)
        self.api = ApiMetrics(lambda: 1, lambda: self.restarts)
        self.engine.emitted("cluster_ready")
        self.engine.took("placing", 0.1)
        self.engine.reconciled("bound")
        self.engine.reconciled("failed")
        for status in (200, 503):
            self.api.answered("GET", "/api/fleet/v1/clusters", status, 0.1)

    def scrape(self) -> Samples:
        return samples(self.engine.text(), self.api.text())


def fail(site: Site) -> None:
    for _each in range(100):
        site.engine.reconciled("failed")


def answer_with_errors(site: Site) -> None:
    for status in (200, 200, 503):
        site.api.answered("GET", "/api/fleet/v1/clusters", status, 0.1)


def restart(site: Site) -> None:
    site.restarts = {"Hub": 1000}


@pytest.mark.parametrize(
    ("alert", "state", "happens"),
    [
        ("OpenfleetFleetNoLeader", {"leads": False}, None),
        ("OpenfleetFleetHubNotReady", {"ready_hubs": {"east": 1, "west": 0}}, None),
        ("OpenfleetFleetFull", {"hubs": FULL}, None),
        ("OpenfleetFleetClustersFailed", {"states": {"Failed": 1}}, None),
        ("OpenfleetFleetClustersDegraded", {"states": {"Degraded": 1}}, None),
        ("OpenfleetFleetClustersUnschedulable", {"waiting": {"hub": 1}}, None),
        ("OpenfleetFleetClustersUnschedulable", {"waiting": {"growth": 1}}, None),
        ("OpenfleetFleetQueueGrows", {"queue": 5000}, None),
        ("OpenfleetFleetReconcilesFail", {}, fail),
        ("OpenfleetFleetReservationsRepaired", {}, lambda site: site.engine.repaired(1)),
        ("OpenfleetFleetOrphans", {"orphans": 1}, None),
        ("OpenfleetFleetWatchRestarts", {"watch_restarts": {"Hub": 1000}}, None),
        ("OpenfleetApiErrors", {}, answer_with_errors),
        ("OpenfleetApiWatchRestarts", {}, restart),
    ],
)
def test_an_alert_fires_by_its_metric_and_by_no_other(alert: str, state: dict[str, Any], happens: Callable[[Site], None] | None) -> None:
    site = Site()
    before = site.scrape()
    assert SHIPPED.firing(before, before) == []
    site.state = replace(HEALTHY, **state)
    if happens:
        happens(site)
    assert SHIPPED.firing(before, site.scrape()) == [alert]


def test_without_an_engine_an_alert_fires() -> None:
    assert SHIPPED.firing([], []) == [ABSENT]


def test_every_alert_is_tested_described_and_says_what_to_do() -> None:
    (mark,) = [mark for mark in test_an_alert_fires_by_its_metric_and_by_no_other.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} | {ABSENT} == set(SHIPPED.alerts)
    assert SHIPPED.say_what_to_do()
    section = PAGE.read_text(encoding="utf-8").partition("## Metrics")[2].partition("\n## ")[0]
    assert re.findall(r"`(Openfleet\w+)`", section) == list(SHIPPED.alerts)


def test_dashboard_shows_only_metrics_that_exist_and_all_of_the_fleet() -> None:
    exist, shown = names(Site().scrape()), SHIPPED.shown(*PREFIXES, "process")
    assert shown <= exist
    assert metrics_of(exist, *PREFIXES) == metrics_of(shown, *PREFIXES)


def test_page_lists_every_metric_of_the_engine() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Metrics")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`(openfleet_fleet_\w+)`", section))
    assert listed == metrics_of(names(Site().scrape()), "openfleet_fleet")


def test_monitor_selects_services_with_their_port_for_metrics() -> None:
    monitor, *services = (
        yaml.safe_load((MANIFESTS / "fleet" / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("monitoring/service_monitor", "service", "api/service")
    )
    (selector,) = monitor["spec"]["selector"]["matchExpressions"]
    assert selector["values"] == [each["metadata"]["labels"][selector["key"]] for each in services]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert all(endpoint["port"] in [port["name"] for port in each["spec"]["ports"]] for each in services)
