"""What the stand-in for HyperShift says of a HostedCluster and its NodePools, case by case; nothing runs here."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.nodes import ready_count
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.pools import node_pool_status
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.status import (
    FAULT,
    VALID_RELEASE_IMAGE,
    ControlPlane,
    Faults,
    Object,
    Problem,
    conditions,
    hosted_cluster_status,
    invalid_networks,
    release_version,
    wanted_nodes,
)

OLD, NEW = "quay.io/openshift-release-dev/ocp-release:4.17.0-x86_64", "quay.io/openshift-release-dev/ocp-release:4.18.1-x86_64"
PATCH = "quay.io/openshift-release-dev/ocp-release:4.17.5-x86_64"
EARLY, LATE, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"
STARTING = ControlPlane()
UP = ControlPlane(available=True, host="127.0.0.1", port=6443)
NO_PULL_SECRET = ControlPlane(problem=Problem(VALID_RELEASE_IMAGE, "SecretNotFound", "pull secret pull-secret not found"))


def hosted_cluster(fault: str = "", image: str = OLD) -> Object:
    return {
        "metadata": {"name": "blue", "namespace": "clusters", "generation": 1, "annotations": {FAULT: fault} if fault else {}},
        "spec": {"release": {"image": image}},
    }


def node_pool(replicas: int = 3, fault: str = "", image: str = OLD, **spec: Any) -> Object:
    return {
        "metadata": {"name": "blue-workers", "namespace": "clusters", "generation": 1, "annotations": {FAULT: fault} if fault else {}},
        "spec": {"clusterName": "blue", "replicas": replicas, "release": {"image": image}, **spec},
    }


def reconciled(cluster: Object, plane: ControlPlane, nodes: int = 0, now: str = EARLY) -> Object:
    """The HostedCluster with the status of one reconcile."""
    return cluster | {"status": hosted_cluster_status(cluster, plane, nodes, now)}


def reconciled_pool(pool: Object, ready: int, plane: ControlPlane = UP, now: str = EARLY) -> Object:
    return pool | {"status": node_pool_status(pool, ready, plane, now)}


def changed(item: Object, **spec: Any) -> Object:
    """The object after a user's edit of its spec: the API server counts its generation up."""
    metadata = item["metadata"] | {"generation": item["metadata"]["generation"] + 1}
    return item | {"metadata": metadata, "spec": item["spec"] | spec}


def installed(fault: str = "") -> Object:
    """A HostedCluster that is up, has nodes, and was reconciled until nothing changed."""
    return reconciled(reconciled(hosted_cluster(fault), UP, 3, EARLY), UP, 3, EARLY)


def condition(item: Object, kind: str) -> Object:
    found: list[Object] = [entry for entry in item["status"]["conditions"] if entry["type"] == kind]
    assert len(found) == 1, f"{kind} is there {len(found)} times"
    return found[0]


def holding(item: Object) -> dict[str, bool | None]:
    """Whether each condition holds; None where that is Unknown."""
    return {entry["type"]: {"True": True, "False": False}.get(entry["status"]) for entry in item["status"]["conditions"]}


def releases(cluster: Object) -> list[tuple[str, str]]:
    return [(entry["version"], entry["state"]) for entry in cluster["status"]["version"]["history"]]


# HostedCluster


@pytest.mark.parametrize(
    ("fault", "reconciles", "expected"),
    [
        pytest.param(
            "",
            [(STARTING, 0)],
            {"Available": False, "Degraded": None, "Progressing": True, "ValidConfiguration": True, "ClusterVersionSucceeding": None},
            id="not available yet",
        ),
        pytest.param(
            "",
            [(UP, 0), (UP, 0)],
            {
                "Available": True,
                "Degraded": False,
                "Progressing": True,
                "ClusterVersionAvailable": False,
                "ClusterVersionSucceeding": False,
            },
            id="available without nodes",
        ),
        pytest.param(
            "",
            [(UP, 3), (UP, 3)],
            {"Available": True, "Degraded": False, "Progressing": False, "ClusterVersionAvailable": True, "ClusterVersionSucceeding": True},
            id="available with nodes",
        ),
        pytest.param(
            "",
            [(NO_PULL_SECRET, 0)],
            {
                "Available": False,
                "ValidReleaseImage": False,
                "ValidConfiguration": True,
                "ReconciliationSucceeded": False,
                "Degraded": None,
            },
            id="no pull secret",
        ),
        pytest.param("degraded", [(UP, 3), (UP, 3)], {"Available": True, "Degraded": True, "Progressing": False}, id="degraded"),
        pytest.param("degraded", [(STARTING, 0)], {"Available": False, "Degraded": None}, id="degraded but not available"),
        pytest.param("", [(UP, 3), (UP, 3), (STARTING, 3)], {"Available": False, "Progressing": False}, id="control plane lost"),
    ],
)
def test_conditions_of_a_hosted_cluster(fault: str, reconciles: list[tuple[ControlPlane, int]], expected: dict[str, bool | None]) -> None:
    cluster = hosted_cluster(fault)
    for plane, nodes in reconciles:
        cluster = reconciled(cluster, plane, nodes)
    assert {kind: holds for kind, holds in holding(cluster).items() if kind in expected} == expected


