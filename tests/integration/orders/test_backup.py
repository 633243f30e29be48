"""Backup and restore of a hub: orders, Leases and working namespaces together, as a backup tool returns them."""

from __future__ import annotations

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import API_VERSION, SITE_NAMESPACE, lease_name

from ..support.in_process import act
from ..support.orders import CREATED, Orders

SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def saved(item: Object) -> Object:
    """An object as it is in a backup: without what the server sets, and without its status."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in SERVER_FIELDS}
    return {key: value for key, value in item.items() if key != "status"} | {"metadata": metadata}


def lose(orders: Orders) -> None:
    """Delete the order around the controller, which is how it looks after a restore: the cluster has the labels of another uid."""
    orders.patch({"metadata": {"finalizers": None}})
    orders.ask_to_delete("demo")
    assert orders.get() is None


def adopt(orders: Orders, check: bool = False) -> Object:
    selection = {"name": "demo", "namespace": orders.namespace}
    return act("cluster_order_adopt", {"kubeconfig": str(orders.hub.kubeconfig), **selection}, check=check)


def test_a_restored_order_adopts_its_cluster_and_goes_on(orders: Orders) -> None:
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    backup, lease = saved(orders.get()), lease_name(orders.namespace, "demo")
    saved_lease = saved(orders.kube.get(API_VERSION, "Lease", lease, SITE_NAMESPACE))
    cluster = orders.hosted_cluster()["metadata"]["uid"]
    lose(orders)
    orders.kube.delete({"apiVersion": API_VERSION, "kind": "Lease", "metadata": {"name": lease, "namespace": SITE_NAMESPACE}})

    orders.kube.create(saved_lease)
    orders.kube.create(backup)
    orders.run("provision", "demo").complete()
    assert orders.status()["failure"]["reason"] == "NamespaceTaken", "no run adopts it by itself"
    assert adopt(orders, check=True)["changed"]
    answer = adopt(orders)
    assert answer["changed"], "the check before changed nothing"
    assert answer["orders"] == [{"namespace": orders.namespace, "name": "demo", "changed": True}]
    assert not adopt(orders)["changed"]
    orders.provision()
    assert orders.status()["phase"] == "Ready" and orders.names() == CREATED
    assert orders.hosted_cluster()["metadata"]["uid"] == cluster, "it is the same cluster"
    orders.remove()
    assert orders.is_deleted()


def test_a_restore_without_leases_and_finalizers_is_no_obstacle(orders: Orders) -> None:
    """The objects carry the tokens of earlier runs, which a new Lease would have to reach first."""
    orders.apply(nodes={"fc430": 1})
    for _each in range(3):
        orders.provision()
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    backup = saved(orders.get())
    backup["metadata"].pop("finalizers")
    lose(orders)
    metadata = {"name": lease_name(orders.namespace, "demo"), "namespace": SITE_NAMESPACE}
    orders.kube.delete({"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata})
    orders.kube.create(backup)
    assert adopt(orders)["changed"]
    orders.provision()
    assert orders.status()["phase"] == "Ready"


def test_an_adoption_is_refused_where_it_would_take_what_is_not_of_the_order(orders: Orders) -> None:
    assert "Name the orders" in act("cluster_order_adopt", {"kubeconfig": str(orders.hub.kubeconfig)})["msg"]
    assert f"There is no ClusterOrder {orders.namespace}/demo" in adopt(orders)["msg"]
    orders.apply(nodes={"fc430": 1})
    assert "does not exist: restore it" in adopt(orders)["msg"]
    labels = {f"{orders.group}/clusterorder": "other", f"{orders.group}/clusterorder-namespace": orders.namespace}
    working = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": orders.working(), "labels": labels}}
    orders.kube.create(working)
    answer = adopt(orders)
    assert answer["failed"] and "was not created for ClusterOrder" in answer["msg"]
    assert "clusterorder-uid" not in str(orders.kube.get("v1", "Namespace", orders.working())["metadata"]["labels"])
    orders.kube.delete(working)
