"""The events of a fleet: one case for each type, and none for what stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_events import (
    TYPES,
    cluster_events,
    deleted_event,
    ended_event,
    hub_events,
)

ROOT = Path(__file__).parents[3]


def cluster(state: str = "Pending", **conditions: tuple[str, str]) -> Object:
    listed = [
        {"type": name, "status": status, "reason": reason, "message": f"{reason}.", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for name, (status, reason) in conditions.items()
    ]
    metadata = {"namespace": "team", "name": "demo", "uid": "1"}
    return {"metadata": metadata, "spec": {"template": "small"}, "status": {"state": state, "hub": "east", "conditions": listed}}


def hub(reason: str) -> Object:
    status = {"ChecksPassed": "True", "CheckFailed": "False"}.get(reason, "Unknown")
    condition = {"type": "Ready", "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"metadata": {"name": "east", "uid": "2"}, "status": {"clusters": 3, "conditions": [condition]}}


RESERVED, REFUSED = ("True", "Reserved"), ("False", "QuotaExceeded")
CASES: list[tuple[Object | None, Object, list[tuple[str, str]]]] = [
    (None, cluster(QuotaReserved=RESERVED), [("cluster_accepted", "Reserved")]),
    (cluster(QuotaReserved=RESERVED), cluster(QuotaReserved=RESERVED), []),
    (None, cluster(QuotaReserved=REFUSED), [("cluster_denied", "QuotaExceeded")]),
    (cluster(QuotaReserved=REFUSED), cluster(QuotaReserved=("False", "TenantDenied")), [("cluster_denied", "TenantDenied")]),
    (cluster(QuotaReserved=REFUSED), cluster(QuotaReserved=RESERVED), [("cluster_accepted", "Reserved")]),
    (None, cluster(QuotaReserved=("False", "WaitingForSecrets")), []),
    (None, cluster(Scheduled=("False", "Unschedulable")), [("cluster_unschedulable", "Unschedulable")]),
    (None, cluster(Scheduled=("False", "WaitingForQuota")), []),
    (cluster(Scheduled=("False", "Unschedulable")), cluster(Scheduled=("True", "Bound")), [("cluster_scheduled", "Bound")]),
    (cluster(), cluster(Expiring=("True", "Expired")), [("cluster_expiring", "Expired")]),
    (cluster("Progressing"), cluster("Ready"), [("cluster_ready", "Ready")]),
    (cluster("Ready"), cluster("Degraded"), [("cluster_degraded", "Degraded")]),
    (cluster("Degraded"), cluster("Failed"), [("cluster_failed", "Failed")]),
    (cluster("Failed"), cluster("Failed"), []),
]


@pytest.mark.parametrize(("before", "after", "wanted"), CASES)
def test_each_transition_is_one_event(before: Object | None, after: Object, wanted: list[tuple[str, str]]) -> None:
    assert [(each["type"], each["reason"]) for each in cluster_events(before, after)] == wanted


def test_event_of_a_failure_has_its_reason_and_all_names() -> None:
    failed = cluster("Failed")
    failed["status"]["failure"] = {"reason": "HostLost", "message": "One host is lost."}
    (event,) = cluster_events(cluster("Ready"), failed)
    assert event.pop("meta")["uuid"]
    assert event == {
        "type": "cluster_failed",
        "cluster": {"namespace": "team", "name": "demo", "uid": "1"},
        "hub": "east",
        "template": "small",
        "reason": "HostLost",
        "message": "One host is lost.",
    }


def test_same_transition_has_the_same_id_and_another_has_not() -> None:
    first, again = (cluster_events(None, cluster(QuotaReserved=RESERVED))[0]["meta"] for _each in range(2))
    other = cluster_events(cluster("Progressing"), cluster("Ready"))[0]["meta"]
    assert first == again != other


def test_end_of_a_cluster_is_reported_by_its_cause() -> None:
    assert [ended_event(cluster(), reason, "")["type"] for reason in ("Expired", "Denied")] == ["cluster_expired", "cluster_denied"]
    assert deleted_event(cluster())["type"] == "cluster_deleted"


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("ChecksPassed", "AgentNotReporting", ["hub_not_ready"]),
        ("ChecksPassed", "CheckFailed", ["hub_not_ready"]),
        ("AgentNotReporting", "CheckFailed", []),
        ("CheckFailed", "ChecksPassed", ["hub_ready"]),
        ("AgentNotReporting", "ChecksPassed", ["hub_ready"]),
    ],
)
def test_hub_is_reported_when_it_becomes_ready_or_no_longer_is(before: str, after: str, wanted: list[str]) -> None:
    events = hub_events(hub(before), hub(after))
    assert [each["type"] for each in events] == wanted
    assert all((each["hub"], each["clusters"]) == ("east", 3) for each in events)


def test_rulebook_has_a_rule_for_each_type() -> None:
    (ruleset,) = yaml.safe_load((ROOT / "rulebooks/fleet.yml").read_text(encoding="utf-8"))
    rules: list[dict[str, Any]] = ruleset["rules"]
    assert sorted(rule["condition"] for rule in rules) == sorted(f'event.type == "{kind}"' for kind in TYPES)
