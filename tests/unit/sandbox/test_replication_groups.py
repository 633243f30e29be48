"""The reconcile of groups by the stand-in for replication: its delays and faults, on clusters that exist only in memory."""

from __future__ import annotations

import copy
import datetime
from dataclasses import replace
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.conditions import by_type
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.faults import FAULT, Faults
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.groups import Groups, now_in_utc
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.member import FINALIZER, Member
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.site import Site
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.stores import StoreError
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.volumes import PRIMARY, SECONDARY, Volume, new_write
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import parse_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Unreachable

CLAIM: Object = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "shop", "labels": {"app": "shop"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}, "storageClassName": "replicated", "volumeName": "pv"},
    "status": {"phase": "Bound"},
}
RUNNING = {
    "metadata": {"name": "shop", "namespace": "shop"},
    "spec": {"template": {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}}},
    "status": {"readyReplicas": 1},
}


class Cluster:
    """One cluster with its API server and its stores, as a member uses them."""

    def __init__(self, name: str, role: str | None = None, writes: tuple[str, ...] = (), claim: bool = True) -> None:
        self.name = name
        self.kube = self.stores = self
        self.claims = [copy.deepcopy(CLAIM)] if claim else []
        self.volumes = [Volume("shop", "data", role, writes, labels={"app": "shop"}).to_object()] if role else []
        self.stored: list[Object] | StoreError = []
        self.uploads: list[list[Object]] = []
        self.created: list[str] = []
        self.is_down = False
        self.vrg: Object = {}

    def want(self, state: str, **spec: Any) -> None:
        """Set the spec of the group; its generation counts up."""
        generation = self.vrg.get("metadata", {}).get("generation", 0) + 1
        metadata = {"name": "shop", "namespace": "shop", "uid": self.name, "generation": generation, "finalizers": [FINALIZER]}
        selector = {"matchLabels": {"app": "shop"}}
        fixed = {"pvcSelector": selector, "s3Profiles": ["s3"], "async": {"schedulingInterval": "5m"}, "replicationState": state}
        self.vrg = {"kind": "VolumeReplicationGroup", "metadata": metadata, "spec": fixed | spec, "status": self.vrg.get("status", {})}

    def member(self, fault: str = "", running: bool = False) -> Member:
        faults = Faults.of({"metadata": {"annotations": {FAULT: fault}}})
        member = Member(cast(Site, self), self.vrg, faults, [RUNNING] if running else [])
        member.read_claims()
        return member

    def list_all(self, _version: str, kind: str, *_more: str) -> list[Object]:
        return self.claims if kind == "PersistentVolumeClaim" else self.volumes

    def create(self, item: Object) -> Object:
        self._answer()
        self.created.append(f"{item['kind']} {item['metadata']['name']}")
        {"ConfigMap": self.volumes, "PersistentVolumeClaim": self.claims}.get(item["kind"], []).append(item)
        return item

    def patch(self, item: Object, changes: Object, **_options: Any) -> Object:
        self._answer()
        item["metadata"] |= changes.get("metadata", {})
        item |= {name: value for name, value in changes.items() if name != "metadata"}
        return item

    def replace(self, item: Object, subresource: str) -> Object:
        self._answer()
        assert subresource == "status"
        self.vrg = item
        return item

    def get(self, *_key: str) -> Object:
        return {"kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {}}

    def delete(self, item: Object) -> None:
        self.volumes.remove(item)

    def download(self, _vrg: Object) -> list[Object]:
        if isinstance(self.stored, StoreError):
            raise self.stored
        return self.stored

    def upload(self, _vrg: Object, items: list[Object]) -> str:
        self.uploads.append(items)
        return ""

    def remove(self, _vrg: Object) -> None:
        self.uploads.clear()

    def _answer(self) -> None:
        if self.is_down:
            raise Unreachable(f"{self.name} does not answer")

    @property
    def state(self) -> str:
        return str(self.vrg["status"].get("state"))

    def condition(self, kind: str) -> str:
        known = by_type(self.vrg["status"])[kind]
        return f"{known['status']}/{known['reason']}"

    @property
    def volume(self) -> Volume:
        return Volume.from_object(self.volumes[0])


def line(text: str) -> str:
    return f"2026-01-01T00:00:00+00:00 east {text}"


def primary(name: str = "east", **spec: Any) -> Cluster:
    cluster = Cluster(name, PRIMARY, (line("one"),))
    cluster.want("primary", **spec)
    return cluster


# What is asked of a primary -> the condition or field that waits for it
STEPS = {
    "restore": ({}, "ClusterDataReady"),
    "protect": ({}, "DataReady"),
    "upload": ({}, "ClusterDataProtected"),
    "prepare": ({"prepareForFinalSync": True}, "prepareForFinalSyncComplete"),
    "final-sync": ({"runFinalSync": True}, "finalSyncComplete"),
}


def complete(cluster: Cluster, what: str) -> bool:
    status = cluster.vrg["status"]
    return bool(status.get(what)) or by_type(status).get(what, {}).get("status") == "True"


@pytest.mark.parametrize("step", STEPS)
def test_step_of_a_primary_takes_the_time_that_is_asked_for(step: str) -> None:
    spec, what = STEPS[step]
    east, west, groups = primary(**spec), Cluster("west", claim=False), Groups()
    if step == "protect":
        east.volumes[0] = Volume("shop", "data", SECONDARY, labels={"app": "shop"}).to_object()
    west.want("secondary")
    again = groups.reconcile([east.member(f"{step}=60"), west.member()])
    assert not complete(east, what) and again is not None and again <= 60
    groups.reconcile([east.member(f"{step}=0.000001"), west.member()])
    assert complete(east, what)


def test_new_generation_is_observed_late_or_never() -> None:
    east, groups = primary(), Groups()
    groups.reconcile([east.member()])
    east.want("primary", action="Failover")
    for fault in ("observe=60", "stale"):
        groups.reconcile([east.member(fault)])
        assert east.vrg["status"]["observedGeneration"] == 1 and east.state == "Primary"
    groups.reconcile([east.member()])
    assert east.vrg["status"]["observedGeneration"] == 2


@pytest.mark.parametrize(("fault", "running"), [("secondary=60", False), ("never-secondary", False), ("", True)])
def test_group_is_not_secondary_before_its_volumes_are(fault: str, running: bool) -> None:
    east, west, groups = primary(), primary("west"), Groups()
    east.want("secondary", action="Failover")
    groups.reconcile([east.member(fault, running), west.member()])
    assert (east.state, east.volume.role) == ("Unknown", PRIMARY)
    groups.reconcile([east.member(), west.member()])
    assert (east.state, east.volume.role) == ("Secondary", SECONDARY)


def test_restore_is_done_once_and_again_after_the_group_was_secondary() -> None:
    west, groups = Cluster("west", SECONDARY, (line("copy"),), claim=False), Groups()
    west.want("primary", action="Failover")
    west.stored = StoreError("s3 does not answer")
    groups.reconcile([west.member()])
    assert west.condition("ClusterDataReady") == "False/Error" and west.volume.role == SECONDARY
    west.stored = [copy.deepcopy(CLAIM) | {"status": {"phase": "Pending"}}]
    groups.reconcile([west.member()])
    assert (west.state, west.condition("ClusterDataReady")) == ("Unknown", "True/Restored"), "the claim is not bound yet"
    west.claims[0]["status"]["phase"] = "Bound"
    groups.reconcile([west.member()])
    assert (west.state, west.condition("ClusterDataReady"), west.volume.role) == ("Primary", "True/Restored", PRIMARY)
    west.stored = StoreError("it is not asked again")
    west.want("primary")
    groups.reconcile([west.member()])
    assert west.state == "Primary"
    west.want("secondary")
    groups.reconcile([west.member()])
    west.want("primary")
    groups.reconcile([west.member()])
    assert west.condition("ClusterDataReady") == "False/Error"


def test_final_sync_copies_the_last_write_although_the_cache_lacks_it() -> None:
    east, west, groups = primary(runFinalSync=True), Cluster("west", claim=False), Groups()
    west.want("secondary")
    members = [east.member(), west.member()]
    east.volumes[0] = Volume("shop", "data", PRIMARY, (line("one"), line("last")), labels={"app": "shop"}).to_object()
    groups.reconcile([east.member("lag=3600", running=True), west.member()])
    assert "finalSyncComplete" not in east.vrg["status"]
    members = [replace(members[0], vrg=east.vrg), west.member()]
    groups.reconcile(members)
    assert west.volume.writes == (line("one"), line("last")) and east.vrg["status"]["finalSyncComplete"]


def test_copy_that_lags_behind_has_old_writes_and_an_old_time() -> None:
    east, west, groups = primary(), Cluster("west", claim=False), Groups()
    west.want("secondary")
    recent = new_write("east", "recent", now_in_utc())
    east.volumes[0] = Volume("shop", "data", PRIMARY, (line("one"), recent), labels={"app": "shop"}).to_object()
    groups.reconcile([east.member("lag=3600"), west.member()])
    assert west.volume.writes == (line("one"),)
    behind = now_in_utc() - cast(datetime.datetime, parse_time(east.vrg["status"]["lastGroupSyncTime"]))
    assert behind >= datetime.timedelta(hours=1)
    groups.reconcile([east.member("interval=0"), west.member()])
    assert west.volume.writes == (line("one"), recent)
    groups.reconcile([east.member("interval=0,lag=3600"), west.member()])
    assert west.volume.writes == (line("one"), recent), "no copy goes backwards"


def test_promoted_group_has_no_sync_until_its_own_first_copy() -> None:
    east, west, groups = primary(), Cluster("west", claim=False), Groups()
    west.want("secondary")
    groups.reconcile([east.member(), west.member()])
    assert west.volume.synced
    west.claims = [copy.deepcopy(CLAIM)]
    west.want("primary", action="Failover")
    groups.reconcile([west.member()])
    assert west.state == "Primary" and "lastGroupSyncTime" not in west.vrg["status"]


def test_cluster_that_does_not_answer_holds_up_no_other() -> None:
    east, west, groups = primary(), Cluster("west", claim=False), Groups()
    west.want("secondary")
    west.is_down = True
    assert groups.reconcile([east.member(), west.member()]) is not None
    assert east.state == "Primary" and "lastGroupSyncTime" not in east.vrg["status"]
    west.is_down = False
    groups.reconcile([east.member(), west.member()])
    assert west.volume.writes == east.volume.writes and west.state == "Secondary"
    assert east.vrg["status"]["lastGroupSyncTime"]


def test_group_protects_other_namespaces_which_its_peer_may_lack() -> None:
    east, west, groups = primary(protectedNamespaces=["shop"]), Cluster("west", claim=False), Groups()
    west.want("secondary", protectedNamespaces=["shop"])
    for cluster in (east, west):
        cluster.vrg["metadata"]["namespace"] = "ops"
    groups.reconcile([east.member(), west.member()])
    assert west.created == ["Namespace shop", "ConfigMap volume-data"] and west.state == "Secondary"


def test_nothing_is_uploaded_twice_nor_by_a_test_failover() -> None:
    east, groups = primary(), Groups()
    for _round in range(3):
        groups.reconcile([east.member()])
    assert [[item["kind"] for item in items] for items in east.uploads] == [
        ["VolumeReplicationGroup", "PersistentVolumeClaim", "PersistentVolume"]
    ]
    test = primary("west", dryRun=True)
    groups.reconcile([test.member()])
    assert test.state == "Primary" and test.uploads == []


def test_deleted_group_goes_with_its_copies_and_uploads() -> None:
    east, west, groups = primary(), Cluster("west", claim=False), Groups()
    west.want("secondary")
    groups.reconcile([east.member(), west.member()])
    for cluster in (east, west):
        cluster.vrg["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        member = cluster.member()
        groups.reconcile([member])
        assert FINALIZER not in member.vrg["metadata"]["finalizers"]
    assert east.uploads == [] and west.volumes == [] and east.volume.writes
