"""The counts of the overview, and which clusters need attention since when."""

from __future__ import annotations

from typing import Any

from ansible_collections.openfleet.clusters.extensions.fleet_api.logic.summary import MOST_FAILING, summary


def cluster(name: str, state: str = "", conditions: list[tuple[str, str, str]] | None = None, **status: Any) -> dict[str, Any]:
    found = [
        {"type": kind, "status": value, "reason": f"{kind}Reason", "message": f"{kind} text", "lastTransitionTime": at}
        for kind, value, at in conditions or []
    ]
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"},
        "spec": {"template": "small", "nodeSets": {"a": {"class": "x", "size": 2}}},
        "status": ({"state": state} if state else {}) | {"conditions": found} | status,
    }


def test_clusters_are_counted_by_what_they_have_in_common() -> None:
    found = summary([cluster("a", "Ready", version="1", hub="east"), cluster("b", "Ready", version="2", hub="east"), cluster("c")])
    assert (found["clusters"], found["nodes"], found["failing"]) == (3, 6, 0)
    assert found["states"] == [{"value": "Ready", "clusters": 2}, {"value": "Pending", "clusters": 1}]
    assert found["hubs"] == [{"value": "east", "clusters": 2}]
    assert found["versions"] == [{"value": "1", "clusters": 1}, {"value": "2", "clusters": 1}]


def test_longest_failing_cluster_comes_first_with_its_cause_and_time() -> None:
    expiring = ("Expiring", "False", "2026-01-01T00:00:00Z")
    failed = cluster("failed", "Failed", [("Applied", "False", "2026-01-03T00:00:00Z"), expiring], failure={"reason": "R", "message": "M"})
    refused = cluster("refused", "", [("QuotaReserved", "False", "2026-01-02T00:00:00Z")])
    unknown = cluster("unknown", "Ready", [("HubReporting", "False", "2026-01-04T00:00:00Z")])
    fine = cluster("fine", "Ready", [("Upgrading", "False", "2026-01-01T00:00:00Z")])
    found = summary([unknown, fine, failed, refused, cluster("odd", "Degraded")])
    assert [each["name"] for each in found["attention"]] == ["refused", "failed", "unknown", "odd"]
    assert [each.get("since", "")[:10] for each in found["attention"]] == ["2026-01-02", "2026-01-03", "2026-01-04", ""]
    assert (found["attention"][1]["reason"], found["attention"][0]["message"]) == ("R", "QuotaReserved text")


def test_list_of_failing_clusters_is_bounded_and_counted() -> None:
    found = summary([cluster(f"c{number}", "Failed") for number in range(MOST_FAILING + 5)])
    assert (found["failing"], len(found["attention"])) == (MOST_FAILING + 5, MOST_FAILING)
