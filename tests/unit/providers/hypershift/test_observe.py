"""HyperShift as it behaves: the stand-in reports each situation as the operator does, and the provider makes of that what it means.

Each row is one observation of the operator. The status comes from the stand-in, so that neither drifts from the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.pools import node_pool_status
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.status import (
    FALSE,
    RECONCILED,
    TRUE,
    UNKNOWN,
    VALID_CONFIGURATION,
    VALID_RELEASE_IMAGE,
    ControlPlane,
    Problem,
    hosted_cluster_status,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeSet, ObservedCluster

IMAGE = "quay.io/openshift-release-dev/ocp-release:4.{}-multi"
NOW = "2026-01-01T00:00:00Z"
CLASS = "example.com/class"
STARTING, UP = ControlPlane(), ControlPlane(available=True, host="192.0.2.1", port=6443)
NO_PULL_SECRET = Problem(VALID_RELEASE_IMAGE, "SecretNotFound", "pull secret x not found")
NO_AGENTS = Problem(VALID_CONFIGURATION, "InvalidConfiguration", 'agent namespace "hosts" not found')
BAD_NAME = Problem(RECONCILED, "ReconciliationError", 'Namespace "x" is invalid')


def new_cluster(release: str = "17.0") -> Object:
    return {
        "kind": "HostedCluster",
        "metadata": {"name": "demo", "namespace": "clusters", "generation": 1, "creationTimestamp": NOW},
        "spec": {"release": {"image": IMAGE.format(release)}, "clusterID": "the-id", "dns": {"baseDomain": "example.com"}},
    }


def new_pool(release: str = "17.0", platform: str = "KubeVirt", upgrade: str = "Replace", replicas: int = 2) -> Object:
    return {
        "kind": "NodePool",
        "metadata": {"name": "demo-small", "namespace": "clusters", "generation": 1, "labels": {CLASS: "small"}},
        "spec": {
            "replicas": replicas,
            "release": {"image": IMAGE.format(release)},
            "platform": {"type": platform},
            "management": {"upgradeType": upgrade},
        },
    }


def reconciled(cluster: Object, plane: ControlPlane = UP, nodes: int = 2) -> Object:
    return cluster | {"status": hosted_cluster_status(cluster, plane, nodes, NOW)}


def reconciled_pool(pool: Object, ready: int = 2, plane: ControlPlane = UP, running: str = "", machines: int | None = None) -> Object:
    return pool | {"status": node_pool_status(pool, ready, plane, NOW, running, machines)}


def changed(item: Object, **spec: Any) -> Object:
    metadata = item["metadata"] | {"generation": item["metadata"]["generation"] + 1}
    return item | {"metadata": metadata, "spec": item["spec"] | spec}


def to_release(item: Object, release: str) -> Object:
    return changed(item, release={"image": IMAGE.format(release)})


def installed() -> Object:
    return reconciled(reconciled(new_cluster()))


def with_condition(item: Object, kind: str, status: str, reason: str, message: str = "") -> Object:
    changed_one = {"status": status, "reason": reason, "message": message, "observedGeneration": item["metadata"]["generation"]}
    conditions = [entry | changed_one if entry["type"] == kind else entry for entry in item["status"]["conditions"]]
    return item | {"status": item["status"] | {"conditions": conditions}}


def observed(cluster: Object | None, *pools: Object, recorded: ObservedCluster | None = None) -> ObservedCluster:
    provider = ProviderFactory.for_cluster("hypershift", ClusterRef(Mock(), "demo", "clusters", class_label=CLASS))
    return provider.observe_objects(recorded or ObservedCluster(), [*([cluster] if cluster else []), *pools])


def states(item: Object) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in item["status"]["conditions"]}


def reasons(item: Object) -> dict[str, str]:
    return {entry["type"]: entry["reason"] for entry in item["status"]["conditions"]}


@dataclass(frozen=True)
class Situation:
    """A HostedCluster, the conditions that the operator reports for it, and the fields of what the provider makes of it."""

    cluster: Callable[[], Object]
    conditions: dict[str, str]
    expected: dict[str, Any]
    details: str = ""
    reasons: dict[str, str] = field(default_factory=dict)


RUNS_ON = {"installed": True, "api_url": "https://192.0.2.1:6443", "running_version": "4.17.0"}
SITUATIONS = {
    "nothing is known of a new control plane": Situation(
        lambda: reconciled(new_cluster(), STARTING, 0),
        dict.fromkeys(("Degraded", "InfrastructureReady", "EtcdAvailable", "ClusterVersionAvailable", "ClusterVersionSucceeding"), UNKNOWN)
        | dict.fromkeys((VALID_CONFIGURATION, "SupportedHostedCluster", RECONCILED), TRUE)
        | {"Available": FALSE},
        {"status": "cluster_provisioning", "installed": False, "running_version": "", "desired_version": IMAGE.format("17.0")},
        "Available is False (WaitingForAvailable)",
        {RECONCILED: "ReconciliatonSucceeded"},
    ),
    "the pull secret is missing": Situation(
        lambda: reconciled(new_cluster(), ControlPlane(problem=NO_PULL_SECRET), 0),
        {VALID_RELEASE_IMAGE: FALSE, VALID_CONFIGURATION: TRUE, "Progressing": FALSE, "Available": FALSE},
        {"status": "failed", "retryable": True, "change_refused": False},
        "ValidReleaseImage is False (SecretNotFound): pull secret x not found",
        {"Progressing": "Blocked"},
    ),
    "the namespace of the agents is missing": Situation(
        lambda: reconciled(new_cluster(), ControlPlane(problem=NO_AGENTS), 0),
        {VALID_CONFIGURATION: FALSE, VALID_RELEASE_IMAGE: TRUE, "Progressing": FALSE},
        {"status": "failed", "retryable": True},
        "ValidConfiguration is False",
    ),
    "the namespace of the agents is back": Situation(
        lambda: reconciled(reconciled(new_cluster(), ControlPlane(problem=NO_AGENTS), 0), UP, 0),
        {VALID_CONFIGURATION: TRUE, "Available": TRUE, "Progressing": TRUE},
        {"status": "cluster_provisioned", "updating": True},
    ),
    "the name cannot be that of a namespace": Situation(
        lambda: reconciled(new_cluster(), ControlPlane(problem=BAD_NAME), 0),
        {RECONCILED: FALSE, VALID_CONFIGURATION: TRUE, VALID_RELEASE_IMAGE: TRUE, "Available": FALSE, "Progressing": TRUE},
        {"status": "cluster_provisioning"},
        'ReconciliationSucceeded is False (ReconciliationError): Namespace "x" is invalid',
    ),
    "the control plane runs without nodes": Situation(
        lambda: reconciled(reconciled(new_cluster(), UP, 0), UP, 0),
        {"Available": TRUE, "Degraded": FALSE, "ClusterVersionAvailable": FALSE, "Progressing": TRUE},
        {"status": "cluster_provisioned", "installed": False, "desired_version": "4.17.0", "running_version": "", "updating": True},
        "The release is not installed completely yet",
    ),
    "the release is installed": Situation(
        installed,
        {"Available": TRUE, "ClusterVersionSucceeding": TRUE, "Progressing": FALSE},
        {**RUNS_ON, "status": "ready", "updating": False, "desired_version": "4.17.0", "external_id": "the-id"},
    ),
    "an update is not observed yet": Situation(
        lambda: to_release(installed(), "18.1"),
        {"Progressing": FALSE, "Available": TRUE},
        {**RUNS_ON, "updating": True, "change_refused": False, "desired_version": IMAGE.format("18.1")},
    ),
    "an update is rolled out": Situation(
        lambda: reconciled(to_release(installed(), "18.1")),
        {"Progressing": TRUE, "Available": TRUE},
        {**RUNS_ON, "status": "ready", "updating": True, "desired_version": "4.18.1"},
    ),
    "an update is rolled out, which Progressing denies": Situation(
        lambda: with_condition(reconciled(to_release(installed(), "18.1")), "Progressing", FALSE, "AsExpected"),
        {"Progressing": FALSE},
        {**RUNS_ON, "updating": True},
    ),
    "an update is done": Situation(
        lambda: reconciled(reconciled(to_release(installed(), "18.1"))),
        {"Progressing": FALSE},
        {**RUNS_ON, "running_version": "4.18.1", "desired_version": "4.18.1", "updating": False, "status": "ready"},
    ),
    "a downgrade is refused": Situation(
        lambda: reconciled(to_release(installed(), "16.9")),
        {VALID_RELEASE_IMAGE: FALSE, "Progressing": FALSE, "Available": TRUE, VALID_CONFIGURATION: TRUE},
        {**RUNS_ON, "status": "failed", "retryable": False, "change_refused": True, "updating": True},
        f"HyperShift refuses the release {IMAGE.format('16.9')}: ValidReleaseImage is False (InvalidImage)",
        {"Progressing": "Blocked"},
    ),
    "a downgrade is taken back": Situation(
        lambda: reconciled(to_release(reconciled(to_release(installed(), "16.9")), "17.0")),
        {VALID_RELEASE_IMAGE: TRUE, "Progressing": FALSE},
        {**RUNS_ON, "status": "ready", "updating": False, "change_refused": False},
    ),
    "an update is blocked by the cluster itself": Situation(
        lambda: with_condition(to_release(installed(), "18.1"), "Progressing", FALSE, "Blocked", "not upgradeable"),
        {VALID_RELEASE_IMAGE: TRUE},
        {**RUNS_ON, "status": "failed", "change_refused": True, "updating": True},
        "Progressing is False (Blocked): not upgradeable",
    ),
    "the running image cannot be looked up for a while": Situation(
        lambda: with_condition(installed(), VALID_RELEASE_IMAGE, FALSE, "InvalidImage", "no answer of the registry"),
        {VALID_RELEASE_IMAGE: FALSE},
        {**RUNS_ON, "status": "ready", "change_refused": False},
    ),
    "the control plane is lost": Situation(
        lambda: reconciled(installed(), STARTING),
        {"Available": FALSE, "EtcdAvailable": FALSE, "Degraded": FALSE},
        {**RUNS_ON, "status": "cluster_provisioning"},
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_hosted_cluster_is_reported_and_read_as_the_operator_means_it(name: str) -> None:
    situation = SITUATIONS[name]
    cluster = situation.cluster()
    assert {kind: states(cluster)[kind] for kind in situation.conditions} == situation.conditions
    assert {kind: reasons(cluster)[kind] for kind in situation.reasons} == situation.reasons
    found = observed(cluster)
    assert {name: getattr(found, name) for name in situation.expected} == situation.expected
    assert situation.details in found.status_details


def test_error_of_the_reconciler_is_in_the_condition_that_an_order_shows() -> None:
    available = observed(reconciled(new_cluster(), ControlPlane(problem=BAD_NAME), 0)).conditions["Available"]
    assert available.status == FALSE
    assert "WaitingForAvailable" in available.message and 'Namespace "x" is invalid' in available.message


def test_error_of_the_reconciler_is_none_of_an_available_cluster() -> None:
    available = observed(with_condition(installed(), RECONCILED, FALSE, "ReconciliationError", "a conflict")).conditions["Available"]
    assert available.status == TRUE and "conflict" not in available.message


def test_history_has_no_version_before_the_control_plane_reports_one() -> None:
    cluster = reconciled(new_cluster(), STARTING, 0)
    assert cluster["status"]["version"]["history"][0]["version"] == ""
    assert reconciled(cluster, UP, 0)["status"]["version"]["history"][0]["version"] == "4.17.0"


def test_status_says_how_to_reach_the_control_plane() -> None:
    status = installed()["status"]
    assert {"ignitionEndpoint", "controlPlaneEndpoint", "kubeconfig", "kubeadminPassword"} <= status.keys()
    assert status["payloadArch"] == "Multi"


def test_administrator_is_not_named_once_oauth_is_configured() -> None:
    with_oauth = changed(installed(), configuration={"oauth": {"identityProviders": [{"name": "sso"}]}})
    assert "kubeadminPassword" not in reconciled(with_oauth)["status"]


def test_recommended_updates_are_read() -> None:
    cluster = installed()
    cluster["status"]["version"]["availableUpdates"] = [{"version": "4.17.1", "image": "x"}, {"version": "4.17.2", "image": "y"}]
    assert observed(cluster).available_updates == ("4.17.1", "4.17.2")


def test_console_is_the_recorded_one_of_this_very_cluster() -> None:
    url = "https://console.example.com"
    assert observed(installed()).console_url == ""
    recorded = ObservedCluster(external_id="the-id", additional_info={"consoleURL": url})
    found = observed(installed(), recorded=recorded)
    assert (found.console_url, found.to_stored()["additionalInfo"]) == (url, {"consoleURL": url})
    earlier = ObservedCluster(external_id="an-earlier-one", additional_info={"consoleURL": url})
    assert observed(installed(), recorded=earlier).console_url == ""


# NodePools


def set_of(pool: Object) -> NodeSet:
    (found,) = observed(installed(), pool).node_sets
    return found


def test_pool_has_neither_replicas_nor_ready_before_its_machines_exist() -> None:
    pool = reconciled_pool(new_pool(), 0, STARTING)
    assert "replicas" not in pool["status"] and "Ready" not in states(pool)
    assert {kind: states(pool)[kind] for kind in ("UpdatingVersion", "UpdatingConfig")} == {"UpdatingVersion": TRUE, "UpdatingConfig": TRUE}
    assert {"ValidArchPlatform", "SupportedVersionSkew", "AutorepairEnabled"} <= states(pool).keys()
    found = set_of(pool)
    assert (found.ready, found.requested, found.updating, found.outdated, found.counted) == (0, 2, True, False, True)


def test_pool_is_installed_when_all_its_nodes_are_ready() -> None:
    assert set_of(reconciled_pool(new_pool(), 1)).updating
    done = reconciled_pool(reconciled_pool(new_pool(), 1), 2)
    assert done["status"]["version"] == "4.17.0"
    found = set_of(done)
    assert (found.ready, found.updating) == (2, False)


def test_pool_waits_for_the_control_plane_with_a_stale_generation() -> None:
    pool = to_release(reconciled_pool(new_pool()), "18.1")
    blocked = reconciled_pool(pool, running="4.17.0")
    assert states(blocked)[VALID_RELEASE_IMAGE] == FALSE
    assert {entry["observedGeneration"] for entry in blocked["status"]["conditions"] if entry["type"] != VALID_RELEASE_IMAGE} == {1}
    assert set_of(blocked).outdated
    freed = reconciled_pool(blocked, running="4.18.1")
    assert states(freed)[VALID_RELEASE_IMAGE] == TRUE
    assert states(freed)["UpdatingVersion"] == TRUE


@pytest.mark.parametrize(
    ("upgrade", "platform", "machines", "version"),
    [
        ("Replace", "Agent", 2, "4.17.0"),
        ("Replace", "Agent", 3, "4.17.1"),
        ("Replace", "KubeVirt", None, "4.17.1"),
        ("InPlace", "Agent", 2, "4.17.1"),
    ],
)
def test_update_by_replacement_needs_a_spare_machine(upgrade: str, platform: str, machines: int | None, version: str) -> None:
    pool = to_release(reconciled_pool(new_pool(platform=platform, upgrade=upgrade)), "17.1")
    for _reconcile in range(3):
        pool = reconciled_pool(pool, running="4.17.1", machines=machines)
    assert pool["status"]["version"] == version
    assert set_of(pool).updating is (version == "4.17.0")


def test_nodes_of_platform_none_are_never_counted() -> None:
    pool = reconciled_pool(reconciled_pool(new_pool(platform="None", upgrade="InPlace")))
    assert "replicas" not in pool["status"] and "Ready" not in states(pool)
    assert not set_of(pool).counted
    assert observed(installed(), pool).status == "ready"
