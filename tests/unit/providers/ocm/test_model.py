"""Clusters of OpenShift Cluster Manager: the body for a request, and what is observed of one. Tables of cases, without the service."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import (
    AVAILABLE,
    DEGRADED,
    FALSE,
    TRUE,
    ClusterRequest,
    ObservedCluster,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm import provider as ocm
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.model import (
    GCP_FIELDS,
    NAME_LIMIT,
    STATES,
    cluster_name,
    is_upgrade,
    new_cluster,
    observed_cluster,
    owner_of,
    version_id,
)

LABEL = "example.com/class"


def seen(state: str, **status: Any) -> ObservedCluster:
    return observed_cluster({"id": "1", "state": state, "status": status}, [], LABEL, {})


@pytest.mark.parametrize(
    ("state", "status", "installed", "updating"),
    [
        ("waiting", "cluster_accepted", False, False),
        ("pending", "cluster_accepted", False, False),
        ("validating", "cluster_accepted", False, False),
        ("installing", "cluster_provisioning", False, False),
        ("ready", "ready", True, False),
        ("updating", "ready", True, True),
        ("powering_down", "cluster_provisioned", True, False),
        ("hibernating", "cluster_provisioned", True, False),
        ("resuming", "cluster_provisioned", True, False),
        ("error", "failed", False, False),
        ("uninstalling", "deprovisioning", False, False),
        ("unknown", "cluster_provisioning", False, False),
        ("a state of next year", "cluster_provisioning", False, False),
    ],
)
def test_state_of_the_service_is_one_of_ours(state: str, status: str, installed: bool, updating: bool) -> None:
    spec = seen(state)
    assert (spec.status, spec.installed, spec.updating) == (status, installed, updating)
    assert spec.is_true(AVAILABLE) == (status == "ready")
    assert spec.status_details or status == "ready", "what is not ready says in which state it is"


@pytest.mark.parametrize(
    ("code", "message", "details", "retryable"),
    [
        ("OCM3999", "unknown", "OCM3999: unknown", True),
        ("OCM5001", "", "OCM5001", True),
        ("OCM5011", "no capacity", "OCM5011: no capacity", True),
        ("OCM5003", "wrong keys", "OCM5003: wrong keys", False),
        ("", "", "OpenShift Cluster Manager gives no reason; its log of the installation may", True),
        ("", "it broke", "it broke", True),
    ],
)
def test_failure_has_the_reason_of_the_service(code: str, message: str, details: str, retryable: bool) -> None:
    spec = seen("error", provision_error_code=code, provision_error_message=message)
    assert (spec.status, spec.status_details, spec.retryable) == ("failed", details, retryable)


def test_notice_of_an_installation_that_takes_long_is_no_failure() -> None:
    spec = seen("installing", provision_error_message="taking longer than expected")
    assert (spec.status, spec.status_details, spec.retryable) == ("cluster_provisioning", "taking longer than expected", True)


@pytest.mark.parametrize(("health", "degraded"), [("healthy", FALSE), ("unhealthy", TRUE), ("unknown", FALSE)])
def test_health_is_reported(health: str, degraded: str) -> None:
    spec = observed_cluster({"state": "ready", "health_state": health}, [], LABEL, {})
    assert spec.conditions[DEGRADED].status == degraded


def test_what_is_stored_finds_the_cluster_again() -> None:
    cluster = {"id": "1", "external_id": "e", "name": "n", "region": {"id": "r"}, "cloud_provider": {"id": "aws"}, "multi_az": True}
    spec = observed_cluster(cluster, [], LABEL, {})
    assert ObservedCluster.from_stored(spec.to_stored()) == ObservedCluster(
        "1", "e", additional_info={"name": "n"}, cloud_provider="aws", region="r", multi_az=True
    )


def test_names_are_those_that_the_service_takes_and_differ_by_place() -> None:
    def named(name: str, namespace: str = "orders-demo", hub: str = "one") -> str:
        return cluster_name(owner_of(hub, namespace, name))

    assert named("demo") == named("demo")
    assert len({named("demo"), named("demo", namespace="others-demo"), named("demo", hub="another")}) == 3
    assert named("demo").startswith("demo-")
    long = named(f"{'x' * 46}.{'y' * 100}")
    assert len(long) <= NAME_LIMIT
    assert "--" not in long
    assert "." not in long


@pytest.mark.parametrize(("group", "wanted"), [("stable", "openshift-v4.18.1"), ("candidate", "openshift-v4.18.1-candidate")])
def test_version_has_its_channel_unless_it_is_stable(group: str, wanted: str) -> None:
    assert version_id("4.18.1", group) == wanted


@pytest.mark.parametrize(
    ("present", "wanted", "upgrade"),
    [
        ("4.18.1", "4.18.1", False),
        ("4.18.1", "4.18.2", True),
        ("4.9.9", "4.10.0", True),
        ("4.18.3", "4.18.1", False),
        ("4.18.1", "", False),
        ("", "4.18.1", True),
    ],
)
def test_only_a_later_version_is_an_upgrade(present: str, wanted: str, upgrade: bool) -> None:
    assert is_upgrade({"openshift_version": present}, wanted) is upgrade


def test_google_account_is_taken_from_its_key_file() -> None:
    key_file = {field: f"the {field}" for field in GCP_FIELDS} | {"universe_domain": "x"}
    secrets = {"gcp_service_account": json.dumps(key_file)}
    request = ClusterRequest(cloud_provider="gcp", region="us-east1", settings={"ccs": True}, secrets=secrets)
    assert new_cluster("n", "o", request, LABEL)["gcp"] == {field: f"the {field}" for field in GCP_FIELDS}


def test_page_has_every_setting_secret_and_state() -> None:
    page = (Path(ocm.__file__).parents[4] / "docs" / "provider_ocm.md").read_text()
    cells = re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert {*ocm.ClusterProvider.SETTINGS, *ocm.ClusterProvider.SECRETS, *STATES} - named == set()