def test_cluster_that_is_not_available_yet_has_no_endpoint_to_use() -> None:
    cluster = reconciled(hosted_cluster(), STARTING)
    assert not {"controlPlaneEndpoint", "kubeconfig", "kubeadminPassword"} & cluster["status"].keys()
    assert condition(cluster, "Available")["reason"] == "WaitingForAvailable"


def test_available_cluster_says_where_it_is_and_which_secrets_open_it() -> None:
    status = reconciled(hosted_cluster(), UP)["status"]
    assert status["controlPlaneEndpoint"] == {"host": "127.0.0.1", "port": 6443}
    assert status["kubeconfig"] == {"name": "blue-admin-kubeconfig"}
    assert status["kubeadminPassword"] == {"name": "blue-kubeadmin-password"}


def test_control_plane_that_moved_is_published_at_its_new_port() -> None:
    moved = ControlPlane(available=True, host="127.0.0.1", port=7443)
    assert reconciled(installed(), moved, 3)["status"]["controlPlaneEndpoint"]["port"] == 7443


def test_missing_pull_secret_is_the_reason_that_users_see() -> None:
    valid = condition(reconciled(hosted_cluster(), NO_PULL_SECRET), "ValidReleaseImage")
    assert (valid["status"], valid["reason"], valid["message"]) == ("False", "SecretNotFound", "pull secret pull-secret not found")


def test_solved_problem_is_removed_from_the_status() -> None:
    cluster = reconciled(reconciled(hosted_cluster(), NO_PULL_SECRET, 0, EARLY), UP, 0, LATE)
    assert condition(cluster, "ValidReleaseImage")["reason"] == "AsExpected"
    assert "pull secret" not in str(cluster["status"])


def test_version_stays_partial_without_nodes() -> None:
    cluster = hosted_cluster()
    for _reconcile in range(3):
        cluster = reconciled(cluster, UP, 0)
    assert releases(cluster) == [("4.17.0", "Partial")]
    assert cluster["status"]["version"]["history"][0]["completionTime"] is None


def test_version_is_completed_once_there_are_nodes() -> None:
    cluster = reconciled(reconciled(hosted_cluster(), UP, 0, EARLY), UP, 1, LATE)
    assert releases(cluster) == [("4.17.0", "Completed")]
    entry = cluster["status"]["version"]["history"][0]
    assert (entry["startedTime"], entry["completionTime"]) == (EARLY, LATE)


def test_version_is_not_completed_by_nodes_of_a_lost_control_plane() -> None:
    assert releases(reconciled(reconciled(hosted_cluster(), STARTING), STARTING, 3)) == [("", "Partial")]


def test_new_release_is_partial_first_and_then_completed_before_the_old_one() -> None:
    announced = reconciled(changed(installed(), release={"image": NEW}), UP, 3, LATE)
    assert releases(announced) == [("4.18.1", "Partial"), ("4.17.0", "Completed")]
    assert holding(announced)["Progressing"]
    assert not holding(announced)["ClusterVersionSucceeding"]
    assert announced["status"]["version"]["desired"] == {"image": NEW, "version": "4.18.1"}
    done = reconciled(announced, UP, 3, LATER)
    assert releases(done) == [("4.18.1", "Completed"), ("4.17.0", "Completed")]
    assert not holding(done)["Progressing"]
    assert [entry["completionTime"] for entry in done["status"]["version"]["history"]] == [LATER, EARLY]


def test_cluster_stays_available_during_an_update() -> None:
    announced = reconciled(changed(installed(), release={"image": NEW}), UP, 3, LATE)
    assert condition(announced, "Available")["lastTransitionTime"] == EARLY


