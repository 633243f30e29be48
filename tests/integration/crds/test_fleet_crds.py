"""The CRDs of the fleet on a real API server: what they accept, refuse and show."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access as Hub
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ..support.verdicts import REMOVED, Verdict, edited, judge_all

API_VERSION = "fleet.openfleet.io/v1alpha1"
NOW = "2026-01-02T03:04:05Z"
UID = "0b7c9f0e-1111-4222-8333-444455556666"
TEMPLATE = "openfleet.clusters.ocp_4_17_small"
READY = {"type": "Ready", "status": "True", "reason": "ChecksPassed", "message": "", "lastTransitionTime": NOW}
CAPACITY = {"clusters": 10, "nodes": {"fc430": 20}}
REFERENCE = {"namespace": "team", "name": "demo", "uid": UID}
RECORD = {"name": "demo", "uid": UID, "template": TEMPLATE, "created": NOW, "deleted": NOW, "reason": "Deleted"}


def item(kind: str, spec: Object, name: str = "demo", namespace: str = "default") -> Object:
    metadata = {"name": name} | ({} if kind == "Hub" else {"namespace": namespace})
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def cluster(**spec: Any) -> Object:
    return item("FleetCluster", {"template": TEMPLATE} | spec)


def hub_object(**spec: Any) -> Object:
    return item("Hub", {"capacity": CAPACITY} | spec)


def quota(name: str = "default", **spec: Any) -> Object:
    return item("FleetQuota", spec, name)


def assignment(name: str = UID, **spec: Any) -> Object:
    return item("ClusterAssignment", {"cluster": REFERENCE, "template": TEMPLATE} | spec, name)


NODES = {"workers": {"class": "fc430", "size": 3}}
PLACEMENT = {
    "hub": "east",
    "region": "eu",
    "selector": {"matchLabels": {"gpu": "yes"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]},
    "tolerations": [{"key": "dedicated", "value": "team"}, {"key": "edge"}],
}
GOOD: dict[str, Object] = {
    "cluster-shortest": cluster(),
    "cluster-complete": cluster(
        templateParameters={"a": {"b": [1]}}, nodeSets=NODES, placement=PLACEMENT, priority=5, expiresAt="2027-01-01T00:00:00Z"
    ),
    "hub-complete": hub_object(
        schedulable=False,
        region="eu-1",
        taints=[{"key": "dedicated", "value": "team"}],
        tenantSelector={"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    ),
    "quota-empty": quota(),
    "quota-complete": quota(
        hard={"clusters": 5, "nodes": 9, "nodes.h100.large": 2, "clusters._local": 1, f"clusters.{TEMPLATE}": 0},
        maxLifetime="14d",
        denied={"reason": "unpaid", "deleteAfter": NOW},
    ),
    "assignment": assignment(nodeSets=NODES, templateParameters={"a": 1}),
    "record": item("ClusterRecord", RECORD | {"hub": "east", "nodeSets": NODES, "nodeHours": {"fc430": 1.5}}, UID),
}
# The object, and what the message must name.
BAD: dict[str, tuple[Object, str]] = {
    "cluster-no-template": (item("FleetCluster", {}), "spec.template: Required"),
    "cluster-template-no-name": (cluster(template="roles/x"), "spec.template"),
    "cluster-name-with-dot": (edited(cluster(), {"metadata.name": "a.b"}), "metadata.name"),
    "cluster-parameters-a-list": (cluster(templateParameters=[1]), "spec.templateParameters"),
    "cluster-nodes-without-class": (cluster(nodeSets={"a": {"size": 1}}), "spec.nodeSets.a.class: Required"),
    "cluster-nodes-negative": (cluster(nodeSets={"a": {"class": "x", "size": -1}}), "spec.nodeSets.a.size"),
    "cluster-operator": (
        cluster(placement={"selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}),
        "matchExpressions[0].operator: Unsupported value",
    ),
    "cluster-in-without-values": (
        cluster(placement={"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        "values are for the operators In and NotIn, which need them",
    ),
    "cluster-exists-with-values": (
        cluster(placement={"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}),
        "values are for the operators In and NotIn, which need them",
    ),
    "cluster-toleration-without-key": (cluster(placement={"tolerations": [{"value": "a"}]}), "tolerations[0].key: Required"),
    "cluster-priority": (cluster(priority=1001), "spec.priority"),
    "cluster-expiry": (cluster(expiresAt="soon"), "spec.expiresAt"),
    "hub-no-capacity": (item("Hub", {}), "spec.capacity: Required"),
    "hub-name-too-long-for-its-namespace": (edited(hub_object(), {"metadata.name": "a" * 60}), "metadata.name"),
    "hub-negative-capacity": (hub_object(capacity={"clusters": 1, "nodes": {"a": -1}}), "spec.capacity.nodes.a"),
    "hub-taint-twice": (hub_object(taints=[{"key": "a"}, {"key": "a"}]), "spec.taints[1]: Duplicate value"),
    "hub-selector": (
        hub_object(tenantSelector={"matchExpressions": [{"key": "a", "operator": "NotIn"}]}),
        "values are for the operators In and NotIn, which need them",
    ),
    "quota-name": (quota("mine"), "the FleetQuota of a namespace has the name default"),
    "quota-key": (quota(hard={"cpu": 1}), "the keys are clusters, nodes, clusters.<template> and nodes.<class>"),
    "quota-key-without-class": (quota(hard={"nodes.": 1}), "the keys are clusters, nodes, clusters.<template> and nodes.<class>"),
    "quota-negative": (quota(hard={"nodes": -1}), "spec.hard.nodes"),
    "quota-lifetime": (quota(maxLifetime="two weeks"), "spec.maxLifetime"),
    "quota-denied-without-reason": (quota(denied={}), "spec.denied.reason: Required"),
    "assignment-name": (assignment("demo"), "the name of a ClusterAssignment is the uid of its cluster"),
    "assignment-no-cluster": (edited(assignment(), {"spec.cluster": REMOVED}), "spec.cluster: Required"),
    "record-reason": (item("ClusterRecord", RECORD | {"reason": "Bored"}, UID), "spec.reason: Unsupported value"),
}


@pytest.fixture(scope="module")
def verdicts(hub: Hub) -> dict[str, Verdict]:
    return judge_all(hub, GOOD | {case: bad for case, (bad, _problem) in BAD.items()}, "create")


@pytest.mark.parametrize("case", GOOD)
def test_good_object_is_accepted_as_it_is(verdicts: dict[str, Verdict], case: str) -> None:
    verdict = verdicts[case]
    assert verdict.stored, verdict.error
    assert verdict.stored["spec"] == ({"schedulable": True} if case.startswith("hub") else {}) | GOOD[case]["spec"]


@pytest.mark.parametrize("case", BAD)
def test_bad_object_is_refused_and_the_field_named(verdicts: dict[str, Verdict], case: str) -> None:
    assert not verdicts[case].accepted
    assert BAD[case][1] in verdicts[case].error


def test_what_a_hub_relies_on_cannot_be_changed(hub: Hub, namespace: str) -> None:
    """The class of a node set, the template, the cluster of an assignment, and all of a record."""
    objects = {
        "cluster": item("FleetCluster", {"template": TEMPLATE, "nodeSets": NODES}, "demo", namespace),
        "assignment": item("ClusterAssignment", {"cluster": REFERENCE, "template": TEMPLATE, "nodeSets": NODES}, UID, namespace),
        "record": item("ClusterRecord", RECORD, UID, namespace),
    }
    for each in objects.values():
        hub.kube.create(each)
    other_class = {"spec.nodeSets": {"workers": {"class": "h100", "size": 3}}}
    refused = {
        "cluster-template": (edited(objects["cluster"], {"spec.template": "other"}), "template is immutable"),
        "cluster-class": (edited(objects["cluster"], other_class), "the class of a node set cannot be changed"),
        "assignment-template": (edited(objects["assignment"], {"spec.template": "other"}), "template is immutable"),
        "assignment-class": (edited(objects["assignment"], other_class), "the class of a node set cannot be changed"),
        "assignment-cluster": (edited(objects["assignment"], {"spec.cluster.name": "other"}), "cluster cannot be changed"),
        "record": (edited(objects["record"], {"spec.reason": "Expired"}), "a record cannot be changed"),
    }
    sizes = {"workers": {"class": "fc430", "size": 5}, "more": {"class": "h100", "size": 1}}
    allowed = {
        "cluster-size": edited(objects["cluster"], {"spec.nodeSets": sizes, "spec.placement": {"region": "eu"}}),
        "cluster-other-set": edited(objects["cluster"], {"spec.nodeSets": {"more": sizes["more"]}}),
    }
    verdicts = judge_all(hub, {case: changed for case, (changed, _message) in refused.items()} | allowed, "replace")
    assert all(message in verdicts[case].error for case, (_changed, message) in refused.items()), verdicts
    assert all(verdicts[case].accepted for case in allowed), verdicts


def test_bound_cluster_never_moves(hub: Hub, namespace: str) -> None:
    created = hub.kube.create(item("FleetCluster", {"template": TEMPLATE, "placement": {"region": "eu"}}, "demo", namespace))
    patch = ("patch", "fcl", "demo", "-n", namespace, "--type=merge", "--patch")
    hub.kubectl(*patch, '{"spec": {"placement": {"region": "us"}}}')
    hub.kube.patch(created, {"status": {"hub": "east"}}, subresource="status", checked=False)
    for status in ({"hub": "west"}, {"hub": None}):
        refused = hub.kubectl(*patch, json.dumps({"status": status}), "--subresource=status", check=False)
        assert "a cluster that is bound to a hub cannot be bound to another one" in refused.stderr
    for placement in ({"region": "eu"}, None):
        refused = hub.kubectl(*patch, json.dumps({"spec": {"placement": placement}}), check=False)
        assert "placement cannot be changed after the cluster was bound to a hub" in refused.stderr
    hub.kubectl(*patch, '{"spec": {"priority": 3}}')


STATUS: dict[str, Object] = {
    "FleetCluster": {
        "observedGeneration": 1,
        "state": "Degraded",
        "hub": "east",
        "nodes": "2/3",
        "version": "4.17.1",
        "apiURL": "https://api.demo.example.com:6443",
        "consoleURL": "https://console.demo.example.com",
        "nodeSets": {"workers": {"class": "fc430", "size": 3, "ready": 2}},
        "conditions": [READY | {"type": "QuotaReserved", "observedGeneration": 1}],
        "scheduling": {"message": "east of 2 hubs"},
        "failure": {"reason": "TaskFailed", "message": "why"},
    },
    "Hub": {
        "heartbeat": NOW,
        "templates": [{"name": TEMPLATE}],
        "clusters": 1,
        "free": {"clusters": 9, "nodes": {"fc430": -3}},
        "reservations": {UID: {"namespace": "team", "name": "demo", "nodes": {"fc430": 23}}},
        "conditions": [READY],
    },
    "FleetQuota": {
        "used": {"clusters": 1, "nodes": 3},
        "reservations": {UID: {"name": "demo", "amounts": {"clusters": 1, "nodes": 3}}},
    },
    "ClusterAssignment": {"observedGeneration": 1, "state": "Ready", "version": "4.17.1", "nodeSets": {}, "conditions": [READY]},
    "ClusterRecord": {"exported": NOW},
}
COLUMNS = {
    "FleetCluster": {"STATE": "Degraded", "TEMPLATE": TEMPLATE, "HUB": "east", "NODES": "2/3", "VERSION": "4.17.1"},
    "Hub": {"READY": "True", "SCHEDULABLE": "true", "REGION": "eu-1", "CLUSTERS": "1", "FREE": "9"},
    "FleetQuota": {"CLUSTERS": "1", "LIMIT": "5", "NODES": "3", "NODE-LIMIT": "9"},
    "ClusterAssignment": {"NAMESPACE": "team", "CLUSTER": "demo", "STATE": "Ready", "VERSION": "4.17.1"},
    "ClusterRecord": {"CLUSTER": "demo", "TEMPLATE": TEMPLATE, "HUB": "east", "REASON": "Deleted"},
}
SPECS: dict[str, tuple[str, Object]] = {
    "FleetCluster": ("demo", {"template": TEMPLATE}),
    "Hub": ("", {"capacity": CAPACITY, "region": "eu-1"}),
    "FleetQuota": ("default", {"hard": {"clusters": 5, "nodes": 9}}),
    "ClusterAssignment": (UID, {"cluster": REFERENCE, "template": TEMPLATE}),
    "ClusterRecord": (UID, RECORD | {"hub": "east"}),
}


@pytest.mark.parametrize("kind", STATUS)
def test_status_is_kept_and_shown_in_columns(hub: Hub, namespace: str, kind: str) -> None:
    name, spec = SPECS[kind]
    created = hub.kube.create(item(kind, spec, name or namespace, namespace), strict=True)
    try:
        written = hub.kube.patch(created, {"status": STATUS[kind]}, subresource="status", strict=True)
        assert written["status"] == STATUS[kind]
        listed = hub.kubectl("get", f"{kind.lower()}.fleet.openfleet.io", created["metadata"]["name"], "-n", namespace).stdout
        header, row = (re.split(r" {2,}", line.strip()) for line in listed.splitlines())
        shown = dict(zip(header, row, strict=True))
        assert {column: shown[column] for column in COLUMNS[kind]} == COLUMNS[kind]
        assert set(shown) - set(COLUMNS[kind]) <= {"NAME", "AGE", "CREATED", "DELETED"}
    finally:
        hub.kube.delete(created)
