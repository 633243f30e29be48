"""The status of a DRPlacementControl as Ramen writes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.drpc_status import status_of
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import ConditionState
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import Decision, State

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
STATE = State(phase="FailedOver", progression="Completed", home="west", decision=Decision("west"), started_at="2025-01-01T11:59:00Z")
CONDITIONS = {"Available": ConditionState("True", "FailedOver"), "PeerReady": ConditionState("True", "Success")}
VRG = {
    "kind": "VolumeReplicationGroup",
    "metadata": {"name": "db", "namespace": "shop", "generation": 3},
    "status": {"conditions": [], "protectedPVCs": [{"name": "data"}], "lastGroupSyncTime": "2025-01-01T11:58:00Z", "lastGroupSyncBytes": 7},
}


def drpc(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "db", "namespace": "shop", "generation": 2}, "spec": {}, "status": status}


def test_status_has_the_fields_of_ramen() -> None:
    status = status_of(drpc(), STATE, CONDITIONS, VRG, NOW)
    assert [item["type"] for item in status.pop("conditions")] == ["Available", "PeerReady"]
    assert status == {
        "phase": "FailedOver",
        "progression": "Completed",
        "observedGeneration": 2,
        "preferredDecision": {"clusterName": "west", "clusterNamespace": "west"},
        "actionStartTime": "2025-01-01T11:59:00Z",
        "lastGroupSyncTime": "2025-01-01T11:58:00Z",
        "lastGroupSyncBytes": 7,
        "lastUpdateTime": "2025-01-01T12:00:00Z",
        "resourceConditions": {
            "conditions": [],
            "resourceMeta": {
                "kind": "VolumeReplicationGroup",
                "name": "db",
                "namespace": "shop",
                "generation": 3,
                "protectedpvcs": ["data"],
            },
        },
    }


def test_same_status_is_not_written_again_before_ten_minutes() -> None:
    first = status_of(drpc(), STATE, CONDITIONS, VRG, NOW)
    assert status_of(drpc(**first), STATE, CONDITIONS, VRG, NOW + timedelta(minutes=9)) == first
    later = status_of(drpc(**first), STATE, CONDITIONS, VRG, NOW + timedelta(minutes=10))
    assert later["lastUpdateTime"] == "2025-01-01T12:10:00Z"


def test_what_was_shown_of_a_home_that_does_not_answer_stays() -> None:
    first = status_of(drpc(), STATE, CONDITIONS, VRG, NOW)
    assert status_of(drpc(**first), STATE, CONDITIONS, None, NOW) == first


@pytest.mark.parametrize(("seconds", "text"), [(0, None), (7, "7s"), (61, "1m1s"), (3600, "1h0m0s")])
def test_duration_is_written_as_go_writes_it(seconds: int, text: str | None) -> None:
    assert status_of(drpc(), replace(STATE, duration=seconds), CONDITIONS, None, NOW).get("actionDuration") == text
