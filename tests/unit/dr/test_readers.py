"""Ramen's objects as values: only what is of the current generation counts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import DeployVRG, Intent, Member, Workload
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.readers import (
    read_ended_epoch,
    read_intent,
    read_member,
    read_policy,
    read_workload,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.vrg import VRG, StorageTarget

from . import samples
from .ramen_objects import DRCLUSTER, DRPC, DRPOLICY
from .samples import DEAD, Object, acting, observed, secondary, vrg


def test_an_intent() -> None:
    assert read_intent(DRPC) == Intent(
        namespace="shop",
        name="database",
        uid="uid-1",
        generation=4,
        action="Failover",
        preferred="east",
        failover="west",
        dry_run=True,
        deleting=False,
        pvc_selector={"matchLabels": {"app": "shop"}},
        protected_namespaces=("shop",),
        kube_objects={"captureInterval": "5m"},
        volsync={"disabled": True},
        group="global-1",
        network_mapping="addresses",
    )
    assert read_intent(DRPC).target == "west"
    assert read_intent(DRPC).discovered
    minimal = {"metadata": DRPC["metadata"] | {"deletionTimestamp": "now"}, "spec": {}}
    assert (read_intent(minimal).action, read_intent(minimal).target, read_intent(minimal).deleting) == ("", "", True)


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("9" * 18, 10**18 - 1), ("9" * 5000, 0), ("seven", 0), ("", 0)])
def test_number_in_an_annotation(text: str, number: int) -> None:
    annotations = {"dr.openfleet.io/ended-epoch": text, "dr.openfleet.io/epoch": text, "dr.openfleet.io/revision": text}
    item = {"metadata": {"annotations": annotations}}
    assert (VRG.from_object(item).stamp, read_ended_epoch(item)) == ((number, number), number)


def test_a_policy() -> None:
    policy = read_policy(DRPOLICY, [DRCLUSTER])
    assert policy.clusters == ("east", "west")
    assert (policy.valid, policy.synchronous, policy.interval) == (True, False, timedelta(hours=2))
    assert policy.member("west") == Member("west")
    mapped = DRPOLICY | {"spec": DRPOLICY["spec"] | {"networkMappingRef": {"name": "addresses"}}}
    assert (policy.network_mapping, read_policy(mapped, []).network_mapping) == ("", "addresses")
    assert policy.replication == {
        "schedulingInterval": "2h",
        "replicationClassSelector": {"matchLabels": {"class": "fast"}},
        "peerClasses": [{"storageClassName": "rbd", "replicationID": "group-1"}],
    }


@pytest.mark.parametrize(
    ("changes", "valid"),
    [({}, True), ({"generation": 3}, False)],
    ids=["of this generation", "of an old generation"],
)
def test_a_policy_is_valid_for_its_generation_only(changes: Object, valid: bool) -> None:
    policy = DRPOLICY | {"metadata": DRPOLICY["metadata"] | changes}
    assert read_policy(policy, []).valid == valid


def test_a_member() -> None:
    active = frozenset({StorageTarget("csi", "group-1")})
    assert read_member(DRCLUSTER) == Member("east", "north", "s3-east", fenced=True, fencing=True, maintenance=active)
    stale = DRCLUSTER | {"metadata": DRCLUSTER["metadata"] | {"generation": 4}}
    assert (read_member(stale).fenced, read_member(stale).fencing) == (False, True)


def test_a_synchronous_policy() -> None:
    policy = read_policy({"metadata": {"name": "p"}, "spec": {"drClusters": ["east", "west"], "schedulingInterval": ""}}, [])
    assert (policy.synchronous, policy.replication) == (True, {})


def test_a_workload() -> None:
    def noted(note: str, **metadata: str) -> Object:
        return {"metadata": {"annotations": {"dr.openfleet.io/replicas": note}} | metadata, "spec": {"replicas": 0}, "status": {}}

    stopped, starting = {"spec": {"replicas": 0}, "status": {}}, {"spec": {}, "status": {"replicas": 1}}
    assert read_workload([]) == Workload()
    assert read_workload([stopped, starting]) == Workload(1, 1, idle=1)
    assert read_workload([noted("2"), noted(""), noted("0"), starting]) == Workload(1, 1, idle=2, pending=1)
    assert read_workload([noted("2", deletionTimestamp=samples.stamp())]) == Workload()


def test_storage_and_stamps_of_a_group() -> None:
    pvcs = [
        {"name": "a", "csiProvisioner": "csi", "replicationID": {"id": "group-1", "modes": ["Failover"]}},
        {"name": "b", "csiProvisioner": "csi", "replicationID": {"id": "group-2"}},
    ]
    found = VRG.from_object(vrg(protectedPVCs=pvcs, epoch=3, revision=12))
    assert (found.storage, found.stamp) == ((StorageTarget("csi", "group-1"),), (3, 12))


def test_volsync_receives_until_it_is_restored_and_sends_afterwards() -> None:
    """A new primary restores from what it received, so that is removed from its spec only when it is complete."""
    pvc = {"name": "data", "namespace": "shop", "protectedByVolSync": True}
    received = {"rdSpec": [{"protectedPVC": pvc}]}
    requested = {"action": "Failover"}
    promoted = acting(
        samples.intent("Failover", "west"),
        samples.in_progress("Failover", "Promote"),
        observed(DEAD, secondary(spec={"volSync": received})),
    )
    assert [item.spec["volSync"] for item in promoted if isinstance(item, DeployVRG)] == [received]
    cleaning = samples.in_progress("Failover", "Clean", home="west", last_action="Failover")
    old = secondary(spec=requested, rdInfo=[{"protectedPVC": pvc | {"lastSyncTime": "now"}, "rsyncTLS": {"address": "10.0.0.1"}}])
    new = vrg(spec=requested | {"volSync": received}, protectedPVCs=[pvc | {"lastSyncBytes": 5}])
    specs = {item.cluster: item.spec["volSync"] for item in acting(samples.intent("Failover", "west"), cleaning, observed(old, new))}
    assert specs == {"west": {"rsSpec": [{"protectedPVC": pvc, "rsyncTLS": {"address": "10.0.0.1"}}]}, "east": received}