def test_return_to_an_old_release_is_a_release_of_its_own() -> None:
    cluster = installed()
    for image in (PATCH, OLD):
        cluster = changed(cluster, release={"image": image})
        cluster = reconciled(reconciled(cluster, UP, 3), UP, 3)
    assert releases(cluster) == [("4.17.0", "Completed"), ("4.17.5", "Completed"), ("4.17.0", "Completed")]


def test_refused_release_leaves_the_history_alone() -> None:
    updated = reconciled(reconciled(changed(installed(), release={"image": NEW}), UP, 3), UP, 3)
    cluster = reconciled(changed(updated, release={"image": OLD}), UP, 3)
    assert releases(cluster) == [("4.18.1", "Completed"), ("4.17.0", "Completed")]
    assert cluster["status"]["version"]["desired"]["image"] == NEW
    assert reconciled(cluster, UP, 3, LATE)["status"] == cluster["status"]


@pytest.mark.parametrize(
    ("networking", "words"),
    [
        ({}, ""),
        ({"clusterNetwork": [{"cidr": "10.0.0.0/14"}], "serviceNetwork": [{"cidr": "172.31.0.0/16"}]}, ""),
        ({"clusterNetwork": [{"cidr": "10.0.0.0/14"}], "serviceNetwork": [{"cidr": "fd02::/112"}]}, "different IP versions"),
    ],
)
def test_networks_of_different_ip_versions_are_refused(networking: Object, words: str) -> None:
    assert words in invalid_networks({"spec": {"networking": networking}})
    assert bool(words) == bool(invalid_networks({"spec": {"networking": networking}}))


@pytest.mark.parametrize(
    ("fault", "plane", "nodes"),
    [
        pytest.param("", STARTING, 0, id="not available yet"),
        pytest.param("", NO_PULL_SECRET, 0, id="no pull secret"),
        pytest.param("", UP, 0, id="no nodes"),
        pytest.param("", UP, 3, id="installed"),
        pytest.param("degraded", UP, 3, id="degraded"),
    ],
)
def test_second_reconcile_of_the_same_cluster_changes_nothing(fault: str, plane: ControlPlane, nodes: int) -> None:
    # The first reconcile has a release as Partial, the second as what it is.
    settled = reconciled(reconciled(hosted_cluster(fault), plane, nodes, EARLY), plane, nodes, EARLY)
    assert reconciled(settled, plane, nodes, LATE)["status"] == settled["status"]


def test_reconcile_of_a_cluster_never_changes_its_input() -> None:
    cluster = changed(installed(), release={"image": NEW})
    for _reconcile in range(2):
        before = copy.deepcopy(cluster)
        after = reconciled(cluster, UP, 3, LATE)
        assert cluster == before
        assert after["status"] != before["status"]
        cluster = after


def test_observed_generation_follows_the_cluster() -> None:
    cluster = reconciled(changed(installed(), pausedUntil="true"), UP, 3, LATE)
    assert {entry["observedGeneration"] for entry in cluster["status"]["conditions"]} == {2}
    assert cluster["status"]["version"]["observedGeneration"] == 2


# NodePool


@pytest.mark.parametrize(
    ("pool", "ready", "holds", "message"),
    [
        pytest.param(node_pool(3), 3, True, "3 of 3 nodes are ready", id="all there"),
        pytest.param(node_pool(3), 0, False, "0 of 3 nodes are ready", id="none there yet"),
        pytest.param(node_pool(3), 2, False, "2 of 3 nodes are ready", id="one missing"),
        pytest.param(node_pool(0), 0, True, "0 of 0 nodes are ready", id="none wanted"),
        pytest.param(node_pool(1), 2, True, "2 of 1 nodes are ready", id="more than wanted"),
    ],
)
def test_pool_is_ready_when_it_has_the_nodes_it_asks_for(pool: Object, ready: int, holds: bool, message: str) -> None:
    pool = reconciled_pool(pool, ready)
    assert pool["status"]["replicas"] == ready
    assert {kind: holding(pool)[kind] for kind in ("Ready", "AllNodesHealthy", "AllMachinesReady")} == dict.fromkeys(
        ("Ready", "AllNodesHealthy", "AllMachinesReady"), holds
    )
    assert condition(pool, "Ready")["message"] == message


@pytest.mark.parametrize(("ready", "reached"), [(0, False), (1, True)])
def test_ignition_is_reached_by_the_first_node(ready: int, reached: bool) -> None:
    assert holding(reconciled_pool(node_pool(3), ready))["ReachedIgnitionEndpoint"] is reached


