"""The stand-in for replication on two real API servers: states, data, stores, faults."""

from __future__ import annotations

import gzip
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.application import NotWritable
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.member import FINALIZER
from ansible_collections.openfleet.clusters.extensions.sandbox.replication.setup import CONFIG_MAP, KEY, NAMESPACE, bucket_of
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError

from ..support.replication import RAMEN, Protected, soon

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "protected_application.yaml"
STAMPS = {"dr.openfleet.io/epoch": "3", "drplacementcontrol.ramendr.openshift.io/destination-cluster": "east"}


def stored(client: Any, site: str, application: Protected) -> dict[str, Any]:
    """What the store of a cluster has for the application, by key."""
    bucket, prefix = bucket_of(site), f"{application.namespace}/"
    keys = [item["Key"] for item in client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]
    return {
        key.removeprefix(f"{prefix}app/"): json.loads(gzip.decompress(client.get_object(Bucket=bucket, Key=key)["Body"].read()))
        for key in keys
    }


def test_primary_runs_and_is_protected_by_a_secondary_and_both_stores(application: Protected, s3_client: Any) -> None:
    application.place("east")
    application.group("east", "primary", annotations=STAMPS)
    application.until_state("east", "Primary")
    application.until_running("east")
    application.until_condition("east", "ClusterDataProtected", "True", "Uploaded")
    assert "lastGroupSyncTime" not in application.status("east"), "there is no peer yet"
    application.group("west", "secondary")
    application.until_state("west", "Secondary")
    application.write("east", "one", "two")
    application.until_read("west", "two")
    with pytest.raises(NotWritable, match="does not run as primary"):
        application.write("west", "never")

    soon(lambda: "lastGroupSyncTime" in application.status("east"), "the sync is reported")
    assert application.conditions("east") == {
        "DataReady": ("True", "Ready"),
        "DataProtected": ("False", "Replicating"),
        "ClusterDataReady": ("True", "Restored"),
        "ClusterDataProtected": ("True", "Uploaded"),
        "KubeObjectsReady": ("True", "KubeObjectsRestored"),
        "NoClusterDataConflict": ("True", "ConflictResolved"),
    }
    vrg = application.get("east")
    assert STAMPS.items() <= vrg["metadata"]["annotations"].items() and FINALIZER in vrg["metadata"]["finalizers"]
    (claim,) = vrg["status"]["protectedPVCs"]
    assert (claim["name"], claim["lastSyncTime"]) == ("app", vrg["status"]["lastGroupSyncTime"])
    assert "lastGroupSyncTime" not in application.status("west") and application.read("west") == ["one", "two"]

    volume = application.sites["east"].get("persistentvolumeclaim", "app", "-n", application.namespace)["spec"]["volumeName"]
    for site in ("east", "west"):
        found = stored(s3_client, site, application)
        keys = {
            f"v1.PersistentVolume/{volume}",
            f"v1.PersistentVolumeClaim/{application.namespace}/app",
            "v1alpha1.VolumeReplicationGroup/a",
        }
        assert found.keys() == keys
        group = found["v1alpha1.VolumeReplicationGroup/a"]
        assert group["spec"]["replicationState"] == "primary" and group["status"]["lastUpdateTime"]
        assert STAMPS.items() <= group["metadata"]["annotations"].items()
    columns = application.sites["east"].kubectl("get", "vrg", "-n", application.namespace, "--no-headers").stdout.split()
    assert columns == ["app", "primary", "Primary"]


