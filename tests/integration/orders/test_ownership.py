"""One tenant's order never gets, changes or deletes what belongs to another order, whatever tenants do in their own namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import API_VERSION, SITE_NAMESPACE, lease_name

from ..support.orders import Orders

LARGEST = 2**31 - 1


def namespace_object(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def forget(orders: Orders, name: str = "demo") -> None:
    """Delete an order around the controller, as a tenant can who may change finalizers. Its cluster stays."""
    orders.patch({"metadata": {"finalizers": None}}, name)
    orders.ask_to_delete(name)
    assert orders.get(name) is None


def test_orders_whose_names_join_to_the_same_text_have_a_cluster_each(orders: Orders, tmp_path: Path) -> None:
    other_namespace = orders.kube.create(namespace_object(f"{orders.namespace}-b"))
    other = Orders(orders.hub, other_namespace["metadata"]["name"], tmp_path)
    try:
        orders.apply("b-c", nodes={"fc430": 1})
        other.apply("c", nodes={"fc430": 2})
        orders.provision("b-c")
        other.provision("c")
        assert (orders.pools("b-c"), other.pools("c")) == ({"fc430": 1}, {"fc430": 2})
        orders.remove("b-c")
        assert other.hosted_cluster("c")
        other.remove("c")
    finally:
        orders.kube.delete(other_namespace)


def test_a_new_order_inherits_nothing_of_an_earlier_one_with_its_name(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    earlier = orders.get()["metadata"]["uid"]
    forget(orders)
    orders.apply(nodes={"fc430": 3})
    run = orders.run("provision", "demo").complete()
    assert f"belongs to an earlier ClusterOrder {orders.namespace}/demo with the uid {earlier}" in run.messages
    orders.sync("demo")
    assert (orders.status()["phase"], orders.status()["failure"]["reason"]) == ("Failed", "NamespaceTaken")
    assert orders.condition("NamespaceCreated")["reason"] == "NamespaceTaken"
    assert orders.condition("ControlPlaneCreated")["status"] == "False"
    assert orders.pools() == {"fc430": 1}, "the cluster of the earlier order is as it was"
    orders.remove()
    assert orders.get() is None and orders.hosted_cluster(), "the deletion of the new order deletes nothing of the earlier one"
    left = orders.kube.get("v1", "Namespace", orders.working())
    orders.kube.delete(orders.kube.patch(left, {"metadata": {"finalizers": None}}))


@pytest.mark.parametrize("labels", [{}, {"cloudkit.openshift.io/clusterorder": "demo", "cloudkit.openshift.io/clusterorder-uid": "x"}])
def test_a_namespace_that_a_tenant_created_first_is_not_adopted(orders: Orders, labels: dict[str, str]) -> None:
    taken = orders.kube.create(namespace_object(orders.working(), **labels))
    try:
        orders.apply(nodes={"fc430": 1})
        assert "does not belong to ClusterOrder" in orders.run("provision", "demo").complete().messages
        assert orders.objects() == [] and orders.status()["failure"]["retryable"]
        found = orders.kube.get("v1", "Namespace", orders.working())["metadata"]
        assert found["uid"] == taken["metadata"]["uid"] and "finalizers" not in found
    finally:
        orders.kube.delete(taken)


def test_hypershift_gets_no_control_plane_namespace_that_exists_already(orders: Orders) -> None:
    taken = orders.kube.create(namespace_object(f"{orders.working()}-demo"))
    try:
        orders.apply(nodes={"fc430": 1})
        run = orders.run("provision", "demo").complete()
        assert f"The namespace {orders.working()}-demo, in which HyperShift would create the control plane, exists" in run.messages
        assert orders.hosted_cluster() is None
    finally:
        orders.kube.delete(taken)


@pytest.mark.parametrize("state", ["manual", "unmanaged"])
def test_an_annotation_does_not_keep_a_cluster_from_being_deleted(orders: Orders, state: str) -> None:
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    orders.patch({"metadata": {"annotations": {f"{orders.group}/management-state": state}}})
    orders.ask_to_delete()
    orders.remove()
    assert orders.is_deleted()


# Locks


def test_leases_in_the_namespace_of_a_tenant_mean_nothing(orders: Orders) -> None:
    spec = {"holderIdentity": "tenant", "leaseDurationSeconds": LARGEST, "renewTime": "2199-01-01T00:00:00.000000Z"}
    for name in ("cluster-demo-lock", lease_name(orders.namespace, "demo")):
        metadata = {"name": name, "namespace": orders.namespace, "labels": {"openfleet.clusters/lock": "order"}}
        orders.kube.create({"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec})
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    assert orders.status()["phase"] == "Ready"


@pytest.mark.parametrize(
    "junk",
    [
        {"holderIdentity": "x", "renewTime": "9999-12-31T23:59:59.999999Z", "leaseDurationSeconds": LARGEST},
        {"holderIdentity": "x", "renewTime": "0001-01-01T00:00:00.000000Z", "leaseTransitions": LARGEST},
        {"holderIdentity": "x", "acquireTime": "0000-01-01T00:00:00.000000Z"},
        {"leaseTransitions": LARGEST - 1},
    ],
)
def test_what_a_lease_says_fails_at_most_its_own_order(orders: Orders, junk: Object) -> None:
    for name in ("demo", "other"):
        orders.apply(name, nodes={"fc430": 1})
    orders.provision("demo")
    orders.patch_lease(junk)
    assert not orders.sync().get("failed")
    orders.provision("other")
    assert orders.status("other")["phase"] == "Ready"
    run = orders.run("provision").complete()
    assert not [result for result in run.results if result.get("failed")], run.messages


def test_a_site_without_its_namespace_gets_one_message_with_what_to_do(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    run = orders.run("provision", "demo", site_namespace="absent")
    assert "The namespace absent for the locks of orders does not exist: create it, or set site_namespace" in run.messages
    with fresh_namespace(orders.hub) as site:
        orders.run("provision", "demo", site_namespace=site).complete()
        assert orders.kube.find(API_VERSION, "Lease", lease_name(orders.namespace, "demo"), site)
        assert orders.kube.find(API_VERSION, "Lease", lease_name(orders.namespace, "demo"), SITE_NAMESPACE) is None
