"""What the provider `capi` makes of the objects of Cluster API: states, node sets, and what others have put into a topology."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import FIELD_MANAGER
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.capi import ClusterProvider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.capi.topology import with_foreign_entries
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeSet, ObservedCluster

LABEL = "openfleet.clusters/resource-class"
GOOD = {
    "Available": "True",
    "InfrastructureReady": "True",
    "ControlPlaneAvailable": "True",
    "RemoteConnectionProbe": "True",
    "WorkersAvailable": "True",
    "TopologyReconciled": "True",
    "RollingOut": "False",
    "Remediating": "False",
}


def condition(kind: str, status: str, generation: int, reason: str = "Because") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": f"{kind} in words", "observedGeneration": generation}


def cluster(conditions: dict[str, str] | None = None, replicas: int | None = 2, generation: int = 3, of: int = 3, **reasons: str) -> Object:
    entry: Object = {"name": "small", "class": "worker", "metadata": {"labels": {LABEL: "small"}}}
    return {
        "kind": "Cluster",
        "metadata": {"name": "lab", "namespace": "clusters", "generation": generation},
        "spec": {
            "controlPlaneEndpoint": {"host": "fd00::1", "port": 6443},
            "topology": {
                "version": "v1.36.3",
                "workers": {"machineDeployments": [entry | ({} if replicas is None else {"replicas": replicas}), {"name": "others"}]},
            },
        },
        "status": {
            "conditions": [
                condition(kind, status, of, reasons.get(kind, "Because"))
                for kind, status in (GOOD if conditions is None else conditions).items()
            ],
            "initialization": {"controlPlaneInitialized": True},
        },
    }


def deployment(ready: int = 2, replicas: int = 2, name: str = "small", observed: int = 1, **status: Any) -> Object:
    labels = {"cluster.x-k8s.io/cluster-name": "lab", "topology.cluster.x-k8s.io/deployment-name": name, LABEL: name}
    return {
        "kind": "MachineDeployment",
        "metadata": {"name": f"lab-{name}-x1", "namespace": "clusters", "generation": 1, "labels": labels},
        "spec": {"replicas": replicas},
        "status": {"readyReplicas": ready, "observedGeneration": observed, **status},
    }


def seen(*items: Object) -> ObservedCluster:
    ref = ClusterRef(None, "lab", "clusters")  # type: ignore[arg-type]
    return ClusterProvider(ref).observe_objects(ObservedCluster(), items)


@pytest.mark.parametrize(
    ("items", "state", "said"),
    [
        ([], "absent", ""),
        ([deployment()], "cleanup", ""),
        ([cluster({})], "cluster_accepted", "has not reported"),
        (
            [cluster(GOOD | {"ControlPlaneAvailable": "False", "InfrastructureReady": "False"})],
            "cluster_provisioning",
            "InfrastructureReady is False",
        ),
        ([cluster(GOOD | {"ControlPlaneAvailable": "False"})], "cluster_provisioning", "ControlPlaneAvailable in words"),
        ([cluster(GOOD | {"RemoteConnectionProbe": "False"})], "cluster_provisioning", "RemoteConnectionProbe in words"),
        ([cluster(of=2)], "cluster_provisioning", "older generation"),
        ([cluster(), deployment(ready=1)], "cluster_provisioned", "1 nodes are not ready yet: WorkersAvailable"),
        ([cluster()], "cluster_provisioned", "2 nodes are not ready yet"),
        ([cluster(GOOD | {"Remediating": "True"}), deployment()], "cluster_provisioned", "Remediating in words"),
        ([cluster(GOOD | {"InfrastructureReady": "False"}), deployment()], "cluster_provisioned", "InfrastructureReady in words"),
        ([cluster(GOOD | {"Available": "False"}), deployment()], "cluster_provisioned", "Available is False"),
        ([cluster(), deployment()], "ready", ""),
        ([cluster(replicas=None), deployment(ready=7, replicas=7)], "ready", ""),
        ([cluster(GOOD | {"TopologyReconciled": "False"}), deployment()], "ready", ""),
        (
            [cluster(GOOD | {"TopologyReconciled": "False"}, TopologyReconciled="ReconcileFailed"), deployment()],
            "failed",
            "TopologyReconciled in words",
        ),
    ],
)
def test_state_is_reported_with_its_reason(items: list[Object], state: str, said: str) -> None:
    spec = seen(*items)
    assert spec.status == state
    assert said in spec.status_details if said else not spec.status_details


def test_what_is_being_deleted_says_what_it_waits_for() -> None:
    deleting = cluster(GOOD | {"Deleting": "True"})
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert (seen(deleting).status, seen(deleting).status_details) == ("deprovisioning", "Deleting is True (Because): Deleting in words")


def test_address_version_and_installation_are_reported() -> None:
    spec = seen(cluster(), deployment())
    assert (spec.api_url, spec.version, spec.installed, spec.updating) == ("https://[fd00::1]:6443", "v1.36.3", True, False)


@pytest.mark.parametrize(
    "items",
    [
        [cluster(GOOD | {"RollingOut": "True"}), deployment()],
        [cluster(GOOD | {"TopologyReconciled": "False"}, TopologyReconciled="ClusterUpgrading"), deployment()],
        [cluster(), deployment(conditions=[condition("RollingOut", "True", 1)])],
    ],
)
def test_a_version_on_its_way_is_an_update(items: list[Object]) -> None:
    assert seen(*items).updating


@pytest.mark.parametrize(
    ("items", "node_sets"),
    [
        ([cluster()], [NodeSet("small", "small", 2, 0)]),
        ([cluster(), deployment()], [NodeSet("small", "small", 2, 2)]),
        ([cluster(replicas=3), deployment()], [NodeSet("small", "small", 3, 2, outdated=True)]),
        ([cluster(), deployment(observed=0)], [NodeSet("small", "small", 2, 2, outdated=True)]),
        ([cluster(replicas=None), deployment(5, 5)], [NodeSet("small", "small", None, 5)]),
        (
            [cluster(), deployment(), deployment(1, 1, "large")],
            [NodeSet("small", "small", 2, 2), NodeSet("large", "large", 0, 1, outdated=True, deleting=True)],
        ),
    ],
)
def test_nodes_are_those_of_the_topology(items: list[Object], node_sets: list[NodeSet]) -> None:
    assert list(seen(*items).node_sets) == node_sets


def test_machine_deployments_of_other_clusters_and_of_none_are_not_counted() -> None:
    foreign, unowned = deployment(), deployment(name="unowned")
    foreign["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] = "other"
    del unowned["metadata"]["labels"][LABEL]
    assert seen(foreign).status == "absent"
    assert seen(cluster(), unowned).node_sets == (NodeSet("small", "small", 2, 0),)


def topology(workers: list[str], variables: list[str], owned: tuple[str, ...] | list[str] = ()) -> Object:
    keys = {f'k:{{"name":"{name}"}}': {} for name in owned}
    fields = {"f:spec": {"f:topology": {"f:workers": {"f:machineDeployments": keys}, "f:variables": keys}}}
    return {
        "metadata": {"managedFields": [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}]},
        "spec": {
            "topology": {
                "workers": {"machineDeployments": [{"name": name} for name in workers]},
                "variables": [{"name": name} for name in variables],
            }
        },
    }


@pytest.mark.parametrize(
    ("wanted", "present", "owned", "merged"),
    [
        (["a"], ["a"], ["a"], ["a"]),
        (["a"], ["others", "a"], ["a"], ["others", "a"]),
        (["a"], ["a", "dropped"], ["a", "dropped"], ["a"]),
        (["a", "b"], ["b", "others"], ["b"], ["b", "others", "a"]),
        ([], ["others"], [], ["others"]),
    ],
)
def test_only_what_is_ours_and_no_longer_wanted_is_missed(
    wanted: list[str], present: list[str], owned: list[str], merged: list[str]
) -> None:
    asked = topology(wanted, wanted)
    before = copy.deepcopy(asked)
    result = with_foreign_entries(asked, topology(present, present, owned))["spec"]["topology"]
    assert [item["name"] for item in result["workers"]["machineDeployments"]] == merged
    assert [item["name"] for item in result["variables"]] == merged
    assert asked == before