def test_failover_loses_what_was_not_copied_and_an_old_primary_is_a_conflict_until_it_is_demoted(
    application: Protected, sandbox: Sandbox
) -> None:
    application.deploy("east", "west")
    application.fault("east", "no-sync")
    application.write("east", "lost")
    victims = [process for process in sandbox.status() if process.owner == "east" and process.name in ("kube-apiserver", "etcd")]
    for victim in victims:
        os.kill(victim.pid, signal.SIGKILL)
    try:
        # The claim does not exist on west: it comes from the store.
        assert application.sites["west"].get("persistentvolumeclaim", "app", "-n", application.namespace) is None
        application.group("west", "primary", action="Failover")
        application.until_state("west", "Primary")
        assert application.conditions("west")["ClusterDataReady"] == ("True", "Restored")
        application.place("west")
        application.until_running("west")
        application.write("west", "after")
        assert application.read("west") == ["first", "after"]
        assert "lastGroupSyncTime" not in application.status("west"), "nothing has been copied since the failover"
    finally:
        sandbox.up(clusters=list(application.sites), replication=True)

    application.until_condition("west", "NoClusterDataConflict", "False", "ClusterDataConflictPrimary")
    application.until_condition("east", "NoClusterDataConflict", "False", "ClusterDataConflictPrimary")
    assert application.read("east") == ["first", "lost"] and application.read("west") == ["first", "after"]
    application.fault("east", "")
    application.group("east", "secondary", action="Failover")
    soon(lambda: "in use" in application.status("east")["conditions"][0]["message"], "the old application still runs")
    assert application.status("east")["state"] == "Unknown"
    application.scale("east", 0)
    application.until_state("east", "Secondary")
    application.until_read("east", "after")
    assert application.read("east") == ["first", "after"]
    application.until_condition("west", "NoClusterDataConflict", "True", "ConflictResolved")


def test_relocate_with_a_final_sync_loses_nothing(application: Protected) -> None:
    application.deploy("east", "west")
    application.fault("east", "lag=3600")
    application.write("east", "late")
    application.group("east", "primary", prepareForFinalSync=True)
    soon(lambda: application.status("east").get("prepareForFinalSyncComplete"), "the final sync is prepared")
    application.group("east", "primary", prepareForFinalSync=True, runFinalSync=True)
    application.until_state("east", "Primary")
    assert "finalSyncComplete" not in application.status("east"), "the application still runs"
    assert application.read("west") == ["first"], "the replication lags behind"
    application.scale("east", 0)
    soon(lambda: application.status("east").get("finalSyncComplete"), "the final sync is complete")
    assert application.read("west") == ["first", "late"]

    application.group("east", "secondary", action="Relocate")
    application.until_state("east", "Secondary")
    assert application.conditions("east")["DataProtected"] == ("True", "DataProtected")
    application.group("west", "primary", action="Relocate")
    application.until_state("west", "Primary")
    application.place("west")
    application.until_running("west")
    application.write("west", "home")
    application.until_read("east", "home")
    assert application.read("east") == ["first", "late", "home"]


def test_group_that_relocates_is_secondary_only_when_its_peer_has_all_data(application: Protected) -> None:
    """Without a final sync before it: the demotion copies what is missing."""
    application.deploy("east", "west")
    application.fault("east", "no-sync")
    application.write("east", "late")
    application.scale("east", 0)
    application.group("east", "secondary", action="Relocate")
    application.until_condition("east", "DataReady", "True", "Replicating")
    assert application.status("east")["state"] == "Unknown" and application.read("west") == ["first"]
    application.fault("east", "")
    application.until_state("east", "Secondary")
    assert application.read("west") == ["first", "late"]


def test_synchronous_group_copies_every_write_at_once(application: Protected) -> None:
    application.deploy("east", "west", sync={})
    application.write("east", "now")
    application.until_read("west", "now")
    application.until_condition("east", "DataProtected", "True", "DataProtected")


def test_test_failover_writes_to_a_copy_that_its_end_discards(application: Protected, s3_client: Any) -> None:
    application.deploy("east", "west")
    application.group("west", "primary", action="Failover", dryRun=True)
    application.until_state("west", "Primary")
    application.place("west")
    application.until_running("west")
    application.write("west", "test")
    application.write("east", "real")
    assert application.conditions("west")["NoClusterDataConflict"] == ("True", "ConflictResolved")
    assert application.read("west") == ["first", "test"] and application.read("east") == ["first", "real"]
    stamps = stored(s3_client, "west", application)["v1alpha1.VolumeReplicationGroup/a"]["spec"]
    assert "dryRun" not in stamps, "a test failover uploads nothing"
    application.scale("west", 0)
    application.group("west", "secondary")
    application.until_state("west", "Secondary")
    application.until_read("west", "real")
    assert application.read("west") == ["first", "real"]


