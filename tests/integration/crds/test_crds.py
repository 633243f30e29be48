"""The CRDs on a real API server: what they accept, refuse, fill in and show.

The sandbox's HostedCluster and NodePool must judge as HyperShift's own CRDs do, so each of their samples is judged twice: by
the sandbox's CRDs on `hub` and by HyperShift's on `upstream_hub`. The second half is skipped where HyperShift's are not to be had.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access as Hub
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, SANDBOX_CRDS, load_crd, sandbox_crds
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import UPSTREAM as UPSTREAM_CRDS
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace

UPSTREAM = UPSTREAM_CRDS / "hypershift"
ORDERS = COLLECTION_CRDS / "clusterorders.yaml"
GROUPS = ("cloudkit.openshift.io", "osac.openshift.io")

Object = dict[str, Any]
Changes = Mapping[str, Any]
REMOVED = object()
CONFLICT = "(Conflict)"  # an operator of the hub wrote to the object at the same time; no verdict
NOW = "2026-01-02T03:04:05Z"


@dataclass(frozen=True)
class ConditionState:
    """What the API server said to one object: the object as it would be stored, or an error."""

    stored: Object | None
    error: str = ""

    @property
    def accepted(self) -> bool:
        return self.stored is not None


def judge(hub: Hub, item: Object, *command: str) -> ConditionState:
    """Give one object to a kubectl command, without changing anything."""
    for _attempt in range(5):
        done = hub.kubectl(*command, "--dry-run=server", "--output=json", "--filename=-", stdin=json.dumps(item), check=False)
        if CONFLICT not in done.stderr:
            break
    return ConditionState(None, done.stderr) if done.returncode else ConditionState(json.loads(done.stdout))


def judge_all(hub: Hub, items: Mapping[str, Object], *command: str) -> dict[str, ConditionState]:
    """The same for many objects, by the names of their cases, in one run of kubectl: a tenth of the time."""
    marked = [edited(item, {"metadata.annotations": {"case": case}}) for case, item in items.items()]
    documents = "\n---\n".join(json.dumps(item) for item in marked)
    done = hub.kubectl(*command, "--dry-run=server", "--output=json", "--filename=-", stdin=documents, check=False)
    accepted = {item["metadata"]["annotations"]["case"]: ConditionState(item) for item in json_documents(done.stdout)}
    refused = [case for case in items if case not in accepted]
    # kubectl tries every object, and lists the errors at the end in the order of the objects.
    errors = re.findall(r"^(?:Error|The )(?:.|\n(?!Error|The ))*", done.stderr, re.MULTILINE)
    assert len(errors) == len(refused), done.stderr
    verdicts = {case: ConditionState(None, error) for case, error in zip(refused, errors, strict=True)}
    again = [case for case, verdict in verdicts.items() if CONFLICT in verdict.error]
    return accepted | verdicts | {case: judge(hub, items[case], *command) for case in again}


def json_documents(text: str) -> Iterator[Object]:
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        item, end = decoder.raw_decode(text)
        yield item
        text = text[end:]


def edited(base: Object, changes: Changes) -> Object:
    """A copy of `base` with the values at some dotted paths set, or removed."""
    result = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, last = path.split(".")
        target = result
        for key in parents:
            target = target.setdefault(key, {})
        if value is REMOVED:
            del target[last]
        else:
            target[last] = value
    return result


# ----------------------------------------------------------------------------------------------------------------- ClusterOrder


@pytest.fixture(scope="module", params=GROUPS)
def group(request: pytest.FixtureRequest, hub: Hub) -> Iterator[str]:
    """An API group in which the hub knows ClusterOrders."""
    name: str = request.param
    crd = load_crd(ORDERS, name)
    present = hub.kubectl("get", "crd", crd["metadata"]["name"], check=False).returncode == 0
    if not present:
        hub.install_crd(crd)
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
def order_verdicts(hub: Hub, group: str) -> dict[str, ConditionState]:
    specs = GOOD_ORDERS | {case: spec for case, (spec, _problem) in BAD_ORDERS.items()}
    return judge_all(hub, {case: order(group, case, "default", spec) for case, spec in specs.items()}, "create")


@pytest.mark.parametrize("case", GOOD_ORDERS)
def test_good_order_is_accepted_as_it_is(order_verdicts: dict[str, ConditionState], case: str) -> None:
    verdict = order_verdicts[case]
    assert verdict.stored and verdict.stored["spec"] == GOOD_ORDERS[case], verdict.error


@pytest.mark.parametrize("case", BAD_ORDERS)
def test_bad_order_is_refused_and_the_field_named(order_verdicts: dict[str, ConditionState], case: str) -> None:
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
def placed(hub: Hub, group: str, namespace: str) -> Object:
    """An order that is on the hub."""
    item = order(group, "one", namespace, GOOD_ORDERS["complete"])
    hub.kubectl("create", "--filename=-", stdin=json.dumps(item))
    return item


def patch_status(hub: Hub, placed: Object, status: Object, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return hub.kubectl(*_patch(placed), "--patch", json.dumps({"status": status}), *options, check=check)


def read(hub: Hub, placed: Object) -> Object:
    answer: Object = hub.get(*_address(placed))
    return answer


def _patch(placed: Object) -> tuple[str, ...]:
    return ("patch", *_address(placed), "--type=merge")


def _address(placed: Object) -> tuple[str, ...]:
    metadata, group = placed["metadata"], placed["apiVersion"].partition("/")[0]
    return (f"clusterorders.{group}", metadata["name"], f"--namespace={metadata['namespace']}")


def test_get_shows_template_phase_ready_nodes_api_url_and_age(hub: Hub, group: str, placed: Object) -> None:
    patch_status(hub, placed, FULL_STATUS, "--subresource=status")
    shown = hub.kubectl("get", f"cord.{group}", f"--namespace={placed['metadata']['namespace']}").stdout
    header, row = (re.split(r" {2,}", line.strip()) for line in shown.splitlines())
    assert header == ["NAME", "TEMPLATE", "PHASE", "READY NODES", "API URL", "AGE"]
    assert row[:-1] == ["one", TEMPLATE, "Degraded", "3 of 4 nodes ready", "https://api.one.example.com:6443"]
    assert re.fullmatch(r"\d+[sm]\S*", row[-1])


def test_every_field_of_the_status_is_kept(hub: Hub, placed: Object) -> None:
    patch_status(hub, placed, FULL_STATUS, "--subresource=status")
    assert read(hub, placed)["status"] == FULL_STATUS


def test_status_is_written_through_its_subresource_only(hub: Hub, placed: Object) -> None:
    patch_status(hub, placed, {"phase": "Ready"})
    assert "status" not in read(hub, placed)

    change = json.dumps({"spec": {"nodeRequests": []}, "status": {"phase": "Ready"}})
    hub.kubectl(*_patch(placed), "--subresource=status", "--patch", change)
    after = read(hub, placed)
    assert after["status"] == {"phase": "Ready"}
    assert after["spec"] == placed["spec"]
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
def test_bad_status_is_refused_and_the_field_named(hub: Hub, placed: Object, status: Object, named: str) -> None:
    done = patch_status(hub, placed, status, "--subresource=status", "--dry-run=server", check=False)
    assert done.returncode != 0
    assert named in done.stderr


def test_template_of_an_order_cannot_be_changed_but_all_else_can(hub: Hub, placed: Object) -> None:
    verdicts = judge_all(
        hub,
        {
            "template": edited(placed, {"spec.templateID": "another.template"}),
            "no-template": edited(placed, {"spec.templateID": REMOVED}),
            "all-else": edited(placed, {"spec.templateParameters": '{"a": 1}', "spec.nodeRequests": NODES[:1]}),
            "nothing-else": edited(placed, {"spec.templateParameters": REMOVED, "spec.nodeRequests": REMOVED}),
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


def test_sandbox_has_orders_registries_and_the_hypershift_crds_it_is_told_to_take(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(json.dumps({"kind": "CustomResourceDefinition", "metadata": {"name": "other"}}))
    assert [crd["metadata"]["name"] for crd in sandbox_crds()] == [
        "clusterorders.cloudkit.openshift.io",
        "clusterregistries.ramendr.openshift.io",
        "hostedclusters.hypershift.openshift.io",
        "nodepools.hypershift.openshift.io",
    ]
    other = sandbox_crds(tmp_path, order_group=GROUPS[1])
    assert [crd["metadata"]["name"] for crd in other] == [
        "clusterorders.osac.openshift.io",
        "clusterregistries.ramendr.openshift.io",
        "other",
    ]


def test_folder_or_file_without_a_crd_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path))):
        sandbox_crds(tmp_path)
    (tmp_path / "values.yaml").write_text("a: 1\n")
    with pytest.raises(ValueError, match=r"values\.yaml"):
        load_crd(tmp_path / "values.yaml")


# -------------------------------------------------------------------------------------------------------------- ClusterRegistry


def registry(name: str, namespace: str, clusters: Any) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "ClusterRegistry", "metadata": metadata, "spec": {"clusters": clusters}}


EAST: Object = {"name": "east", "kubeconfigSecret": {"name": "east-kubeconfig"}}

GOOD_REGISTRIES: dict[str, Any] = {
    "empty": [],
    "shortest": [EAST],
    "complete": [EAST | {"region": "eu-east.1", "endpoint": "https://api.east.example.com:6443/clusters/1"}],
    "address-of-six": [EAST | {"endpoint": "https://[fd00::1]:6443"}],
}

# The clusters, and what the message must name.
BAD_REGISTRIES: dict[str, tuple[Any, str]] = {
    "no-name": ([{"kubeconfigSecret": {"name": "a"}}], "spec.clusters[0].name: Required"),
    "name-no-label": ([EAST | {"name": "a.b"}], "spec.clusters[0].name"),
    "name-too-long": ([EAST | {"name": "a" * 64}], "spec.clusters[0].name: Too long"),
    "duplicate": ([EAST, EAST], "spec.clusters[1]: Duplicate value"),
    "no-secret": ([{"name": "east"}], "kubeconfigSecret: Required"),
    "secret-without-name": ([EAST | {"kubeconfigSecret": {}}], "kubeconfigSecret.name: Required"),
    "secret-elsewhere": ([EAST | {"kubeconfigSecret": {"name": "a", "namespace": "kube-system"}}], "unknown field"),
    "secret-no-name": ([EAST | {"kubeconfigSecret": {"name": "../a"}}], "kubeconfigSecret.name"),
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
def registry_verdicts(hub: Hub) -> dict[str, ConditionState]:
    cases = GOOD_REGISTRIES | {case: clusters for case, (clusters, _problem) in BAD_REGISTRIES.items()}
    return judge_all(hub, {case: registry(case, "default", clusters) for case, clusters in cases.items()}, "create")


@pytest.mark.parametrize("case", GOOD_REGISTRIES)
def test_good_registry_is_accepted_as_it_is(registry_verdicts: dict[str, ConditionState], case: str) -> None:
    verdict = registry_verdicts[case]
    assert verdict.stored and verdict.stored["spec"]["clusters"] == GOOD_REGISTRIES[case], verdict.error


@pytest.mark.parametrize("case", BAD_REGISTRIES)
def test_bad_registry_is_refused_and_the_field_named(registry_verdicts: dict[str, ConditionState], case: str) -> None:
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


# -------------------------------------------------------------------------------------------------- HostedCluster and NodePool

IMAGE = "example.com/release:4.20.1"
OTHER_IMAGE = "example.com/release:4.20.2"


def service(name: str, kind: str = "Route", **settings: Any) -> Object:
    return {"service": name, "servicePublishingStrategy": {"type": kind, **settings}}


SERVICES = [service(name) for name in ("APIServer", "OAuthServer", "Konnectivity", "Ignition")]
MINIMAL_HOSTED_CLUSTER: Object = {
    "apiVersion": "hypershift.openshift.io/v1beta1",
    "kind": "HostedCluster",
    "metadata": {"name": "minimal"},
    "spec": {"release": {"image": IMAGE}, "pullSecret": {"name": "pull"}, "platform": {"type": "None"}, "services": SERVICES},
}
# What a template for bare metal sets, and more. There is no such pull secret, so nothing is started for it.
AGENT_HOSTED_CLUSTER = edited(
    MINIMAL_HOSTED_CLUSTER,
    {
        "metadata.name": "agent",
        "spec.platform": {"type": "Agent", "agent": {"agentNamespace": "hosts"}},
        "spec.pausedUntil": "true",
        "spec.sshKey": {"name": "ssh"},
        "spec.channel": "stable-4.20",
        "spec.clusterID": "12345678-90ab-cdef-1234-567890abcdef",
        "spec.infraID": "agent-x7k2p",
        "spec.fips": False,
        "spec.dns": {"baseDomain": "example.com", "baseDomainPrefix": "agent"},
        "spec.controllerAvailabilityPolicy": "SingleReplica",
        "spec.networking": {
            "clusterNetwork": [{"cidr": "10.132.0.0/14", "hostPrefix": 23}],
            "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
            "machineNetwork": [{"cidr": "192.168.0.0/24"}],
            "networkType": "OVNKubernetes",
            "apiServer": {"port": 6443, "allowedCIDRBlocks": ["10.0.0.0/8"]},
        },
        "spec.etcd": {
            "managementType": "Managed",
            "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": "4Gi", "storageClassName": "fast"}}},
        },
        "spec.services": [
            service("APIServer", "LoadBalancer", loadBalancer={"hostname": "api.example.com"}),
            service("OAuthServer", "Route", route={"hostname": "oauth.example.com"}),
            service("Konnectivity", "NodePort", nodePort={"address": "192.0.2.1", "port": 30000}),
            service("Ignition", "NodePort", nodePort={"address": "node.example.com"}),
            service("OIDC", "None"),
        ],
        "spec.secretEncryption": {"type": "aescbc", "aescbc": {"activeKey": {"name": "key"}}},
        "spec.nodeSelector": {"zone": "a"},
        "spec.tolerations": [{"key": "hosted", "operator": "Exists", "effect": "NoSchedule"}],
        "spec.labels": {"tenant": "one"},
        "spec.additionalTrustBundle": {"name": "ca"},
        "spec.imageContentSources": [{"source": "example.com/a", "mirrors": ["mirror.example.com/a"]}],
        "spec.configuration": {
            "apiServer": {"servingCerts": {"namedCertificates": [{"names": ["a.example.com"], "servingCertificate": {"name": "a"}}]}},
            "oauth": {
                "identityProviders": [
                    {"name": "users", "type": "HTPasswd", "mappingMethod": "claim", "htpasswd": {"fileData": {"name": "users"}}},
                    {"name": "sso", "type": "OpenID", "openID": {"clientID": "hub", "claims": {"email": ["email"]}}},
                ],
                "tokenConfig": {"accessTokenInactivityTimeout": "10m0s"},
            },
            "proxy": {"httpsProxy": "http://proxy.example.com:3128", "trustedCA": {"name": "ca"}},
        },
    },
)
KUBEVIRT_HOSTED_CLUSTER = edited(
    MINIMAL_HOSTED_CLUSTER,
    {
        "metadata.name": "kubevirt",
        "spec.pausedUntil": "2126-01-02T03:04:05Z",
        "spec.platform": {
            "type": "KubeVirt",
            "kubevirt": {
                "baseDomainPassthrough": True,
                "generateID": "x7k2p",
                "credentials": {"infraNamespace": "vms", "infraKubeConfigSecret": {"name": "infra", "key": "kubeconfig"}},
                "storageDriver": {
                    "type": "Manual",
                    "manual": {
                        "storageClassMapping": [{"guestStorageClassName": "a", "infraStorageClassName": "b"}],
                        "volumeSnapshotClassMapping": [
                            {"guestVolumeSnapshotClassName": "a", "infraVolumeSnapshotClassName": "b", "group": "g"}
                        ],
                    },
                },
            },
        },
    },
)
MINIMAL_NODE_POOL: Object = {
    "apiVersion": "hypershift.openshift.io/v1beta1",
    "kind": "NodePool",
    "metadata": {"name": "minimal"},
    "spec": {
        "clusterName": "agent",
        "release": {"image": IMAGE},
        "platform": {"type": "None"},
        "management": {"upgradeType": "Replace"},
    },
}
AGENT_NODE_POOL = edited(
    MINIMAL_NODE_POOL,
    {
        "metadata.name": "agent",
        "spec.pausedUntil": "true",
        "spec.replicas": 3,
        "spec.arch": "arm64",
        "spec.platform": {
            "type": "Agent",
            "agent": {
                "agentLabelSelector": {
                    "matchLabels": {"class": "fc430"},
                    "matchExpressions": [{"key": "order", "operator": "In", "values": ["one"]}],
                }
            },
        },
        "spec.management": {"upgradeType": "InPlace", "autoRepair": True, "inPlace": {"maxUnavailable": "10%"}},
        "spec.nodeDrainTimeout": "10m",
        "spec.nodeLabels": {"class": "fc430"},
        "spec.taints": [{"key": "example.com/gpu", "value": "h100", "effect": "NoSchedule"}],
        "spec.config": [{"name": "kubelet"}],
        "spec.tuningConfig": [{"name": "tuned"}],
    },
)
KUBEVIRT = {
    "compute": {"cores": 8, "memory": "16Gi", "qosClass": "Guaranteed"},
    "rootVolume": {
        "type": "Persistent",
        "persistent": {"size": 64, "storageClass": "fast", "volumeMode": "Block", "accessModes": ["ReadWriteMany"]},
        "cacheStrategy": {"type": "PVC"},
        "diskImage": {"containerDiskImage": "example.com/disk"},
    },
    "attachDefaultNetwork": False,
    "additionalNetworks": [{"name": "vms/storage"}],
    "networkInterfaceMultiqueue": "Disable",
    "nodeSelector": {"zone": "a"},
    "hostDevices": [{"deviceName": "example.com/gpu"}],
}
KUBEVIRT_NODE_POOL = edited(
    MINIMAL_NODE_POOL,
    {"metadata.name": "kubevirt", "spec.platform": {"type": "KubeVirt", "kubevirt": KUBEVIRT}, "spec.autoScaling": {"min": 1, "max": 5}},
)
BASES = {
    "hc": MINIMAL_HOSTED_CLUSTER,
    "hc-agent": AGENT_HOSTED_CLUSTER,
    "hc-kubevirt": KUBEVIRT_HOSTED_CLUSTER,
    "np": MINIMAL_NODE_POOL,
    "np-agent": AGENT_NODE_POOL,
    "np-kubevirt": KUBEVIRT_NODE_POOL,
}
NODE_PORT = [service(name, "NodePort", nodePort={"address": "node.example.com"}) for name in ("OAuthServer", "Konnectivity", "Ignition")]
NAMED_CERTIFICATE = {"servingCerts": {"namedCertificates": [{"names": ["api.example.com"], "servingCertificate": {"name": "a"}}]}}


def api_server(kind: str, **settings: Any) -> list[Object]:
    return [service("APIServer", kind, **settings), *SERVICES[1:]]


# Each sample is one of BASES with some fields changed. Several of the good ones look bad: that is what HyperShift accepts.
GOOD_NEW: dict[str, tuple[str, Changes]] = {
    "hc: minimal": ("hc", {}),
    "hc: agent": ("hc-agent", {}),
    "hc: kubevirt": ("hc-kubevirt", {}),
    "hc: kubevirt without settings": ("hc", {"spec.platform": {"type": "KubeVirt"}}),
    "hc: kubevirt with default storage driver": ("hc", {"spec.platform": {"type": "KubeVirt", "kubevirt": {"storageDriver": {}}}}),
    "hc: agent without settings": ("hc", {"spec.platform": {"type": "Agent"}}),
    "hc: no spec": ("hc", {"spec": REMOVED}),
    "hc: pull secret without a name": ("hc", {"spec.pullSecret": {}}),
    "hc: networking empty": ("hc", {"spec.networking": {}}),
    "hc: two stacks": ("hc", {"spec.networking": {"clusterNetwork": [{"cidr": "10.0.0.0/14"}, {"cidr": "fd01::/48"}]}}),
    "hc: networks overlap": ("hc", {"spec.networking.machineNetwork": [{"cidr": "10.0.0.0/8"}]}),
    "hc: network with impossible numbers": ("hc", {"spec.networking.clusterNetwork": [{"cidr": "999.0.0.0/99"}]}),
    "hc: etcd without volume": ("hc", {"spec.etcd": {"managementType": "Managed", "managed": {"storage": {"type": "PersistentVolume"}}}}),
    "hc: etcd volume without size": (
        "hc",
        {"spec.etcd": {"managementType": "Managed", "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {}}}}},
    ),
    "hc: etcd elsewhere": (
        "hc",
        {"spec.etcd": {"managementType": "Unmanaged", "unmanaged": {"endpoint": "https://etcd", "tls": {"clientSecret": {}}}}},
    ),
    "hc: node port on IPv6": ("hc", {"spec.services": api_server("NodePort", nodePort={"address": "2001:db8::1"})}),
    "hc: node port on localhost": ("hc", {"spec.services": api_server("NodePort", nodePort={"address": "localhost"})}),
    "hc: load balancer without host name": ("hc", {"spec.services": api_server("LoadBalancer")}),
    "hc: the same service four times": ("hc", {"spec.services": [SERVICES[0]] * 4}),
    "hc: three services on IBMCloud": ("hc", {"spec.platform": {"type": "IBMCloud"}, "spec.services": SERVICES[:3]}),
    "hc: AWS without settings": ("hc", {"spec.platform": {"type": "AWS"}}),
    "hc: Azure with routes": ("hc", {"spec.platform": {"type": "Azure"}}),
    "hc: base domain empty": ("hc", {"spec.dns": {"baseDomain": ""}}),
    "hc: capabilities": ("hc", {"spec.capabilities": {"disabled": ["Ingress", "Console"], "enabled": ["baremetal"]}}),
    "hc: autoscaling": ("hc", {"spec.autoscaling": {"maxNodesTotal": 10, "scaleDown": {"delayAfterAddSeconds": 60}}}),
    "hc: autoscaling in full": (
        "hc",
        {
            "spec.autoscaling": {
                "scaling": "ScaleUpOnly",
                "maxNodeProvisionTime": "15m",
                "maxPodGracePeriod": 60,
                "podPriorityThreshold": -10,
                "expanders": ["Priority", "LeastWaste"],
                "balancingIgnoredLabels": ["example.com/zone"],
                "maxFreeDifferenceRatioPercent": 5,
            }
        },
    ),
    "hc: audit": ("hc", {"spec.configuration": {"apiServer": {"audit": {"customRules": [{"group": "g", "profile": "None"}]}}}}),
    "hc: other configuration": (
        "hc",
        {
            "spec.configuration": {
                "image": {"registrySources": {"insecureRegistries": ["example.com"]}},
                "ingress": {"domain": "example.com"},
                "scheduler": {"profile": "NoScoring"},
            }
        },
    ),
    "hc: ingress kept private": (
        "hc",
        {"spec.operatorConfiguration": {"ingressOperator": {"endpointPublishingStrategy": {"type": "Private", "private": {}}}}},
    ),
    "hc: one network only": (
        "hc",
        {
            "spec.operatorConfiguration": {"clusterNetworkOperator": {"disableMultiNetwork": True}},
            "spec.networking": {"networkType": "Other", "allocateNodeCIDRs": "Enabled"},
        },
    ),
    "np: minimal": ("np", {}),
    "np: agent": ("np-agent", {}),
    "np: kubevirt": ("np-kubevirt", {}),
    "np: kubevirt with defaults": ("np", {"spec.platform": {"type": "KubeVirt", "kubevirt": {}}}),
    "np: kubevirt with partial settings": (
        "np",
        {"spec.platform": {"type": "KubeVirt", "kubevirt": {"compute": {"cores": 4}, "rootVolume": {"persistent": {}}}}},
    ),
    "np: kubevirt without settings": ("np", {"spec.platform": {"type": "KubeVirt"}}),
    "np: s390x": ("np-kubevirt", {"spec.arch": "s390x"}),
    "np: arm64 without platform": ("np", {"spec.arch": "arm64"}),
    "np: no spec": ("np", {"spec": REMOVED}),
    "np: no nodes": ("np", {"spec.replicas": 0}),
    "np: scale to zero on AWS": ("np", {"spec.platform": {"type": "AWS"}, "spec.autoScaling": {"min": 0, "max": 1}}),
    "np: replace on delete": ("np", {"spec.management.replace": {"strategy": "OnDelete"}}),
    "np: replace empty": ("np", {"spec.management.replace": {}}),
    "np: drain timeout in words": ("np", {"spec.nodeDrainTimeout": "soon"}),
}

BAD_NEW: dict[str, tuple[str, Changes]] = {
    "hc: no release": ("hc", {"spec.release": REMOVED}),
    "hc: no release image": ("hc", {"spec.release": {}}),
    "hc: release image with a blank": ("hc", {"spec.release.image": "example.com/release 4.20"}),
    "hc: release image empty": ("hc", {"spec.release.image": ""}),
    "hc: no pull secret": ("hc", {"spec.pullSecret": REMOVED}),
    "hc: no platform": ("hc", {"spec.platform": REMOVED}),
    "hc: no platform type": ("hc", {"spec.platform": {}}),
    "hc: unknown platform": ("hc", {"spec.platform.type": "BareMetal"}),
    "hc: agent without namespace": ("hc", {"spec.platform": {"type": "Agent", "agent": {}}}),
    "hc: kubevirt secret without key": (
        "hc",
        {
            "spec.platform": {
                "type": "KubeVirt",
                "kubevirt": {"credentials": {"infraNamespace": "a", "infraKubeConfigSecret": {"name": "a"}}},
            }
        },
    ),
    "hc: unknown storage driver": ("hc", {"spec.platform": {"type": "KubeVirt", "kubevirt": {"storageDriver": {"type": "Fast"}}}}),
    "hc: no services": ("hc", {"spec.services": REMOVED}),
    "hc: three services": ("hc", {"spec.services": SERVICES[:3]}),
    "hc: seven services": ("hc", {"spec.services": [*SERVICES, *SERVICES[:3]]}),
    "hc: unknown service": ("hc", {"spec.services": [*SERVICES, service("Console")]}),
    "hc: unknown strategy": ("hc", {"spec.services": api_server("Tunnel")}),
    "hc: node port without settings": ("hc", {"spec.services": api_server("NodePort")}),
    "hc: node port without address": ("hc", {"spec.services": api_server("NodePort", nodePort={"port": 30000})}),
    "hc: node port on a short name": ("hc", {"spec.services": api_server("NodePort", nodePort={"address": "node"})}),
    "hc: route with node port": ("hc", {"spec.services": api_server("Route", nodePort={"address": "localhost"})}),
    "hc: route with load balancer": ("hc", {"spec.services": api_server("Route", loadBalancer={})}),
    "hc: load balancer with route": ("hc", {"spec.services": api_server("LoadBalancer", route={})}),
    "hc: none with route": ("hc", {"spec.services": api_server("None", route={})}),
    "hc: route on a short name": ("hc", {"spec.services": api_server("Route", route={"hostname": "api"})}),
    "hc: Azure with node ports": ("hc", {"spec.platform": {"type": "Azure"}, "spec.services": [SERVICES[0], *NODE_PORT]}),
    "hc: network without length": ("hc", {"spec.networking.clusterNetwork": [{"cidr": "10.0.0.0"}]}),
    "hc: no cluster network": ("hc", {"spec.networking.clusterNetwork": []}),
    "hc: three service networks": ("hc", {"spec.networking.serviceNetwork": [{"cidr": f"10.{n}.0.0/16"} for n in range(3)]}),
    "hc: equal networks": ("hc", {"spec.networking.clusterNetwork": [{"cidr": "172.31.0.0/16"}]}),
    "hc: machine network equal": ("hc", {"spec.networking.machineNetwork": [{"cidr": "10.132.0.0/14"}]}),
    "hc: unknown network type": ("hc", {"spec.networking.networkType": "Cilium"}),
    "hc: node networks with OVN": ("hc", {"spec.networking.allocateNodeCIDRs": "Enabled"}),
    "hc: one network only with OVN": (
        "hc",
        {"spec.operatorConfiguration": {"clusterNetworkOperator": {"disableMultiNetwork": True}}},
    ),
    "hc: etcd managed without settings": ("hc", {"spec.etcd": {"managementType": "Managed"}}),
    "hc: etcd empty": ("hc", {"spec.etcd": {}}),
    "hc: etcd managed here and elsewhere": (
        "hc-agent",
        {"spec.etcd.unmanaged": {"endpoint": "https://etcd", "tls": {"clientSecret": {}}}},
    ),
    "hc: etcd size with a blank": ("hc-agent", {"spec.etcd.managed.storage.persistentVolume.size": "8 Gi"}),
    "hc: unknown etcd storage": ("hc-agent", {"spec.etcd.managed.storage.type": "Memory"}),
    "hc: unknown availability": ("hc", {"spec.controllerAvailabilityPolicy": "TripleReplica"}),
    "hc: unknown availability of infrastructure": ("hc", {"spec.infrastructureAvailabilityPolicy": "None"}),
    "hc: base domain with underscore": ("hc", {"spec.dns": {"baseDomain": "my_example.com"}}),
    "hc: dns without base domain": ("hc", {"spec.dns": {"baseDomainPrefix": "a"}}),
    "hc: cluster ID no UUID": ("hc", {"spec.clusterID": "one"}),
    "hc: infra ID in capitals": ("hc", {"spec.infraID": "Agent"}),
    "hc: issuer no URL": ("hc", {"spec.issuerURL": "issuer"}),
    "hc: update service no URL": ("hc", {"spec.updateService": "updates"}),
    "hc: paused until tomorrow": ("hc", {"spec.pausedUntil": "tomorrow"}),
    "hc: paused by a boolean": ("hc", {"spec.pausedUntil": True}),
    "hc: channel empty": ("hc", {"spec.channel": ""}),
    "hc: fips in words": ("hc", {"spec.fips": "yes"}),
    "hc: 21 labels": ("hc", {"spec.labels": {f"l{n}": "" for n in range(21)}}),
    "hc: 21 selectors": ("hc", {"spec.nodeSelector": {f"l{n}": "" for n in range(21)}}),
    "hc: capability both enabled and disabled": ("hc", {"spec.capabilities": {"disabled": ["Console"], "enabled": ["Console"]}}),
    "hc: console without ingress": ("hc", {"spec.capabilities": {"disabled": ["Ingress"]}}),
    "hc: unknown capability": ("hc", {"spec.capabilities": {"disabled": ["Storage"]}}),
    "hc: scale down when only up": ("hc", {"spec.autoscaling": {"scaling": "ScaleUpOnly", "scaleDown": {}}}),
    "hc: token timeout too short": ("hc", {"spec.configuration": {"oauth": {"tokenConfig": {"accessTokenInactivityTimeout": "1m"}}}}),
    "hc: certificate for the load balancer": ("hc-agent", {"spec.configuration.apiServer": NAMED_CERTIFICATE}),
    "hc: certificate beside a load balancer without host name": (
        "hc",
        {"spec.services": api_server("LoadBalancer", loadBalancer={}), "spec.configuration": {"apiServer": NAMED_CERTIFICATE}},
    ),
    "hc: unknown ingress": ("hc", {"spec.operatorConfiguration": {"ingressOperator": {"endpointPublishingStrategy": {"type": "Tunnel"}}}}),
    "hc: unknown configuration": ("hc", {"spec.configuration": {"console": {}}}),
    "hc: unknown field": ("hc", {"spec.replicas": 3}),
    "hc: unknown encryption": ("hc", {"spec.secretEncryption": {"type": "rot13"}}),
    "np: no cluster": ("np", {"spec.clusterName": REMOVED}),
    "np: cluster with a dot": ("np", {"spec.clusterName": "a.b"}),
    "np: no release": ("np", {"spec.release": REMOVED}),
    "np: release image with a blank": ("np", {"spec.release.image": " example.com/release"}),
    "np: no management": ("np", {"spec.management": REMOVED}),
    "np: no upgrade type": ("np", {"spec.management": {}}),
    "np: unknown upgrade type": ("np", {"spec.management.upgradeType": "Rolling"}),
    "np: no platform": ("np", {"spec.platform": REMOVED}),
    "np: unknown platform": ("np", {"spec.platform.type": "GCP"}),
    "np: both replicas and autoscaling": ("np", {"spec.replicas": 1, "spec.autoScaling": {"min": 1, "max": 2}}),
    "np: scale to zero": ("np", {"spec.autoScaling": {"min": 0, "max": 1}}),
    "np: autoscaling upside down": ("np", {"spec.autoScaling": {"min": 3, "max": 1}}),
    "np: autoscaling without minimum": ("np", {"spec.autoScaling": {"max": 1}}),
    "np: fewer than no nodes": ("np", {"spec.replicas": -1}),
    "np: replicas in words": ("np", {"spec.replicas": "three"}),
    "np: in place settings for replace": ("np", {"spec.management.inPlace": {"maxUnavailable": 1}}),
    "np: rolling update without strategy": ("np", {"spec.management.replace": {"rollingUpdate": {"maxSurge": 2}}}),
    "np: rolling update on delete": ("np", {"spec.management.replace": {"strategy": "OnDelete", "rollingUpdate": {"maxSurge": 2}}}),
    "np: arm64 on kubevirt": ("np-kubevirt", {"spec.arch": "arm64"}),
    "np: arm64 on agent without settings": ("np", {"spec.arch": "arm64", "spec.platform": {"type": "Agent"}}),
    "np: s390x on agent": ("np-agent", {"spec.arch": "s390x"}),
    "np: unknown architecture": ("np", {"spec.arch": "riscv64"}),
    "np: unknown taint effect": ("np", {"spec.taints": [{"key": "a", "effect": "NoRun"}]}),
    "np: taint key with a blank": ("np", {"spec.taints": [{"key": "a b", "effect": "NoSchedule"}]}),
    "np: taint value with a slash": ("np", {"spec.taints": [{"key": "a", "value": "b/c", "effect": "NoSchedule"}]}),
    "np: eleven configurations": ("np", {"spec.config": [{"name": f"c{n}"} for n in range(11)]}),
    "np: paused empty": ("np", {"spec.pausedUntil": ""}),
    "np: no cores": ("np-kubevirt", {"spec.platform.kubevirt.compute.cores": 0}),
    "np: memory in words": ("np-kubevirt", {"spec.platform.kubevirt.compute.memory": "much"}),
    "np: unknown volume": ("np-kubevirt", {"spec.platform.kubevirt.rootVolume.type": "Ephemeral"}),
    "np: unknown access mode": ("np-kubevirt", {"spec.platform.kubevirt.rootVolume.persistent.accessModes": ["ReadWrite"]}),
    "np: unknown field": ("np", {"spec.nodeCount": 3}),
}

GOOD_UPDATE: dict[str, tuple[str, Changes]] = {
    "hc: nothing": ("hc-agent", {}),
    "hc: release": ("hc-agent", {"spec.release.image": OTHER_IMAGE}),
    "hc: go on": ("hc-agent", {"spec.pausedUntil": REMOVED}),
    "hc: secrets": ("hc-agent", {"spec.pullSecret.name": "other", "spec.sshKey": REMOVED}),
    "hc: availability of infrastructure": ("hc-agent", {"spec.infrastructureAvailabilityPolicy": "HighlyAvailable"}),
    "hc: network type": ("hc-agent", {"spec.networking.networkType": "Calico"}),
    "hc: fips removed": ("hc-agent", {"spec.fips": REMOVED}),
    "hc: dns removed": ("hc-agent", {"spec.dns": REMOVED}),
    "hc: machine network removed": ("hc-agent", {"spec.networking.machineNetwork": REMOVED}),
    "hc: storage class removed": ("hc-agent", {"spec.etcd.managed.storage.persistentVolume.storageClassName": REMOVED}),
    "hc: agent namespace": ("hc-agent", {"spec.platform.agent.agentNamespace": "others"}),
    "hc: places and labels": ("hc-agent", {"spec.nodeSelector": {"zone": "b"}, "spec.tolerations": [], "spec.labels": {}}),
    "hc: identity providers": ("hc-agent", {"spec.configuration.oauth.identityProviders": []}),
    "hc: spec without IDs removed": ("hc-kubevirt", {"spec": REMOVED}),
    "np: replicas": ("np-agent", {"spec.replicas": 5}),
    "np: release": ("np-agent", {"spec.release.image": OTHER_IMAGE}),
    "np: autoscaling": ("np-agent", {"spec.replicas": REMOVED, "spec.autoScaling": {"min": 1, "max": 9}}),
    "np: hosts": ("np-agent", {"spec.platform.agent.agentLabelSelector": {"matchLabels": {"class": "h100"}}}),
    "np: labels and taints": ("np-agent", {"spec.nodeLabels": {}, "spec.taints": REMOVED}),
    "np: machines": ("np-kubevirt", {"spec.platform.kubevirt.compute": {"cores": 1}}),
}

BAD_UPDATE: dict[str, tuple[str, Changes]] = {
    "hc: platform": ("hc-agent", {"spec.platform": {"type": "None"}}),
    "hc: services": ("hc-agent", {"spec.services": SERVICES}),
    "hc: cluster network": ("hc-agent", {"spec.networking.clusterNetwork": [{"cidr": "10.0.0.0/14", "hostPrefix": 23}]}),
    "hc: host prefix": ("hc-agent", {"spec.networking.clusterNetwork": [{"cidr": "10.132.0.0/14", "hostPrefix": 24}]}),
    "hc: service network": ("hc-agent", {"spec.networking.serviceNetwork": [{"cidr": "172.30.0.0/16"}]}),
    "hc: machine network": ("hc-agent", {"spec.networking.machineNetwork": [{"cidr": "192.168.1.0/24"}]}),
    "hc: default network": ("hc-kubevirt", {"spec.networking": {"clusterNetwork": [{"cidr": "10.0.0.0/14"}]}}),
    "hc: API port": ("hc-agent", {"spec.networking.apiServer.port": 443}),
    "hc: availability": ("hc-agent", {"spec.controllerAvailabilityPolicy": "HighlyAvailable"}),
    "hc: availability removed": ("hc-agent", {"spec.controllerAvailabilityPolicy": REMOVED}),
    "hc: cluster ID": ("hc-agent", {"spec.clusterID": "22345678-90ab-cdef-1234-567890abcdef"}),
    "hc: cluster ID removed": ("hc-agent", {"spec.clusterID": REMOVED}),
    "hc: infra ID": ("hc-agent", {"spec.infraID": "other"}),
    "hc: infra ID removed": ("hc-agent", {"spec.infraID": REMOVED}),
    "hc: spec removed": ("hc-agent", {"spec": REMOVED}),
    "hc: issuer": ("hc-agent", {"spec.issuerURL": "https://example.com"}),
    "hc: fips": ("hc-agent", {"spec.fips": True}),
    "hc: base domain": ("hc-agent", {"spec.dns.baseDomain": "example.org"}),
    "hc: base domain prefix": ("hc-agent", {"spec.dns.baseDomainPrefix": "other"}),
    "hc: etcd size": ("hc-agent", {"spec.etcd.managed.storage.persistentVolume.size": "8Gi"}),
    "hc: etcd size removed": ("hc-agent", {"spec.etcd.managed.storage.persistentVolume.size": REMOVED}),
    "hc: etcd storage class": ("hc-agent", {"spec.etcd.managed.storage.persistentVolume.storageClassName": "slow"}),
    "hc: etcd elsewhere": (
        "hc-agent",
        {"spec.etcd": {"managementType": "Unmanaged", "unmanaged": {"endpoint": "https://etcd", "tls": {"clientSecret": {}}}}},
    ),
    "hc: catalogs": ("hc-agent", {"spec.olmCatalogPlacement": "guest"}),
    "hc: capabilities": ("hc-agent", {"spec.capabilities": {"disabled": ["Console"]}}),
    "hc: encryption removed": ("hc-agent", {"spec.secretEncryption": REMOVED}),
    "hc: ID of machines": ("hc-kubevirt", {"spec.platform.kubevirt.generateID": "other"}),
    "hc: ID of machines removed": ("hc-kubevirt", {"spec.platform.kubevirt.generateID": REMOVED}),
    "hc: namespace of machines": ("hc-kubevirt", {"spec.platform.kubevirt.credentials.infraNamespace": "other"}),
    "hc: secret of machines": (
        "hc-kubevirt",
        {"spec.platform.kubevirt.credentials.infraKubeConfigSecret": {"name": "other", "key": "kubeconfig"}},
    ),
    "hc: passthrough": ("hc-kubevirt", {"spec.platform.kubevirt.baseDomainPassthrough": False}),
    "hc: storage driver": ("hc-kubevirt", {"spec.platform.kubevirt.storageDriver": {"type": "None"}}),
    "np: cluster": ("np-agent", {"spec.clusterName": "other"}),
    "np: platform": ("np-agent", {"spec.platform.type": "None"}),
    "np: architecture": ("np-agent", {"spec.arch": "amd64"}),
    "np: architecture removed": ("np-agent", {"spec.arch": REMOVED}),
    "np: upgrade type": ("np-agent", {"spec.management": {"upgradeType": "Replace"}}),
}

HISTORY = {"state": "Completed", "version": "4.20.1", "image": IMAGE, "startedTime": NOW, "completionTime": NOW, "verified": False}
VERSION: Object = {
    "desired": {"image": IMAGE, "version": "4.20.1", "channels": ["stable-4.20"]},
    "history": [HISTORY],
    "observedGeneration": 1,
    "availableUpdates": None,
}
AVAILABLE = {
    "type": "Available",
    "status": "True",
    "reason": "AsExpected",
    "message": "",
    "lastTransitionTime": NOW,
    "observedGeneration": 1,
}
HOSTED_CLUSTER_STATUS: Object = {
    "conditions": [AVAILABLE],
    "version": VERSION,
    "controlPlaneVersion": {
        "desired": VERSION["desired"],
        "history": [{"state": "Partial", "version": "4.20.1", "image": IMAGE, "startedTime": NOW}],
        "observedGeneration": 1,
    },
    "kubeconfig": {"name": "admin"},
    "kubeadminPassword": {"name": "password"},
    "controlPlaneEndpoint": {"host": "api.example.com", "port": 6443},
    "oauthCallbackURLTemplate": "https://oauth.example.com/oauth2callback/[identity-provider-name]",
    "ignitionEndpoint": "ignition.example.com",
    "payloadArch": "AMD64",
    "platform": {},
}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": NOW}
NODE_POOL_STATUS: Object = {
    "replicas": 3,
    "version": "4.20.1",
    "conditions": [{**READY, "reason": "AsExpected", "message": "", "severity": "Info", "observedGeneration": 1}],
    "platform": {"kubeVirt": {"cacheName": "c", "credentials": {"infraNamespace": "vms"}}},
}

GOOD_STATUS: dict[str, tuple[str, Changes]] = {
    "hc: all": ("hc-agent", {"status": HOSTED_CLUSTER_STATUS}),
    "hc: update under way": (
        "hc-agent",
        {
            "status.version": {
                **VERSION,
                "availableUpdates": [],
                "history": [{**HISTORY, "state": "Partial", "completionTime": None}, HISTORY],
            }
        },
    ),
    "hc: kubeconfig without a name": ("hc-agent", {"status.kubeconfig": {}}),
    "np: all": ("np-agent", {"status": NODE_POOL_STATUS}),
    "np: condition without reason": ("np-agent", {"status.conditions": [READY]}),
    "np: condition of no usual status": ("np-agent", {"status.conditions": [{**READY, "status": "Perhaps"}]}),
    "np: condition twice": ("np-agent", {"status.conditions": [READY, READY]}),
}

BAD_STATUS: dict[str, tuple[str, Changes]] = {
    "hc: condition without reason": ("hc-agent", {"status.conditions": [edited(AVAILABLE, {"reason": REMOVED})]}),
    "hc: condition of no usual status": ("hc-agent", {"status.conditions": [{**AVAILABLE, "status": "Perhaps"}]}),
    "hc: condition twice": ("hc-agent", {"status.conditions": [AVAILABLE, AVAILABLE]}),
    "hc: version without updates": ("hc-agent", {"status.version": edited(VERSION, {"availableUpdates": REMOVED})}),
    "hc: history without completion": (
        "hc-agent",
        {"status.version": {**VERSION, "history": [edited(HISTORY, {"completionTime": REMOVED})]}},
    ),
    "hc: history without verification": ("hc-agent", {"status.version": {**VERSION, "history": [edited(HISTORY, {"verified": REMOVED})]}}),
    "hc: history of the control plane empty": ("hc-agent", {"status.controlPlaneVersion": {"desired": VERSION["desired"], "history": []}}),
    "hc: endpoint without port": ("hc-agent", {"status.controlPlaneEndpoint": {"host": "api.example.com"}}),
    "hc: unknown architecture": ("hc-agent", {"status.payloadArch": "amd64"}),
    "np: condition without time": ("np-agent", {"status.conditions": [edited(READY, {"lastTransitionTime": REMOVED})]}),
    "np: version too long": ("np-agent", {"status.version": "4" * 65}),
    "np: replicas in words": ("np-agent", {"status.replicas": "three"}),
}

SAMPLES = {"new": (GOOD_NEW, BAD_NEW), "update": (GOOD_UPDATE, BAD_UPDATE), "status": (GOOD_STATUS, BAD_STATUS)}
EXPECTED = {
    f"{what} {case}": accepted
    for what, (good, bad) in SAMPLES.items()
    for accepted, cases in ((True, good), (False, bad))
    for case in cases
}
assert len(EXPECTED) == sum(len(good) + len(bad) for good, bad in SAMPLES.values()), "two samples have the same name"


def judge_samples(hub: Hub) -> dict[str, ConditionState]:
    """Every sample on one hub. The objects to update are made for it and removed again."""

    def samples(what: str) -> dict[str, Object]:
        return {
            f"{what} {case}": edited(BASES[base], {**changes, "metadata.namespace": namespace})
            for cases in SAMPLES[what]
            for case, (base, changes) in cases.items()
        }

    with fresh_namespace(hub) as namespace:
        verdicts = judge_all(hub, samples("new"), "create")
        bases = [edited(base, {"metadata.namespace": namespace}) for base in BASES.values()]
        hub.kubectl("create", "--filename=-", stdin="\n---\n".join(json.dumps(base) for base in bases))
        verdicts |= judge_all(hub, samples("update"), "replace")
        # One by one: a write of the status leaves the annotation alone that tells the cases apart.
        for case, item in samples("status").items():
            verdicts[case] = judge(hub, item, "replace", "--subresource=status")
    return verdicts


@pytest.fixture(scope="module")
def sandbox_verdicts(hub: Hub) -> dict[str, ConditionState]:
    return judge_samples(hub)


@pytest.fixture(scope="module")
def upstream_verdicts(upstream_hub: Hub) -> dict[str, ConditionState]:
    return judge_samples(upstream_hub)


@pytest.mark.parametrize("case", EXPECTED)
def test_sandbox_judges_as_expected(sandbox_verdicts: dict[str, ConditionState], case: str) -> None:
    verdict = sandbox_verdicts[case]
    assert verdict.accepted == EXPECTED[case], verdict.error or verdict.stored


@pytest.mark.parametrize("case", EXPECTED)
def test_hypershift_judges_and_stores_the_same(
    upstream_verdicts: dict[str, ConditionState], sandbox_verdicts: dict[str, ConditionState], case: str
) -> None:
    ours, upstream = sandbox_verdicts[case], upstream_verdicts[case]
    assert ours.accepted == upstream.accepted, ours.error or upstream.error
    part = "status" if case.startswith("status ") else "spec"
    assert (ours.stored or {}).get(part) == (upstream.stored or {}).get(part)


@pytest.mark.skipif(not UPSTREAM.is_dir(), reason=f"HyperShift's own CRDs are not at {UPSTREAM}; OPENFLEET_UPSTREAM_CRDS names the folder")
@pytest.mark.parametrize("file", ["hostedclusters.yaml", "nodepools.yaml"])
class TestDeclarations:
    """What can be compared without a server, for every field and not only for those of the samples."""

    def test_names_subresources_and_columns_are_the_same(self, file: str) -> None:
        def visible(crd: Object) -> Object:
            (version,) = crd["spec"]["versions"]
            columns = [{**column, "description": ""} for column in version["additionalPrinterColumns"]]
            return {**crd["spec"], "versions": [{**version, "schema": {}, "additionalPrinterColumns": columns}]}

        assert visible(load_crd(SANDBOX_CRDS / file)) == visible(load_crd(UPSTREAM / file))

    def test_every_field_is_declared_as_in_hypershift(self, file: str) -> None:
        def schema(folder: Path) -> Object:
            (version,) = load_crd(folder / file)["spec"]["versions"]
            root: Object = version["schema"]["openAPIV3Schema"]
            return root

        assert not list(differences(schema(SANDBOX_CRDS), schema(UPSTREAM)))


FACETS = (
    *("type", "format", "nullable", "default", "required", "enum", "anyOf"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties"),
    *("x-kubernetes-int-or-string", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
)


def differences(ours: Object, upstream: Object, path: str = "", frozen: tuple[bool, bool] = (False, False)) -> Iterator[str]:
    """Where our schema says something else than HyperShift's. Fields that only HyperShift has are no difference."""
    for facet in FACETS:
        mine, theirs = (_facet(schema, facet) for schema in (ours, upstream))
        if mine != theirs:
            yield f"{path}: {facet} is {mine}, not {theirs}"
    frozen = (frozen[0] or _immutable(ours), frozen[1] or _immutable(upstream))
    for name, schema in ours.get("properties", {}).items():
        if name in upstream["properties"]:
            yield from differences(schema, upstream["properties"][name], f"{path}.{name}", frozen)
        else:
            yield f"{path}.{name} is unknown"
    for key in ("items", "additionalProperties"):
        if key in ours:
            yield from differences(ours[key], upstream[key], f"{path}[]", frozen)
    if not ours.get("properties") and frozen[0] != frozen[1]:
        yield f"{path}: immutable is {frozen[0]}, not {frozen[1]}"


def _facet(schema: Object, facet: str) -> Any:
    value = schema.get(facet)
    if facet in ("required", "enum"):
        return sorted(value or [])
    # The longest value of an enumeration limits its length already.
    return None if facet == "maxLength" and "enum" in schema else value


def _immutable(schema: Object) -> bool:
    rules: Iterable[Object] = schema.get("x-kubernetes-validations", [])
    return any(rule["rule"].endswith("self == oldSelf") for rule in rules)
