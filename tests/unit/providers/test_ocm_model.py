"""OpenShift Cluster Manager's clusters and identity providers, to and from ours: tables of cases."""

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
    IdentityProvider,
    NodeRequest,
    NodeSet,
    ObservedCluster,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm import provider as ocm
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.identity import digest, htpasswd_users, identity_body
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.model import (
    GCP_FIELDS,
    NAME_LIMIT,
    POOL_NAME_LIMIT,
    STATES,
    cluster_name,
    is_upgrade,
    listed,
    new_cluster,
    node_sets,
    owner_of,
    pool_name,
    rounded,
    shown,
    spec_of,
    version_id,
    wanted_pools,
)

LABEL = "example.com/class"


def seen(state: str, **status: Any) -> ObservedCluster:
    return spec_of({"id": "1", "state": state, "status": status}, [], LABEL, {})


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
def test_health_is_told(health: str, degraded: str) -> None:
    spec = spec_of({"state": "ready", "health_state": health}, [], LABEL, {})
    assert spec.conditions[DEGRADED].status == degraded


def test_what_is_stored_finds_the_cluster_again() -> None:
    cluster = {"id": "1", "external_id": "e", "name": "n", "region": {"id": "r"}, "cloud_provider": {"id": "aws"}, "multi_az": True}
    spec = spec_of(cluster, [], LABEL, {})
    assert ObservedCluster.from_stored(spec.to_stored()) == ObservedCluster(
        "1", "e", additional_info={"name": "n"}, cloud_provider="aws", region="r", multi_az=True
    )


@pytest.mark.parametrize(("nodes", "in_zones"), [(0, 0), (1, 3), (2, 3), (3, 3), (4, 6), (6, 6), (100, 102)])
def test_nodes_fill_all_zones(nodes: int, in_zones: int) -> None:
    assert rounded(nodes, True) == in_zones
    assert rounded(nodes, False) == nodes


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


@pytest.mark.parametrize(
    ("resource_class", "name"),
    [("m5.xlarge", "m5-xlarge"), ("FC_430", "fc-430"), ("4x-large", "class-4x-large"), ("x" * 99, "x" * POOL_NAME_LIMIT)],
)
def test_pools_are_named_after_their_class(resource_class: str, name: str) -> None:
    assert pool_name(resource_class) == name


def test_pools_of_a_request() -> None:
    scaled = {"autoscaling": [{"resource_class": "b", "min_replicas": 1, "max_replicas": 4}]}
    requests = [NodeRequest("a", 2), NodeRequest("b", 1), NodeRequest("c", 0)]
    pools = wanted_pools(ClusterRequest(node_requests=requests, multi_az=True, settings=scaled))
    assert [pool.size for pool in pools] == [{"replicas": 3}, {"autoscaling": {"min_replicas": 3, "max_replicas": 6}}]


POOL = {"id": "p", "instance_type": "m5", "replicas": 3, "labels": {LABEL: "m5"}}


@pytest.mark.parametrize(
    ("pool", "asked", "multi_az", "wanted"),
    [
        (POOL, {}, False, [NodeSet("p", "m5", 3, 3)]),
        (POOL, {"m5": 3}, False, [NodeSet("p", "m5", 3, 3)]),
        (POOL, {"m5": 2}, False, [NodeSet("p", "m5", 3, 3)]),  # on its way, or changed by hand
        (POOL, {"m5": 2}, True, [NodeSet("p", "m5", 2, 2)]),  # the third fills up the zones
        (POOL, {"m5": 4}, True, [NodeSet("p", "m5", 3, 3)]),
        ({**POOL, "labels": {}}, {}, False, []),  # nobody's order
        ({**POOL, "autoscaling": {"min_replicas": 1, "max_replicas": 9}}, {}, False, [NodeSet("p", "m5", None, 1)]),
    ],
)
def test_node_sets_are_what_was_asked_for(pool: dict[str, Any], asked: dict[str, int], multi_az: bool, wanted: list[NodeSet]) -> None:
    assert list(node_sets([pool], LABEL, asked, multi_az, True)) == wanted
    assert all(node_set.ready == 0 for node_set in node_sets([pool], LABEL, asked, multi_az, False))


