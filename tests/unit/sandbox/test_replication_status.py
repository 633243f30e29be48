"""What the stand-in for replication says of a VolumeReplicationGroup, case by case; nothing runs here."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.conditions import by_type
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.status import (
    DONE,
    Observed,
    Outcome,
    Progress,
    ProtectedClaim,
    group_status,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"
MOMENT = datetime.datetime(2026, 1, 1, 0, 3, tzinfo=datetime.UTC)
CLAIM = {
    "metadata": {"name": "data", "namespace": "shop", "labels": {"app": "shop"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "replicated"},
}
FAILED = Outcome(Progress.FAILED, "s3-east does not answer")
PROTECTED = (ProtectedClaim(CLAIM, MOMENT, 12),)
READY = Observed(claims=PROTECTED, restored=DONE, protected=True, uploaded=DONE)


def group(state: str, generation: int = 1, **spec: Any) -> Object:
    mode: Object = {} if "sync" in spec else {"async": {"schedulingInterval": "5m"}}
    return {
        "metadata": {"name": "shop", "namespace": "shop", "generation": generation},
        "spec": {"replicationState": state, "s3Profiles": ["s3-east", "s3-west"], "pvcSelector": {}, **mode, **spec},
    }


def reconciled(vrg: Object, observed: Observed, now: str = EARLY) -> Object:
    """The group with the status of one reconcile."""
    return vrg | {"status": group_status(vrg, observed, now)}


def changed(vrg: Object, **spec: Any) -> Object:
    """The group after an edit of its spec: the API server counts its generation up."""
    return vrg | {"metadata": vrg["metadata"] | {"generation": vrg["metadata"]["generation"] + 1}, "spec": vrg["spec"] | spec}


def shown(vrg: Object, kind: str) -> tuple[str, str, int]:
    condition = by_type(vrg["status"])[kind]
    return condition["status"], condition["reason"], condition["observedGeneration"]


# What is observed -> DataReady, DataProtected, ClusterDataReady, ClusterDataProtected, NoClusterDataConflict, state
NEW = ("Unknown", "Initializing", 1)
RESTORED, REPLICATING, CLEAR = ("True", "Restored", 1), ("False", "Replicating", 1), ("True", "ConflictResolved", 1)
PRIMARY = {
    "nothing yet": (Observed(), NEW, NEW, NEW, NEW, CLEAR, "Unknown"),
    "restore failed": (Observed(restored=FAILED), NEW, NEW, ("False", "Error", 1), NEW, CLEAR, "Unknown"),
    "restored, not promoted": (
        Observed(claims=PROTECTED, restored=DONE),
        ("False", "Progressing", 1),
        REPLICATING,
        RESTORED,
        NEW,
        CLEAR,
        "Unknown",
    ),
    "promoted, not uploaded": (
        Observed(claims=PROTECTED, restored=DONE, protected=True),
        ("True", "Ready", 1),
        REPLICATING,
        RESTORED,
        ("False", "Uploading", 1),
        CLEAR,
        "Primary",
    ),
    "upload failed": (
        Observed(claims=PROTECTED, restored=DONE, protected=True, uploaded=FAILED),
        ("True", "Ready", 1),
        REPLICATING,
        RESTORED,
        ("False", "UploadError", 1),
        CLEAR,
        "Primary",
    ),
    "complete": (READY, ("True", "Ready", 1), REPLICATING, RESTORED, ("True", "Uploaded", 1), CLEAR, "Primary"),
    "no claims": (
        Observed(restored=DONE, protected=True, uploaded=DONE),
        ("True", "Unused", 1),
        ("True", "Unused", 1),
        RESTORED,
        ("True", "Uploaded", 1),
        CLEAR,
        "Primary",
    ),
    "two primaries": (
        Observed(claims=PROTECTED, restored=DONE, protected=True, uploaded=DONE, conflict="west"),
        ("True", "Ready", 1),
        REPLICATING,
        RESTORED,
        ("True", "Uploaded", 1),
        ("False", "ClusterDataConflictPrimary", 1),
        "Primary",
    ),
    "unknown fault": (
        Observed(problem="The stand-in knows no fault x", claims=PROTECTED, restored=DONE, protected=True),
        ("False", "Error", 1),
        REPLICATING,
        RESTORED,
        NEW,
        CLEAR,
        "Unknown",
    ),
}


@pytest.mark.parametrize("case", PRIMARY)
def test_primary_goes_on_step_by_step(case: str) -> None:
    observed, *conditions, state = PRIMARY[case]
    vrg = reconciled(group("primary"), observed)
    kinds = ("DataReady", "DataProtected", "ClusterDataReady", "ClusterDataProtected", "NoClusterDataConflict")
    assert [shown(vrg, kind) for kind in kinds] == conditions
    assert (vrg["status"]["state"], vrg["status"]["observedGeneration"]) == (state, 1)


REPLICA = Observed(has_data=True, replicated=True)
WAITING = Observed(has_data=True, wait="PVC data is in use by a running application")
SECONDARY = {
    "no data": ({}, Observed(), ("True", "Unused", 1), ("True", "Unused", 1), "Secondary"),
    "replicating": ({}, REPLICA, ("True", "Replicated", 1), ("True", "DataProtected", 1), "Secondary"),
    "no primary yet": ({}, Observed(has_data=True), ("False", "Progressing", 1), REPLICATING, "Unknown"),
    "still in use": ({}, WAITING, ("False", "Progressing", 1), REPLICATING, "Unknown"),
    "relocates, not copied": ({"action": "Relocate"}, Observed(has_data=True), ("True", "Replicating", 1), REPLICATING, "Unknown"),
    "relocates, copied": ({"action": "Relocate"}, REPLICA, ("True", "Replicated", 1), ("True", "DataProtected", 1), "Secondary"),
}


@pytest.mark.parametrize("case", SECONDARY)
def test_secondary_needs_its_data_in_sync(case: str) -> None:
    spec, observed, ready, protected, state = SECONDARY[case]
    vrg = reconciled(group("secondary", **spec), observed)
    assert (shown(vrg, "DataReady"), shown(vrg, "DataProtected"), vrg["status"]["state"]) == (ready, protected, state)
    assert shown(vrg, "ClusterDataReady") == shown(vrg, "KubeObjectsReady") == ("True", "Unused", 1)


def test_secondary_stays_one_when_its_primary_is_gone() -> None:
    vrg = reconciled(group("secondary"), REPLICA)
    assert reconciled(vrg, Observed(has_data=True), LATE)["status"]["state"] == "Secondary"


def test_state_is_unknown_until_data_are_ready_in_the_new_generation() -> None:
    """The conditions of the old generation stay True: who does not compare generations is misled."""
    vrg = changed(reconciled(group("secondary"), REPLICA), replicationState="primary")
    promoted = reconciled(vrg, Observed(claims=PROTECTED), LATE)
    assert shown(promoted, "DataReady") == ("True", "Replicated", 1) and shown(promoted, "ClusterDataReady") == ("True", "Unused", 1)
    assert (promoted["status"]["state"], promoted["status"]["observedGeneration"]) == ("Unknown", 2)
    assert reconciled(promoted, READY, LATE)["status"]["state"] == "Primary"


def test_last_sync_of_the_group_is_the_oldest_and_none_while_one_claim_has_none() -> None:
    older = ProtectedClaim(CLAIM, MOMENT - datetime.timedelta(minutes=1), 30)
    both = Observed(claims=(*PROTECTED, older), restored=DONE, protected=True)
    status = reconciled(group("primary"), both)["status"]
    assert (status["lastGroupSyncTime"], status["lastGroupSyncBytes"]) == ("2026-01-01T00:02:00Z", 42)
    never = Observed(claims=(*PROTECTED, ProtectedClaim(CLAIM)), restored=DONE, protected=True)
    assert "lastGroupSyncTime" not in reconciled(group("primary"), never)["status"]
    demoted = reconciled(changed(reconciled(group("primary"), READY), replicationState="secondary"), WAITING)
    assert "lastGroupSyncTime" not in demoted["status"]


def test_synchronous_primary_is_protected_when_its_peer_has_every_write() -> None:
    mirrored = Observed(claims=PROTECTED, restored=DONE, protected=True, uploaded=DONE, mirrored=True)
    assert shown(reconciled(group("primary", sync={}), mirrored), "DataProtected") == ("True", "DataProtected", 1)
    assert shown(reconciled(group("primary"), mirrored), "DataProtected") == REPLICATING
    assert shown(reconciled(group("primary", sync={}), READY), "DataProtected") == REPLICATING


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, set()),
        ({"prepareForFinalSync": True}, {"prepareForFinalSyncComplete"}),
        ({"prepareForFinalSync": True, "runFinalSync": True}, {"prepareForFinalSyncComplete", "finalSyncComplete"}),
    ],
)
def test_final_sync_is_reported_while_it_is_asked_for(spec: Object, expected: set[str]) -> None:
    observed = Observed(restored=DONE, protected=True, prepared=True, final_sync=True)
    status = reconciled(group("primary", **spec), observed)["status"]
    assert {name for name in ("prepareForFinalSyncComplete", "finalSyncComplete") if status.get(name)} == expected


def test_update_time_changes_only_with_something_else() -> None:
    vrg = reconciled(group("primary"), READY)
    assert reconciled(vrg, READY, LATE)["status"] == vrg["status"]
    later = reconciled(vrg, Observed(restored=DONE, protected=True, uploaded=FAILED), LATE)["status"]
    assert later["lastUpdateTime"] == LATE
    assert (
        by_type(later)["DataReady"]["lastTransitionTime"] == EARLY and by_type(later)["ClusterDataProtected"]["lastTransitionTime"] == LATE
    )


def test_test_failover_uploads_nothing_and_kube_objects_are_captured_once_a_generation() -> None:
    test = reconciled(group("primary", dryRun=True), READY)
    assert shown(test, "ClusterDataProtected") == ("True", "Unused", 1)
    vrg = reconciled(group("primary", kubeObjectProtection={}), READY)
    capture = vrg["status"]["kubeObjectProtection"]["captureToRecoverFrom"]
    assert (capture["number"], capture["startGeneration"]) == (0, 1)
    assert reconciled(vrg, READY, LATE)["status"] == vrg["status"]
    again = reconciled(changed(vrg, action="Failover"), READY, LATE)["status"]["kubeObjectProtection"]["captureToRecoverFrom"]
    assert (again["number"], again["startGeneration"]) == (1, 2)


def test_claims_are_listed_as_ramen_lists_them() -> None:
    (claim,) = reconciled(group("primary"), READY)["status"]["protectedPVCs"]
    assert claim["lastSyncTime"] == "2026-01-01T00:03:00Z" and claim["replicationID"] == {"id": "standin-replication"}
    maintained = ProtectedClaim(CLAIM, maintenance=True).to_object()
    assert maintained["replicationID"]["modes"] == ["Failover"] and "lastSyncTime" not in maintained