def test_faults_of_the_namespace_hold_for_groups_created_later(application: Protected) -> None:
    application.fault("east", "upload-error")
    application.fault("west", "never-secondary")
    application.place("east")
    application.group("east", "primary")
    application.group("west", "secondary")
    application.until_condition("east", "ClusterDataProtected", "False", "UploadError")
    application.until_condition("west", "DataReady", "False", "Progressing")
    assert application.status("east")["state"] == "Primary" and application.status("west")["state"] == "Unknown"
    application.fault("east", "")
    application.fault("west", "")
    application.until_condition("east", "ClusterDataProtected", "True", "Uploaded")
    application.until_state("west", "Secondary")

    # A new generation that is not observed: the old status stays, with its old generation.
    application.fault("west", "stale")
    application.fault("east", "typo")
    application.until_condition("east", "DataReady", "False", "Error")
    application.group("west", "primary", action="Failover")
    application.fault("east", "")
    application.until_state("east", "Primary")
    vrg = application.get("west")
    assert vrg["metadata"]["generation"] == 2 and vrg["status"]["observedGeneration"] == 1 and vrg["status"]["state"] == "Secondary"
    application.fault("west", "restore-error")
    application.until_condition("west", "ClusterDataReady", "False", "Error")
    assert application.status("west")["state"] == "Unknown"
    application.fault("west", "protect=3600")
    application.until_condition("west", "DataReady", "False", "Progressing")
    application.fault("west", "protect=1")
    application.until_state("west", "Primary")


def test_restore_needs_one_store_and_the_upload_all_of_them(application: Protected) -> None:
    """The store of the dead cluster is named and does not answer."""
    application.group("east", "primary", s3Profiles=["s3-unknown"])
    application.until_condition("east", "ClusterDataReady", "False", "Error")
    assert application.status("east")["state"] == "Unknown"
    application.group("east", "primary")
    application.deploy("east", "west")
    application.until_condition("east", "ClusterDataProtected", "True", "Uploaded")
    kube = application.sites["west"].kube
    config = kube.get("v1", "ConfigMap", CONFIG_MAP, NAMESPACE)
    broken = config["data"][KEY].replace(f"s3Bucket: {bucket_of('east')}\n", "s3Bucket: absent\n")
    kube.patch(config, {"data": {KEY: broken}}, checked=False)
    try:
        application.fault("east", "no-sync")
        application.group("west", "primary", action="Failover")
        application.until_condition("west", "ClusterDataProtected", "False", "UploadError")
        assert application.conditions("west")["ClusterDataReady"] == ("True", "Restored")
        assert kube.find("v1", "PersistentVolumeClaim", "app", application.namespace) is not None
    finally:
        kube.patch(config, {"data": {KEY: config["data"][KEY]}}, checked=False)
    application.until_condition("west", "ClusterDataProtected", "True", "Uploaded")


def test_deleted_groups_take_their_uploads_and_copies_with_them(application: Protected, s3_client: Any) -> None:
    application.deploy("east", "west")
    application.until_condition("east", "ClusterDataProtected", "True", "Uploaded")
    for site in ("west", "east"):
        application.sites[site].kube.delete(application.get(site))
        soon(lambda site=site: not application.get(site), f"the group is gone on {site}")  # type: ignore[misc]
    assert stored(s3_client, "east", application) == stored(s3_client, "west", application) == {}
    assert application.read("west") == [] and application.read("east") == ["first"]
    assert application.app.runs(application.sites["east"].kube), "the application goes on without protection"


def test_fenced_cluster_loses_its_volumes_until_it_is_unfenced(application: Protected, dr_sites: dict[str, Access]) -> None:
    application.deploy("east", "west", sync={})
    west = dr_sites["west"].kube
    spec = {"driver": "csi.example.com", "cidrs": ["10.0.1.0/24"], "fenceState": "Fenced"}
    metadata = {"name": "network-fence-east"}
    fence = west.create({"apiVersion": "csiaddons.openshift.io/v1alpha1", "kind": "NetworkFence", "metadata": metadata, "spec": spec})
    try:
        soon(lambda: not application.app.runs(dr_sites["east"].kube), "the application has lost its volume")
        west.patch(fence, {"spec": {"fenceState": "Unfenced"}}, checked=False)
        application.until_running("east")
    finally:
        west.delete(fence)


