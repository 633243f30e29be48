"""A plan follows the scheduling settings of the site."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.plans import Site, plan
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import Hub
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.schedule import Weights

NOW = datetime(2026, 1, 2, 12, 10, tzinfo=UTC)
CLUSTER = {
    "metadata": {"name": "demo", "namespace": "team", "uid": "uid-1", "creationTimestamp": "2026-01-02T12:10:00Z"},
    "spec": {"template": "openfleet.clusters.small", "nodeSets": {"workers": {"class": "fc430", "size": 1}}},
}
TENANT = {"topology.kubernetes.io/region": "eu"}


def hub(name: str, heartbeat: datetime = NOW, nodes: int = 10, region: str = "") -> Hub:
    offered = frozenset({"small"})
    return Hub(name, clusters=10, nodes={"fc430": nodes}, ready=True, heartbeat=heartbeat, templates=offered, region=region)


def chosen(*hubs: Hub, **scheduling: Any) -> dict[str, Any]:
    result: dict[str, Any] = plan(CLUSTER, Site(None, None, hubs, TENANT, NOW, **scheduling))["scheduling"]
    return result


def test_a_hub_stops_reporting_after_the_time_of_the_settings() -> None:
    late = hub("east", heartbeat=NOW - timedelta(minutes=7))
    assert chosen(late)["message"] == "0 of 1 hub fit: 1 not reporting since 2026-01-02 12:03"
    assert chosen(late, hub_timeout=timedelta(minutes=10))["hub"] == "east"


def test_the_weights_of_the_settings_decide() -> None:
    roomy, near = hub("roomy", nodes=100), hub("near", nodes=2, region="eu")
    assert chosen(roomy, near)["hub"] == "near"
    assert chosen(roomy, near, weights=Weights(headroom=9, region=0))["hub"] == "roomy"