def test_scaled_pool_is_not_ready_until_the_new_nodes_are() -> None:
    pool = changed(reconciled_pool(node_pool(2), 2, now=EARLY), replicas=4)
    pool = reconciled_pool(pool, 2, now=LATE)
    assert (holding(pool)["Ready"], condition(pool, "Ready")["lastTransitionTime"]) == (False, LATE)
    pool = reconciled_pool(pool, 4, now=LATER)
    assert (holding(pool)["Ready"], condition(pool, "Ready")["lastTransitionTime"]) == (True, LATER)
    assert pool["status"]["replicas"] == 4
    assert {entry["observedGeneration"] for entry in pool["status"]["conditions"]} == {2}


@pytest.mark.parametrize(("fault", "replicas", "ready"), [("", 3, 3), ("lose-node", 3, 2), ("lose-node", 1, 0), ("lose-node", 0, 0)])
def test_lost_node_is_missing_from_the_ready_ones(fault: str, replicas: int, ready: int) -> None:
    assert ready_count(node_pool(replicas, fault)) == ready


def test_pool_that_lost_a_node_is_not_healthy_and_recovers() -> None:
    pool = node_pool(3, "lose-node")
    pool = reconciled_pool(pool, ready_count(pool))
    assert condition(pool, "AllNodesHealthy")["reason"] == "NodeConditionsFailed"
    pool["metadata"]["annotations"] = {}
    pool = reconciled_pool(pool, ready_count(pool))
    assert condition(pool, "AllNodesHealthy")["reason"] == "AsExpected"


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"autoScaling": {"min": 2, "max": 5}}, 2),
        ({"replicas": 4}, 4),
        ({}, 0),
    ],
)
def test_pool_wants_its_replicas_or_the_minimum_of_its_autoscaling(spec: Object, count: int) -> None:
    assert wanted_nodes({"spec": spec}) == count


def test_autoscaled_pool_is_ready_with_its_minimum() -> None:
    pool = node_pool(0, autoScaling={"min": 2, "max": 5})
    assert ready_count(pool) == 2
    assert [holding(reconciled_pool(pool, ready))["Ready"] for ready in (1, 2)] == [False, True]
    assert holding(reconciled_pool(pool, 2))["AutoscalingEnabled"]
    assert not holding(reconciled_pool(node_pool(), 3))["AutoscalingEnabled"]


def test_pool_has_no_version_before_the_control_plane_is_available() -> None:
    waiting = reconciled_pool(node_pool(), 0, STARTING)
    assert "version" not in waiting["status"]
    assert holding(waiting)["UpdatingVersion"]
    assert reconciled_pool(waiting, 3)["status"]["version"] == "4.17.0"


def test_update_of_a_pool_is_announced_and_then_done() -> None:
    announced = reconciled_pool(changed(reconciled_pool(node_pool(), 3), release={"image": NEW}), 3, now=LATE)
    assert announced["status"]["version"] == "4.17.0"
    assert holding(announced)["UpdatingVersion"]
    assert "4.18.1" in condition(announced, "UpdatingVersion")["message"]
    done = reconciled_pool(announced, 3, now=LATER)
    assert done["status"]["version"] == "4.18.1"
    assert not holding(done)["UpdatingVersion"]
    assert reconciled_pool(done, 3, now=EARLY)["status"] == done["status"]


def test_update_that_is_taken_back_is_over() -> None:
    announced = reconciled_pool(changed(reconciled_pool(node_pool(), 3), release={"image": NEW}), 3)
    pool = reconciled_pool(changed(announced, release={"image": OLD}), 3)
    assert (pool["status"]["version"], holding(pool)["UpdatingVersion"]) == ("4.17.0", False)


def test_update_stays_announced_while_the_control_plane_is_away() -> None:
    announced = reconciled_pool(changed(reconciled_pool(node_pool(), 3), release={"image": NEW}), 0, STARTING, LATE)
    assert holding(announced)["UpdatingVersion"]
    assert reconciled_pool(announced, 0, STARTING, LATER)["status"] == announced["status"]


@pytest.mark.parametrize(
    ("pool", "ready", "plane"),
    [
        pytest.param(node_pool(), 0, STARTING, id="control plane starting"),
        pytest.param(node_pool(), 3, UP, id="ready"),
        pytest.param(node_pool(), 2, UP, id="node lost"),
        pytest.param(node_pool(0, autoScaling={"min": 2, "max": 5}), 2, UP, id="autoscaled"),
    ],
)
def test_second_reconcile_of_the_same_pool_changes_nothing(pool: Object, ready: int, plane: ControlPlane) -> None:
    first = reconciled_pool(pool, ready, plane, EARLY)
    assert reconciled_pool(first, ready, plane, LATE)["status"] == first["status"]