def test_pool_that_can_be_made_only_later_is_asked_for_until_then() -> None:
    later = NodeSet("r5", "r5", 2, 0)
    assert later in node_sets([POOL], LABEL, {"m5": 3, "r5": 2}, False, False)
    assert later not in node_sets([POOL], LABEL, {"m5": 3, "r5": 2}, False, True), "now it is missing, and to be made"


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


def test_changes_show_no_secret_at_any_depth() -> None:
    body = {
        "aws": {"account_id": "1", "secret_access_key": "hush"},
        "users": [{"username": "a", "hashed_password": "hush"}],
        "resources": [{"kind": "Secret", "data": {"k": "hush"}, "stringData": {"l": "hush"}}, {"kind": "ConfigMap", "data": {"k": "seen"}}],
    }
    text = json.dumps(shown("Cluster", "n", body))
    assert "hush" not in text
    assert "seen" in text
    assert "hush" not in json.dumps(shown("AddOnInstallation", "n", {"parameters": [{"id": "k", "value": "hush"}]}))


@pytest.mark.parametrize("value", [[{"id": "a"}], {"items": [{"id": "a"}]}])
def test_lists_inside_objects_are_read_in_both_forms(value: Any) -> None:
    assert listed(value) == [{"id": "a"}]
    assert listed(None) == []


@pytest.mark.parametrize(
    ("kind", "settings", "secrets", "wanted"),
    [
        ("GitHub", {"clientID": "c", "organizations": ["o"]}, {"clientSecret": "s"},
         {"github": {"client_id": "c", "organizations": ["o"], "client_secret": "s"}}),
        ("LDAP", {"url": "u", "bindDN": "d", "attributes": {"preferredUsername": ["p"]}}, {"bindPassword": "s"},
         {"ldap": {"url": "u", "bind_dn": "d", "attributes": {"preferred_username": ["p"]}, "bind_password": "s"}}),
        ("OpenID", {"extraAuthorizeParameters": {"myKey": "v"}, "extraScopes": ["s"]}, {},
         {"open_id": {"extra_authorize_parameters": {"myKey": "v"}, "extra_scopes": ["s"]}}),
        ("HTPasswd", {}, {"htpasswd": "a:b"}, {"htpasswd": {}}),
    ],
)  # fmt: skip
def test_identity_provider_in_the_words_of_the_service(
    kind: str, settings: dict[str, Any], secrets: dict[str, str], wanted: dict[str, Any]
) -> None:
    body = identity_body(IdentityProvider("i", kind, settings, secrets))
    assert {key: body[key] for key in body if key not in ("name", "type", "mapping_method")} == wanted
    assert (body["name"], body["mapping_method"]) == ("i", "claim")


def test_mapping_method_is_beside_the_settings() -> None:
    body = identity_body(IdentityProvider("i", "Google", {"clientID": "c", "mappingMethod": "lookup"}))
    assert (body["mapping_method"], body["google"]) == ("lookup", {"client_id": "c"})


def test_digest_changes_with_a_secret_and_only_then() -> None:
    one = IdentityProvider("i", "Google", {"a": 1, "b": 2}, {"clientSecret": "s"})
    assert digest(one) == digest(IdentityProvider("i", "Google", {"b": 2, "a": 1}, {"clientSecret": "s"}))
    assert digest(one) != digest(IdentityProvider("i", "Google", {"a": 1, "b": 2}, {"clientSecret": "t"}))


def test_password_with_colons_is_whole() -> None:
    assert htpasswd_users(IdentityProvider("i", "HTPasswd", {}, {"htpasswd": "\nann:$6$a:b\n"})) == {"ann": "$6$a:b"}


def test_page_has_every_setting_secret_and_state() -> None:
    page = (Path(ocm.__file__).parents[4] / "docs" / "provider_ocm.md").read_text()
    cells = re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert {*ocm.ClusterProvider.SETTINGS, *ocm.ClusterProvider.SECRETS, *STATES} - named == set()
