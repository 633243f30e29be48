"""The parts of the stand-in for replication, case by case: faults, volumes, copies, workloads, DRClusters. Nothing runs here."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.replication import copies
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.conditions import by_type
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.drclusters import (
    drcluster_status,
    fence_status,
    fenced_by,
    is_cut_off,
    is_failing_over,
)
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.faults import FAULT, Delays, Faults, Step
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.member import Member, interval_of
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.site import Site
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.stores import key_of
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.volumes import (
    DEMOTED,
    PRIMARY,
    SECONDARY,
    Volume,
    new_write,
    persistent_volume,
    portable,
    selected,
    text_of,
)
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.workloads import (
    claims_of,
    templated_claims,
    unready_because,
    workload_status,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)
KEY = ("shop", "data")


def annotated(text: str) -> Object:
    return {"metadata": {"annotations": {FAULT: text}}}


def test_faults_of_several_objects_count_together_and_unknown_words_are_named() -> None:
    faults = Faults.of(annotated("stale, restore=2.5"), None, annotated("no-sync,restore=9,lag=60,typo,upload=soon"), {"metadata": {}})
    assert faults.words == {"stale", "no-sync"} and faults.seconds == {"restore": 2.5, "lag": 60.0}
    assert faults.problem == "The stand-in knows no fault typo, upload=soon"
    assert not Faults.of(None).problem


def test_delay_begins_when_a_generation_is_first_observed() -> None:
    delays = Delays()
    step = Step("east", "uid", 1, "restore")
    assert delays.remaining(step, 0, 100) == 0
    assert [delays.remaining(step, 5, now) for now in (100, 103, 105, 900)] == [5, 2, 0, 0]
    assert delays.remaining(step._replace(generation=2), 5, 900) == 5
    delays.forget("east", "uid")
    assert delays.remaining(step, 5, 900) == 5


def test_volume_is_a_config_map_whose_lines_tell_when_and_where_they_were_written() -> None:
    writes = (new_write("east", "first of all", NOW - MINUTE), new_write("east", "second", NOW))
    volume = Volume("shop", "data", SECONDARY, writes, NOW, {"app": "shop"})
    assert Volume.from_object(volume.to_object()) == volume
    assert [text_of(line) for line in volume.written_before(NOW - MINUTE)] == ["first of all"]
    assert volume.written_before(NOW) == writes


def member(site: str, role: str | None = None, state: str = "primary", fault: str = "", **spec: Any) -> Member:
    """A group on a cluster, with one volume in a role unless that is None."""
    mode = {} if "sync" in spec else {"async": {"schedulingInterval": "5m"}}
    vrg = {
        "metadata": {"name": "shop", "namespace": "shop", "generation": 1, "uid": site},
        "spec": {"replicationState": state, **mode, **spec},
    }
    volumes = {} if role is None else {KEY: Volume("shop", "data", role, synced=NOW - MINUTE)}
    return Member(cast(Site, SimpleNamespace(name=site)), vrg, Faults.of(annotated(fault)), [], volumes=volumes)


# The members -> which one others copy from, to whom, and which one gives its data away before it moves
COPIES: dict[str, tuple[list[Member], str, list[str], str]] = {
    "alone": ([member("east", PRIMARY)], "east", [], ""),
    "protected": ([member("east", PRIMARY), member("west", SECONDARY, "secondary")], "east", ["west"], ""),
    "before the first copy": ([member("east", PRIMARY), member("west", None, "secondary")], "east", ["west"], ""),
    "three clusters": (
        [member("east", PRIMARY), member("west", SECONDARY, "secondary"), member("north", SECONDARY, "secondary")],
        "east",
        ["west", "north"],
        "",
    ),
    "stopped by a fault": ([member("east", PRIMARY, fault="no-sync"), member("west", SECONDARY, "secondary")], "east", [], ""),
    "old primary is demoted": ([member("east", DEMOTED, "secondary"), member("west", PRIMARY)], "west", ["east"], ""),
    "old primary is in use": ([member("east", PRIMARY, "secondary"), member("west", PRIMARY)], "", [], ""),
    "two primaries": ([member("east", PRIMARY), member("west", PRIMARY)], "", [], ""),
    "test failover": ([member("east", PRIMARY), member("west", PRIMARY, dryRun=True)], "east", [], ""),
    "relocates": (
        [member("east", DEMOTED, "secondary", action="Relocate"), member("west", SECONDARY, "secondary")],
        "",
        ["west"],
        "east",
    ),
    "relocates, target promoted too early": (
        [member("east", DEMOTED, "secondary", action="Relocate"), member("west", PRIMARY)],
        "west",
        ["east"],
        "",
    ),
    "both secondary": ([member("east", DEMOTED, "secondary"), member("west", SECONDARY, "secondary")], "", [], ""),
}


@pytest.mark.parametrize("case", COPIES)
def test_data_are_copied_from_the_only_primary_or_from_the_one_that_relocates(case: str) -> None:
    members, source, targets, leaving = COPIES[case]
    found, moving = copies.source_of(members), copies.relocating(members)
    origin = found or moving
    assert (found.site.name if found else "") == source and (moving.site.name if moving else "") == leaving
    assert [target.site.name for target in copies.targets_of(origin, members)] == targets if origin else not targets


def test_two_primaries_are_a_conflict_unless_one_is_a_test() -> None:
    east, west = member("east", PRIMARY), member("west", PRIMARY)
    assert (copies.conflicts(east, [east, west]), copies.conflicts(west, [east, west])) == ("west", "east")
    test = member("west", PRIMARY, dryRun=True)
    assert copies.conflicts(east, [east, test]) == copies.conflicts(test, [east, test]) == ""


def test_fenced_cluster_neither_sends_nor_receives() -> None:
    east, west = member("east", PRIMARY), member("west", SECONDARY, "secondary")
    west.is_fenced = True
    assert copies.targets_of(east, [east, west]) == []
    west.is_fenced, east.is_fenced = False, True
    assert copies.targets_of(east, [east, west]) == []


@pytest.mark.parametrize(
    ("spec", "fault", "seconds"),
    [
        ({"async": {"schedulingInterval": "5m"}}, "", 5),
        ({"async": {"schedulingInterval": "2h"}}, "", 120),
        ({"async": {"schedulingInterval": "1d"}}, "", 1440),
        ({"async": {"schedulingInterval": "5m"}}, "interval=0.5", 0.5),
    ],
)
def test_minutes_of_the_interval_are_seconds(spec: Object, fault: str, seconds: float) -> None:
    assert interval_of(member("east", PRIMARY, fault=fault, **spec)).total_seconds() == seconds


def test_next_copy_is_due_an_interval_after_the_last_and_at_once_after_none() -> None:
    east = member("east", PRIMARY, fault="interval=90")
    assert copies.next_copy(east, NOW).total_seconds() == 30
    assert copies.next_copy(member("east", PRIMARY, fault="interval=90,lag=10"), NOW).total_seconds() == 40
    assert not copies.next_copy(member("east", PRIMARY, fault="interval=60"), NOW)
    assert not copies.next_copy(member("east", PRIMARY, sync={}), NOW)
    east.volumes[KEY] = Volume("shop", "data")
    assert not copies.next_copy(east, NOW)


def test_claim_and_volume_are_stored_without_what_is_of_one_cluster() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "replicated"}
    metadata = {"name": "data", "namespace": "shop", "labels": {"app": "shop"}, "uid": "u1", "resourceVersion": "7"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}
    assert portable(claim)["metadata"] == {"name": "data", "namespace": "shop", "labels": {"app": "shop"}} and "status" not in portable(
        claim
    )
    volume = persistent_volume(claim)
    assert volume["spec"]["claimRef"]["uid"] == "u1" and "uid" not in portable(volume)["spec"]["claimRef"]
    vrg = {"kind": "VolumeReplicationGroup", "metadata": {"name": "group", "namespace": "shop"}}
    assert [key_of(vrg, item) for item in (volume, claim, vrg)] == [
        "shop/group/v1.PersistentVolume/pvc-u1",
        "shop/group/v1.PersistentVolumeClaim/shop/data",
        "shop/group/v1alpha1.VolumeReplicationGroup/a",
    ]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"app": "shop"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["shop", "x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["shop"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_selector_chooses_claims(selector: Object, matches: bool) -> None:
    assert selected({"metadata": {"labels": {"app": "shop"}}}, selector) is matches


WORKLOAD = {
    "kind": "Deployment",
    "metadata": {"name": "shop", "namespace": "shop", "generation": 4},
    "spec": {"replicas": 2, "template": {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}}]}}},
}
BOUND, PENDING = {"data": {"status": {"phase": "Bound"}}}, {"data": {"status": {"phase": "Pending"}}}


@pytest.mark.parametrize(
    ("claims", "role", "fenced", "why"),
    [
        (BOUND, PRIMARY, False, ""),
        ({}, PRIMARY, False, "PersistentVolumeClaim data is not bound"),
        (PENDING, PRIMARY, False, "PersistentVolumeClaim data is not bound"),
        (BOUND, SECONDARY, False, "the volume of PersistentVolumeClaim data is secondary"),
        (BOUND, DEMOTED, False, "the volume of PersistentVolumeClaim data is demoted"),
        (BOUND, PRIMARY, True, "the cluster is fenced from the volume of PersistentVolumeClaim data"),
    ],
)
def test_workload_runs_where_its_volumes_are_primary(claims: dict[str, Object], role: str, fenced: bool, why: str) -> None:
    assert unready_because(WORKLOAD, claims, {"data": Volume("shop", "data", role)}, fenced) == why
    status = workload_status(WORKLOAD, why, "2026-01-01T00:00:00Z")
    assert status.get("readyReplicas", 0) == (0 if why else 2) and status["observedGeneration"] == 4
    (available,) = status["conditions"]
    assert available["status"] == ("False" if why else "True") and (why in available["message"])


def test_stateful_set_has_a_claim_for_each_replica_also_for_those_that_end() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "replicated"}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "shop"}}, "template": {"spec": {}}, "volumeClaimTemplates": [template]}
    workload = {"kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"}, "spec": spec, "status": {"replicas": 2}}
    assert claims_of(workload) == {"data-db-0", "data-db-1"}
    claim = templated_claims(workload)["data-db-0"]
    assert claim["metadata"] == {"name": "data-db-0", "namespace": "shop", "labels": {"app": "shop"}} and claim["spec"] == template["spec"]


def drcluster(fence: str = "", status: Object | None = None) -> Object:
    spec = {"s3ProfileName": "s3-east"} | ({"clusterFence": fence} if fence else {})
    return {"metadata": {"name": "east", "generation": 2}, "spec": spec, "status": status or {}}


def test_what_others_write_to_the_status_of_a_cluster_stays() -> None:
    fenced = {"type": "Fenced", "status": "True", "reason": "Fenced"}
    status = drcluster_status(drcluster("Fenced", {"phase": "Fenced", "conditions": [fenced]}), False, False, "2026-01-01T00:00:00Z")
    assert status["phase"] == "Fenced" and status["conditions"][0] == fenced
    assert by_type(status)["Validated"]["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("state", "complete", "before", "fenced"),
    [
        ("Fenced", False, {}, ""),
        ("Fenced", True, {}, "east"),
        ("Unfenced", False, {}, ""),
        ("Unfenced", True, {}, ""),
    ],
)
def test_a_network_fence_counts_when_it_has_taken_its_time(state: str, complete: bool, before: Object, fenced: str) -> None:
    fence = {"metadata": {"name": "network-fence-east"}, "spec": {"fenceState": state}, "status": fence_status(complete, before)}
    assert fenced_by(fence) == fenced
    assert is_cut_off(drcluster("ManuallyFenced")) and not is_cut_off(drcluster("Fenced"))


@pytest.mark.parametrize(
    ("action", "target", "phase", "expected"),
    [
        ("Failover", "east", "FailingOver", True),
        ("Failover", "west", "FailingOver", False),
        ("Relocate", "east", "FailingOver", False),
        ("Failover", "east", "FailedOver", False),
        ("Failover", "east", "", False),
    ],
)
def test_maintenance_mode_is_for_applications_that_fail_over_to_the_cluster(action: str, target: str, phase: str, expected: bool) -> None:
    control = {"spec": {"action": action, "failoverCluster": target}, "status": {"phase": phase}}
    assert is_failing_over(drcluster(), [control]) is expected


@pytest.mark.parametrize(("active", "state", "status"), [(False, "Progressing", "False"), (True, "Completed", "True")])
def test_maintenance_mode_is_reported_when_it_is_active(active: bool, state: str, status: str) -> None:
    (mode,) = drcluster_status(drcluster(), True, active, "2026-01-01T00:00:00Z")["maintenanceModes"]
    assert (mode["state"], mode["conditions"][0]["status"]) == (state, status)
