"""The collection's CRDs, ClusterOrder, ClusterRegistry and AddressPool, on a real API server: what they accept, refuse, fill in, show."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access as Hub
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, crds_in, load_crd
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ..support.verdicts import REMOVED, Verdict, edited, judge, judge_all

ORDERS = COLLECTION_CRDS / "clusterorders.yaml"
GROUPS = ("cloudkit.openshift.io", "osac.openshift.io")

NOW = "2026-01-02T03:04:05Z"


# -----------------------------------------------------------------------------------------------------------------
# ClusterOrder


@pytest.fixture(scope="module", params=GROUPS)
def group(request: pytest.FixtureRequest, hub: Hub) -> Iterator[str]:
    """An API group in which the hub knows ClusterOrders."""
    name: str = request.param
    crd = load_crd(ORDERS, name)
    present = hub.kubectl("get", "crd", crd["metadata"]["name"], check=False).returncode == 0
    if not present:
        hub.install_crds(crd)
    yield name
    if not present:
        hub.kubectl("delete", "crd", crd["metadata"]["name"])


def order(group: str, name: str, namespace: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{group}/v1alpha1", "kind": "ClusterOrder", "metadata": metadata, "spec": spec}


TEMPLATE = "openfleet.clusters.ocp_4_17_small"
NODES = [{"resourceClass": "fc430", "numberOfNodes": 3}, {"resourceClass": "h100.large", "numberOfNodes": 1}]

GOOD_ORDERS: dict[str, Object] = {
    "template-only": {"templateID": TEMPLATE},
    "complete": {"templateID": TEMPLATE, "templateParameters": '{"pull_secret": "{}", "zones": [1, 2]}', "nodeRequests": NODES},
    "no-parameters": {"templateID": "_local", "templateParameters": "{}"},
    "parameters-on-several-lines": {"templateID": TEMPLATE, "templateParameters": '\n {\n  "a": {"b": null}\n }\n'},
    "no-nodes": {"templateID": TEMPLATE, "nodeRequests": []},
}

# The spec, and what the message must name.
BAD_ORDERS: dict[str, tuple[Object, str]] = {
    "no-template": ({}, "spec.templateID: Required"),
    "template-empty": ({"templateID": ""}, "spec.templateID"),
    "template-starts-with-digit": ({"templateID": "4.20"}, "spec.templateID"),
    "template-with-slash": ({"templateID": "roles/hosted"}, "spec.templateID"),
    "template-too-long": ({"templateID": "a" * 256}, "spec.templateID: Too long"),
    "parameters-empty": ({"templateID": "a", "templateParameters": ""}, "templateParameters must be a JSON object"),
    "parameters-a-list": ({"templateID": "a", "templateParameters": "[1]"}, 'must start with "{" and end with "}"'),
    "parameters-cut-off": ({"templateID": "a", "templateParameters": '{"a": 1'}, 'must start with "{" and end with "}"'),
    "parameters-in-yaml": ({"templateID": "a", "templateParameters": "{a: 1}"}, "a key in double quotes"),
    "parameters-in-python": ({"templateID": "a", "templateParameters": "{'a': 1}"}, "a key in double quotes"),
    "parameters-a-jinja-expression": ({"templateID": "a", "templateParameters": "{{ a }}"}, "a key in double quotes"),
    "parameters-not-a-string": ({"templateID": "a", "templateParameters": {"a": 1}}, "spec.templateParameters"),
    "zero-nodes": ({"templateID": "a", "nodeRequests": [{"resourceClass": "x", "numberOfNodes": 0}]}, "[0].numberOfNodes"),
    "negative-nodes": ({"templateID": "a", "nodeRequests": [*NODES, {"resourceClass": "x", "numberOfNodes": -1}]}, "[2].numberOfNodes"),
    "nodes-not-a-number": ({"templateID": "a", "nodeRequests": [{"resourceClass": "x", "numberOfNodes": "3"}]}, "[0].numberOfNodes"),
    "no-number": ({"templateID": "a", "nodeRequests": [{"resourceClass": "x"}]}, "[0].numberOfNodes: Required"),
    "no-class": ({"templateID": "a", "nodeRequests": [{"numberOfNodes": 1}]}, "[0].resourceClass: Required"),
    "class-empty": ({"templateID": "a", "nodeRequests": [{"resourceClass": "", "numberOfNodes": 1}]}, "[0].resourceClass"),
    "class-no-label-value": ({"templateID": "a", "nodeRequests": [{"resourceClass": "a/b", "numberOfNodes": 1}]}, "[0].resourceClass"),
    "duplicate-class": ({"templateID": "a", "nodeRequests": [*NODES, NODES[0]]}, "spec.nodeRequests[2]: Duplicate value"),
    "unknown-field": ({"templateID": "a", "templateParameter": "{}"}, 'unknown field "spec.templateParameter"'),
}


@pytest.fixture(scope="module")
def order_verdicts(hub: Hub, group: str) -> dict[str, Verdict]:
    specs = GOOD_ORDERS | {case: spec for case, (spec, _problem) in BAD_ORDERS.items()}
    return judge_all(hub, {case: order(group, case, "default", spec) for case, spec in specs.items()}, "create")


@pytest.mark.parametrize("case", GOOD_ORDERS)
def test_good_order_is_accepted_as_it_is(order_verdicts: dict[str, Verdict], case: str) -> None:
    verdict = order_verdicts[case]
    assert verdict.stored and verdict.stored["spec"] == GOOD_ORDERS[case], verdict.error


@pytest.mark.parametrize("case", BAD_ORDERS)
def test_bad_order_is_refused_and_the_field_named(order_verdicts: dict[str, Verdict], case: str) -> None:
    verdict = order_verdicts[case]
    assert not verdict.accepted
    assert BAD_ORDERS[case][1] in verdict.error


@pytest.mark.parametrize("name", ["a.b", "a" * 64])
def test_order_with_a_name_that_fits_no_label_or_namespace_is_refused(hub: Hub, group: str, name: str) -> None:
    verdict = judge(hub, order(group, name, "default", GOOD_ORDERS["template-only"]), "create")
    assert "metadata.name" in verdict.error


FULL_STATUS: Object = {
    "phase": "Degraded",
    "observedGeneration": 1,
    "configVersion": "c0ffee",
    "conditions": [
        {
            "type": "NodesReady",
            "status": "False",
            "reason": "NodesMissing",
            "message": "3 of 4 nodes ready",
            "lastTransitionTime": NOW,
            "observedGeneration": 1,
        },
        {"type": "Accepted", "status": "True", "reason": "ParametersValid", "message": "", "lastTransitionTime": NOW},
    ],
    "clusterReference": {
        "namespace": "tenant-one",
        "hostedClusterName": "one",
        "serviceAccountName": "cloudkit",
        "roleBindingName": "cloudkit",
    },
    "nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 3}, {"resourceClass": "h100", "numberOfNodes": 0}],
    "nodeSets": [{"resourceClass": "fc430", "requested": 3, "ready": 3}, {"resourceClass": "h100", "requested": 1, "ready": 0}],
    "readyNodes": "3/4",
    "version": {"running": "4.17.0", "desired": "4.17.1", "availableUpdates": ["4.17.1", "4.17.2"]},
    "apiURL": "https://api.one.example.com:6443",
    "consoleURL": "https://console.one.example.com",
    "failure": {
        "reason": "TaskFailed",
        "message": "No free host of class h100.",
        "task": "Claim hosts",
        "retryable": True,
        "attempts": 2,
        "nextAttempt": NOW,
    },
    "job": {"id": "42", "url": "https://aap.example.com/jobs/42", "startedAt": NOW},
}


@pytest.fixture
def applied(hub: Hub, group: str, namespace: str) -> Object:
    """An order that is on the hub."""
    item = order(group, "one", namespace, GOOD_ORDERS["complete"])
    hub.kubectl("create", "--filename=-", stdin=json.dumps(item))
    return item


def patch_status(hub: Hub, applied: Object, status: Object, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return hub.kubectl(*_patch(applied), "--patch", json.dumps({"status": status}), *options, check=check)


def read(hub: Hub, applied: Object) -> Object:
    answer: Object = hub.get(*_address(applied))
    return answer


def _patch(applied: Object) -> tuple[str, ...]:
    return ("patch", *_address(applied), "--type=merge")


def _address(applied: Object) -> tuple[str, ...]:
    metadata, group = applied["metadata"], applied["apiVersion"].partition("/")[0]
    return (f"clusterorders.{group}", metadata["name"], f"--namespace={metadata['namespace']}")


def test_get_shows_template_phase_ready_nodes_version_api_url_and_age(hub: Hub, group: str, applied: Object) -> None:
    patch_status(hub, applied, FULL_STATUS, "--subresource=status")
    shown = hub.kubectl("get", f"cord.{group}", f"--namespace={applied['metadata']['namespace']}").stdout
    header, row = (re.split(r" {2,}", line.strip()) for line in shown.splitlines())
    assert header == ["NAME", "TEMPLATE", "PHASE", "READY NODES", "VERSION", "API URL", "AGE"]
    assert row[:-1] == ["one", TEMPLATE, "Degraded", "3/4", "4.17.0", "https://api.one.example.com:6443"]
    assert re.fullmatch(r"\d+[sm]\S*", row[-1])


def test_every_field_of_the_status_is_kept(hub: Hub, applied: Object) -> None:
    patch_status(hub, applied, FULL_STATUS, "--subresource=status")
    assert read(hub, applied)["status"] == FULL_STATUS


def test_status_is_written_through_its_subresource_only(hub: Hub, applied: Object) -> None:
    patch_status(hub, applied, {"phase": "Ready"})
    assert "status" not in read(hub, applied)

    change = json.dumps({"spec": {"nodeRequests": []}, "status": {"phase": "Ready"}})
    hub.kubectl(*_patch(applied), "--subresource=status", "--patch", change)
    after = read(hub, applied)
    assert after["status"] == {"phase": "Ready"}
    assert after["spec"] == applied["spec"]
    assert after["metadata"]["generation"] == 1


CONDITION = FULL_STATUS["conditions"][0]


@pytest.mark.parametrize(
    ("status", "named"),
    [
        ({"phase": "Pending"}, 'status.phase: Unsupported value: "Pending"'),
        ({"conditions": [CONDITION, CONDITION]}, "status.conditions[1]: Duplicate value"),
        ({"conditions": [edited(CONDITION, {"reason": ""})]}, "status.conditions[0].reason"),
        ({"nodeSets": [{"resourceClass": "x", "requested": 1, "ready": -1}]}, "status.nodeSets[0].ready"),
        ({"clusterReference": {"namespace": "x"}}, "status.clusterReference.hostedClusterName: Required"),
        ({"failure": {"reason": "TaskFailed", "message": "", "nextAttempt": "soon"}}, "status.failure.nextAttempt"),
        ({"job": {"id": 42}}, "status.job.id"),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
def test_bad_status_is_refused_and_the_field_named(hub: Hub, applied: Object, status: Object, named: str) -> None:
    done = patch_status(hub, applied, status, "--subresource=status", "--dry-run=server", check=False)
    assert done.returncode != 0
    assert named in done.stderr


def test_template_of_an_order_cannot_be_changed_but_all_else_can(hub: Hub, applied: Object) -> None:
    verdicts = judge_all(
        hub,
        {
            "template": edited(applied, {"spec.templateID": "another.template"}),
            "no-template": edited(applied, {"spec.templateID": REMOVED}),
            "all-else": edited(applied, {"spec.templateParameters": '{"a": 1}', "spec.nodeRequests": NODES[:1]}),
            "nothing-else": edited(applied, {"spec.templateParameters": REMOVED, "spec.nodeRequests": REMOVED}),
        },
        "replace",
    )
    assert "spec.templateID" in verdicts["template"].error
    assert "templateID is immutable" in verdicts["template"].error
    assert "spec.templateID: Required" in verdicts["no-template"].error
    assert verdicts["all-else"].accepted
    assert verdicts["nothing-else"].accepted


def test_another_group_leaves_no_trace_of_the_first() -> None:
    ours, other = load_crd(ORDERS), load_crd(ORDERS, GROUPS[1])
    assert ours["spec"]["group"] == GROUPS[0]
    assert other["metadata"]["name"] == f"clusterorders.{GROUPS[1]}"
    assert GROUPS[0] not in json.dumps(other)


def test_folder_or_file_without_a_crd_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        crds_in(tmp_path)
    (tmp_path / "values.yaml").write_text("a: 1\n")
    with pytest.raises(ValueError, match=r"values\.yaml"):
        load_crd(tmp_path / "values.yaml")


# --------------------------------------------------------------------------------------------------------------
# ClusterRegistry


def registry(name: str, namespace: str, clusters: Any) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "ClusterRegistry", "metadata": metadata, "spec": {"clusters": clusters}}


EAST: Object = {"name": "east", "kubeconfigSecret": {"name": "east-kubeconfig"}}

GOOD_REGISTRIES: dict[str, Any] = {
    "empty": [],
    "shortest": [EAST],
    "complete": [EAST | {"region": "eu-east.1", "endpoint": "https://api.east.example.com:6443/clusters/1"}],
    "address-of-six": [EAST | {"endpoint": "https://[fd00::1]:6443"}],
    "short-form": [{"name": "east", "endpoint": "https://east", "region": "eu", "kubeconfigSecret": "east-kubeconfig", "status": "Ready"}],
}

# The clusters, and what the message must name.
BAD_REGISTRIES: dict[str, tuple[Any, str]] = {
    "no-name": ([{"kubeconfigSecret": {"name": "a"}}], "spec.clusters[0].name: Required"),
    "name-no-label": ([EAST | {"name": "a.b"}], "spec.clusters[0].name"),
    "name-too-long": ([EAST | {"name": "a" * 64}], "spec.clusters[0].name: Too long"),
    "duplicate": ([EAST, EAST], "spec.clusters[1]: Duplicate value"),
    "no-secret": ([{"name": "east"}], "kubeconfigSecret: Required"),
    "secret-without-name": ([EAST | {"kubeconfigSecret": {}}], "kubeconfigSecret.name: Required"),
    "secret-elsewhere": ([EAST | {"kubeconfigSecret": {"name": "a", "namespace": "kube-system"}}], "kubeconfigSecret: Too many"),
    "secret-no-name": ([EAST | {"kubeconfigSecret": {"name": "../a"}}], "kubeconfigSecret.name"),
    "short-secret-empty": ([EAST | {"kubeconfigSecret": ""}], "kubeconfigSecret"),
    "short-secret-no-name": ([EAST | {"kubeconfigSecret": "../a"}], "kubeconfigSecret"),
    "short-secret-too-long": ([EAST | {"kubeconfigSecret": "a" * 254}], "kubeconfigSecret: Too long"),
    "secret-number": ([EAST | {"kubeconfigSecret": 5}], "kubeconfigSecret"),
    "secret-list": ([EAST | {"kubeconfigSecret": ["a"]}], "kubeconfigSecret"),
    "status-object": ([EAST | {"status": {"state": "Ready"}}], "spec.clusters[0].status"),
    "region-empty": ([EAST | {"region": ""}], "spec.clusters[0].region"),
    "region-no-label": ([EAST | {"region": "a b"}], "spec.clusters[0].region"),
    "endpoint-without-tls": ([EAST | {"endpoint": "http://east"}], "endpoint must be the address of an API server"),
    "endpoint-no-address": ([EAST | {"endpoint": "east:6443"}], "endpoint must be the address of an API server"),
    "endpoint-without-host": ([EAST | {"endpoint": "https:///a"}], "endpoint must be the address of an API server"),
    "endpoint-with-user": ([EAST | {"endpoint": "https://a:b@east"}], "endpoint must be an address alone"),
    "endpoint-with-query": ([EAST | {"endpoint": "https://east?a"}], "endpoint must be an address alone"),
    "too-many": ([EAST | {"name": f"c{number}"} for number in range(1001)], "spec.clusters: Too many"),
}

REGISTRY_STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Healthy",
            "status": "False",
            "reason": "SomeUnhealthy",
            "message": "1 of 2 healthy; Unauthorized: west",
            "lastTransitionTime": NOW,
            "observedGeneration": 1,
        }
    ],
    "clusters": [
        {
            "name": "east",
            "reachable": True,
            "authenticated": True,
            "version": "v1.36.3",
            "lastSeen": NOW,
            "credentialsExpire": NOW,
            "reason": "Healthy",
        },
        {"name": "west", "reachable": True, "authenticated": False, "lastSeen": NOW, "reason": "Unauthorized", "message": "Refused."},
    ],
}


@pytest.fixture(scope="module")
def registry_verdicts(hub: Hub) -> dict[str, Verdict]:
    cases = GOOD_REGISTRIES | {case: clusters for case, (clusters, _problem) in BAD_REGISTRIES.items()}
    return judge_all(hub, {case: registry(case, "default", clusters) for case, clusters in cases.items()}, "create")


@pytest.mark.parametrize("case", GOOD_REGISTRIES)
def test_good_registry_is_accepted_as_it_is(registry_verdicts: dict[str, Verdict], case: str) -> None:
    verdict = registry_verdicts[case]
    assert verdict.stored and verdict.stored["spec"]["clusters"] == GOOD_REGISTRIES[case], verdict.error


@pytest.mark.parametrize("case", BAD_REGISTRIES)
def test_bad_registry_is_refused_and_the_field_named(registry_verdicts: dict[str, Verdict], case: str) -> None:
    verdict = registry_verdicts[case]
    assert not verdict.accepted
    assert BAD_REGISTRIES[case][1] in verdict.error


def test_status_of_a_registry_is_kept_shown_and_checked(hub: Hub, namespace: str) -> None:
    hub.kubectl("create", "--filename=-", stdin=json.dumps(registry("peers", namespace, [EAST])))
    patch = ("patch", "creg", "peers", "-n", namespace, "--type=merge", "--subresource=status", "--patch")
    hub.kubectl(*patch, json.dumps({"status": REGISTRY_STATUS}))
    assert hub.get("creg", "peers", "-n", namespace)["status"] == REGISTRY_STATUS
    header, row = (re.split(r" {2,}", line.strip()) for line in hub.kubectl("get", "creg", "-n", namespace).stdout.splitlines())
    assert header == ["NAME", "HEALTHY", "CLUSTERS", "AGE"]
    assert row[:-1] == ["peers", "False", "1 of 2 healthy; Unauthorized: west"]
    refused = hub.kubectl(*patch, json.dumps({"status": {"clusters": [{"name": "east", "reason": "Down"}]}}), check=False)
    assert "status.clusters[0].reason: Unsupported value" in refused.stderr


def pool(case: str, spec: Object) -> Object:
    metadata = {"name": case, "namespace": "default"}
    return {"apiVersion": "infrastructure.openfleet.io/v1alpha1", "kind": "AddressPool", "metadata": metadata, "spec": spec}


GOOD_POOLS: dict[str, Object] = {
    "networks": {"type": "Network", "ranges": ["10.20.0.0/16", "2001:db8::/48"], "prefixLength": 24},
    "vlans": {"type": "VLAN", "ranges": ["100-199", "300"]},
    "addresses": {"type": "Address", "ranges": ["192.0.2.10-192.0.2.99"]},
}
BAD_POOLS: dict[str, tuple[Object, str]] = {
    "no-type": ({"ranges": ["1"]}, "spec.type: Required"),
    "other-type": ({"type": "Host", "ranges": ["1"]}, "spec.type: Unsupported value"),
    "no-ranges": ({"type": "VLAN", "ranges": []}, "spec.ranges"),
    "range-twice": ({"type": "VLAN", "ranges": ["1", "1"]}, "spec.ranges[1]: Duplicate value"),
    "network-of-no-length": ({"type": "Network", "ranges": ["10.20.0.0/16"]}, "prefixLength is for the type Network, which needs it"),
    "vlan-with-length": ({"type": "VLAN", "ranges": ["1"], "prefixLength": 24}, "prefixLength is for the type Network, which needs it"),
    "length": ({"type": "Network", "ranges": ["10.20.0.0/16"], "prefixLength": 129}, "spec.prefixLength"),
}


@pytest.fixture(scope="module")
def pool_verdicts(hub: Hub) -> dict[str, Verdict]:
    cases = GOOD_POOLS | {case: spec for case, (spec, _problem) in BAD_POOLS.items()}
    return judge_all(hub, {case: pool(case, spec) for case, spec in cases.items()}, "create")


@pytest.mark.parametrize("case", GOOD_POOLS)
def test_good_pool_is_accepted_as_it_is(pool_verdicts: dict[str, Verdict], case: str) -> None:
    verdict = pool_verdicts[case]
    assert verdict.stored and verdict.stored["spec"] == GOOD_POOLS[case], verdict.error


@pytest.mark.parametrize("case", BAD_POOLS)
def test_bad_pool_is_refused_and_the_field_named(pool_verdicts: dict[str, Verdict], case: str) -> None:
    assert not pool_verdicts[case].accepted and BAD_POOLS[case][1] in pool_verdicts[case].error


def test_type_of_a_pool_cannot_be_changed_and_columns_show_what_is_free(hub: Hub, namespace: str) -> None:
    item = edited(pool("vlans", GOOD_POOLS["vlans"]), {"metadata.namespace": namespace})
    hub.kubectl("create", "--filename=-", stdin=json.dumps(item))
    patch = ("patch", "apool", "vlans", "-n", namespace, "--type=merge")
    assert "type cannot be changed" in hub.kubectl(*patch, "--patch", '{"spec": {"type": "Address"}}', check=False).stderr
    allocation = {"namespace": "team", "name": "demo", "uid": "1", "token": 7, "values": ["100"], "orphanedSince": NOW}
    status = {"allocated": 1, "free": 100, "allocations": {"1": allocation}}
    hub.kubectl(*patch, "--subresource=status", "--patch", json.dumps({"status": status}))
    assert hub.get("apool", "vlans", "-n", namespace)["status"] == status
    header, row = (re.split(r" {2,}", line.strip()) for line in hub.kubectl("get", "apool", "-n", namespace).stdout.splitlines())
    assert header == ["NAME", "TYPE", "RANGES", "ALLOCATED", "FREE", "AGE"]
    assert row[:-1] == ["vlans", "VLAN", '["100-199","300"]', "1", "100"]