def test_reconcile_of_a_pool_never_changes_its_input() -> None:
    pool = changed(reconciled_pool(node_pool(), 3), release={"image": NEW})
    before = copy.deepcopy(pool)
    assert reconciled_pool(pool, 1, now=LATE)["status"] != before["status"]
    assert pool == before


# Conditions, faults, releases


def test_time_of_a_transition_moves_only_with_the_status() -> None:
    first = conditions([], [("Available", "False", "Waiting", "not yet"), ("Degraded", "False", "AsExpected", "")], 1, EARLY)
    second = conditions(first, [("Available", "False", "StillWaiting", "soon"), ("Degraded", "False", "AsExpected", "")], 2, LATE)
    third = conditions(second, [("Available", "True", "AsExpected", ""), ("Degraded", "False", "AsExpected", "")], 2, LATER)
    assert [entry["lastTransitionTime"] for entry in second] == [EARLY, EARLY]
    assert (second[0]["reason"], second[0]["message"], second[0]["observedGeneration"]) == ("StillWaiting", "soon", 2)
    assert [entry["lastTransitionTime"] for entry in third] == [LATER, EARLY]


def test_condition_that_is_no_longer_given_is_dropped() -> None:
    known = conditions([], [("Available", "True", "AsExpected", ""), ("Old", "True", "AsExpected", "")], 1, EARLY)
    assert [entry["type"] for entry in conditions(known, [("Available", "True", "AsExpected", "")], 1, LATE)] == ["Available"]


def test_every_condition_has_what_the_api_requires() -> None:
    for item in (
        reconciled(hosted_cluster(), NO_PULL_SECRET),
        installed("degraded"),
        reconciled_pool(node_pool(), 0),
        reconciled_pool(node_pool(), 3),
    ):
        for entry in item["status"]["conditions"]:
            assert entry["reason"], entry
            assert entry["status"] in ("True", "False", "Unknown"), entry
            assert entry["lastTransitionTime"] == EARLY, entry
        assert len(item["status"]["conditions"]) == len(holding(item))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Faults()),
        ("never-available", Faults(never_available=True)),
        ("degraded", Faults(degraded=True)),
        ("lose-node", Faults(lose_node=True)),
        ("slow=5", Faults(slow=5.0)),
        ("slow=0.5", Faults(slow=0.5)),
        (" degraded , slow=2,lose-node,", Faults(degraded=True, lose_node=True, slow=2.0)),
        ("degarded", Faults(unknown=("degarded",))),
        ("degraded,on-fire,flood", Faults(degraded=True, unknown=("on-fire", "flood"))),
        ("slow", Faults(unknown=("slow",))),
        ("slow=", Faults(unknown=("slow=",))),
        ("slow=.", Faults(unknown=("slow=.",))),
        ("slow=soon", Faults(unknown=("slow=soon",))),
        ("slow=-1", Faults(unknown=("slow=-1",))),
        ("slow=1.2.3", Faults(unknown=("slow=1.2.3",))),
        ("degraded=yes", Faults(unknown=("degraded=yes",))),
        pytest.param(
            "slow=²",
            Faults(unknown=("slow=²",)),
        ),
    ],
)
def test_faults_that_an_annotation_asks_for(text: str, expected: Faults) -> None:
    assert Faults.of(hosted_cluster(text)) == expected


def test_object_without_annotations_has_no_faults() -> None:
    assert Faults.of({"metadata": {"name": "blue"}}) == Faults()


@pytest.mark.parametrize(
    ("image", "version"),
    [
        (OLD, "4.17.0"),
        ("quay.io/openshift-release-dev/ocp-release:4.17.0-multi", "4.17.0"),
        ("quay.io/openshift-release-dev/ocp-release:4.17.0-aarch64", "4.17.0"),
        ("quay.io/openshift-release-dev/ocp-release:4.18.0-rc.1-x86_64", "4.18.0-rc.1"),
        ("registry.example.test:5000/ocp-release:4.17.0", "4.17.0"),
        ("registry.example.test:5000/ocp-release", "unknown"),
        ("quay.io/ocp-release:4.17.0-x86_64@sha256:0123abcd", "4.17.0"),
        ("quay.io/ocp-release@sha256:0123abcd", "sha256:0123abcd"),
        ("ocp-release:4.17.0", "4.17.0"),
    ],
)
def test_version_of_a_release_image(image: str, version: str) -> None:
    assert release_version(image) == version
