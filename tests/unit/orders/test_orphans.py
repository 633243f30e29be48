"""What deleted orders leave behind: a namespace by the uid of its order, a Lease once nothing with an older token can exist."""

from __future__ import annotations

import json

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import ORDER_ANNOTATION, lease_name
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.orphans import find_orphans

NAMES = Names()
WORKING = NAMES.working_namespace("team", "demo")


def order(namespace: str = "team", name: str = "demo", uid: str = "1") -> Object:
    return {"kind": "ClusterOrder", "metadata": {"namespace": namespace, "name": name, "uid": uid}}


def namespace(name: str, **labels: str) -> Object:
    prefixed = {f"{NAMES.group}/clusterorder{key}": value for key, value in labels.items()}
    return {"kind": "Namespace", "metadata": {"name": name, "labels": prefixed}}


def working(uid: str = "1") -> Object:
    labels = {"": "demo", "-namespace": "team"} | ({"-uid": uid} if uid else {})
    return namespace(WORKING, **labels)


def lease(name: str = "") -> Object:
    metadata = {"name": name or lease_name("team", "demo"), "namespace": "openfleet-system", "annotations": {ORDER_ANNOTATION: "team/demo"}}
    return {"kind": "Lease", "metadata": metadata | {"resourceVersion": "1"}}


@pytest.mark.parametrize(
    ("orders", "namespaces", "leases", "found"),
    [
        ([order()], [working(), namespace("team")], [lease()], []),
        ([], [working(), namespace("team")], [lease()], ["Namespace"]),
        ([order(uid="2")], [working()], [], ["Namespace"]),
        ([order("other")], [working()], [], ["Namespace"]),
        ([order()], [working(uid="")], [], []),  # of another controller
        ([], [working(uid="")], [], ["Namespace"]),
        ([], [namespace("team"), namespace("default")], [lease()], []),  # the Lease of a deleted order stays
        ([], [working()], [lease()], ["Namespace"]),
        ([], [namespace("default")], [lease()], ["Lease"]),
        ([], [], [lease("not-of-ours")], []),
    ],
)
def test_what_has_no_order_is_an_orphan(orders: list[Object], namespaces: list[Object], leases: list[Object], found: list[str]) -> None:
    assert [orphan.kind for orphan in find_orphans(NAMES, orders, namespaces, leases)] == found


@pytest.mark.parametrize(
    ("orders", "namespaces", "found"),
    [
        ([order()], [working()], []),
        ([order()], [], []),
        ([], [working()], ["Namespace"]),  # the cluster may still use them
        ([order(uid="2")], [working()], ["Namespace"]),  # a restored order that has not adopted its cluster yet
        ([], [], ["AddressPool", "ConfigMap"]),
        ([order(uid="2")], [], ["AddressPool", "ConfigMap"]),
    ],
)
def test_addresses_and_hosts_are_orphans_once_order_and_working_namespace_are_gone(
    orders: list[Object], namespaces: list[Object], found: list[str]
) -> None:
    owner = {"namespace": "team", "name": "demo", "uid": "1", "token": 1, "orphanedSince": "2026-01-02T03:04:05Z"}
    pool = {"kind": "AddressPool", "metadata": {"name": "vlans"}, "status": {"allocations": {"1": {**owner, "values": ["100"]}}}}
    without_order = {"namespace": "team", "name": "lab", "token": 1, "hosts": {"fc430": ["b"]}}
    of_another_engine = {**owner, "uid": "3", "group": "osac.openshift.io", "hosts": {"fc430": ["c"]}}
    claims = {"1": {**owner, "group": NAMES.group, "hosts": {"fc430": ["a"]}}, "team.lab": without_order, "3": of_another_engine}
    record = {"kind": "ConfigMap", "metadata": {"name": "r"}, "data": {key: json.dumps(claim) for key, claim in claims.items()}}
    orphans = find_orphans(NAMES, orders, namespaces, [], [pool], [record])
    assert [orphan.kind for orphan in orphans] == found
    for orphan in orphans:
        assert (orphan.namespace, orphan.name, orphan.uid) == ("team", "demo", "1")
        assert bool(orphan.since) == (orphan.kind != "Namespace")