def test_storage_maintenance_is_activated_for_a_failover_that_needs_it(application: Protected, dr_sites: dict[str, Access]) -> None:
    application.fault("east", "maintenance")
    application.deploy("east", "west")
    soon(lambda: application.status("east")["protectedPVCs"][0]["replicationID"].get("modes") == ["Failover"], "the mode is named")
    west = dr_sites["west"].kube
    references = {"placementRef": {"name": "app", "kind": "Placement"}, "drPolicyRef": {"name": "regional"}}
    spec = {**references, "pvcSelector": {}, "preferredCluster": "east", "failoverCluster": "west", "action": "Failover"}
    metadata = {"name": "app", "namespace": application.namespace}
    control = west.create({"apiVersion": RAMEN, "kind": "DRPlacementControl", "metadata": metadata, "spec": spec})
    cluster = {"apiVersion": RAMEN, "kind": "DRCluster", "metadata": {"name": "west"}, "spec": {"s3ProfileName": "s3-west"}}
    cluster = west.create(cluster)
    try:
        control = west.patch(control, {"status": {"phase": "FailingOver"}}, subresource="status")

        def modes() -> list[dict[str, Any]]:
            found = dr_sites["west"].get("drcluster", "west").get("status", {}).get("maintenanceModes", [])
            return list(found)

        soon(lambda: [mode["state"] for mode in modes()] == ["Completed"], "the mode is active")
        (mode,) = modes()
        pvc = application.status("east")["protectedPVCs"][0]
        assert (mode["storageProvisioner"], mode["targetID"]) == (pvc["csiProvisioner"], pvc["replicationID"]["id"])
        assert [(entry["type"], entry["status"]) for entry in mode["conditions"]] == [("FailoverActivated", "True")]
        west.patch(control, {"status": {"phase": "FailedOver"}}, subresource="status", checked=False)
        soon(lambda: not modes(), "the mode ends with the failover")
    finally:
        west.delete(cluster)


def test_stand_in_that_has_crashed_is_named_and_continues_after_up(application: Protected, sandbox: Sandbox) -> None:
    application.deploy("east", "west")
    (victim,) = [process for process in sandbox.status() if process.name == "replication-standin"]
    os.kill(victim.pid, signal.SIGKILL)
    soon(lambda: not next(process for process in sandbox.status() if process.pid == victim.pid).running, "it has ended")
    with pytest.raises(UserError, match="replication-standin of replication-standin has ended"):
        sandbox.check()
    application.write("east", "meanwhile")
    application.group("west", "secondary", action="Failover")
    sandbox.up()
    application.until_state("west", "Secondary")
    application.until_read("west", "meanwhile")


def test_stateful_set_gets_its_claims_and_runs_where_they_are_primary(application: Protected) -> None:
    east = application.sites["east"].kube
    labels, metadata = application.app.labels, {"name": "db", "namespace": application.namespace}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "registry.example.com/db:1"}]}}
    claim = {"metadata": {"name": "data"}, "spec": application.app.claim()["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "serviceName": "db", "template": template, "volumeClaimTemplates": [claim]}
    east.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})
    application.group("east", "primary")

    def ready() -> int:
        return int(east.get("apps/v1", "StatefulSet", "db", application.namespace).get("status", {}).get("readyReplicas", 0))

    soon(lambda: ready() == 2, "both replicas are ready")
    soon(lambda: len(application.status("east").get("protectedPVCs", [])) == 2, "both claims are protected")
    application.group("east", "secondary", action="Failover")
    soon(lambda: "in use" in application.status("east")["conditions"][0]["message"], "the claims are in use")
    east.patch(east.get("apps/v1", "StatefulSet", "db", application.namespace), {"spec": {"replicas": 0}}, checked=False)
    soon(lambda: "in use" not in application.status("east")["conditions"][0]["message"], "the claims are not in use")


def test_documented_example_runs(dr_sites: dict[str, Access]) -> None:
    east = dr_sites["east"]
    try:
        east.kubectl("apply", "-f", str(EXAMPLE))
        east.wait("-n", "shop", "deployment/shop", "--for=condition=Available", timeout="180s")
        east.wait("-n", "shop", "vrg/shop", "--for=condition=ClusterDataProtected", timeout="180s")
        assert east.kubectl("get", "deployment", "-n", "shop", "--no-headers").stdout.split()[1] == "2/2"
    finally:
        east.kubectl("delete", "namespace", "shop", "--ignore-not-found", "--wait=false")
