"""What a tenant leaves on the hub who deletes an order around the controller: it is reported, and removed where the site says so."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import orphan_search
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.orphans import Orphan, read_orphans
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.sweep import Sweep

from ..support.in_process import act
from ..support.orders import Orders
from ..support.restored import adopt
from ..support.sources import Source

NAMES = Names()


def orphans(orders: Orders) -> list[Orphan]:
    """Those of this test."""
    return [orphan for orphan in read_orphans(orders.kube, NAMES) if orphan.namespace == orders.namespace]


def sweep(orders: Orders, grace: timedelta | None) -> list[str]:
    return [orphan.kind for orphan in Sweep(Run(orders.kube, NAMES), grace).sweep(orphans(orders))]


def abandon(orders: Orders) -> str:
    """Create a cluster, and delete its order around the controller. Returns the uid of the order."""
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    uid = str(orders.get()["metadata"]["uid"])
    orders.patch({"metadata": {"finalizers": None}})
    orders.ask_to_delete()
    assert orders.get() is None
    return uid


def events_about(orders: Orders, name: str) -> list[str]:
    found = orders.kube.list_all("v1", "Event", "default", field_selector=f"involvedObject.name={name}")
    return [item["reason"] for item in found]


def test_what_an_order_left_behind_is_reported_and_removed_only_after_the_grace_time(orders: Orders) -> None:
    assert sweep(orders, timedelta(0)) == []
    uid = abandon(orders)
    answer = act("cluster_order_info", {"kubeconfig": str(orders.hub.kubeconfig), "orphans": True, "namespace": orders.namespace})
    order = {"namespace": orders.namespace, "name": "demo", "uid": uid}
    assert {"kind": "Namespace", "name": orders.working(), "order": order, "since": None} in answer["orphans"]

    for grace in (None, timedelta(days=1)):
        assert sweep(orders, grace) == ["Namespace"]
        assert orders.hosted_cluster() and "deletionTimestamp" not in orders.hosted_cluster()["metadata"]
    assert events_about(orders, orders.working()) == ["OrderNotFound"]
    assert orphans(orders)[0].since

    orders.hold_cluster()
    for _each in range(2):  # the namespace stays for as long as the cluster is there
        assert sweep(orders, timedelta(0)) == ["Namespace"]
        assert orders.hosted_cluster()["metadata"]["deletionTimestamp"]
        assert "deletionTimestamp" not in orders.kube.get("v1", "Namespace", orders.working())["metadata"]
    orders.release_cluster()
    until(lambda: not sweep(orders, timedelta(0)), "the namespace is deleted")
    assert orders.kube.find("v1", "Namespace", orders.working()) is None
    assert "holderIdentity" not in orders.lease()


def test_the_cluster_of_an_order_that_was_adopted_since_the_list_stays(orders: Orders) -> None:
    """The list is from a cache, and the sweep waits for locks: what it found may have an order by now."""
    abandon(orders)
    assert sweep(orders, timedelta(0)) == ["Namespace"]
    stale = orphans(orders)
    assert stale[0].since
    orders.apply(nodes={"fc430": 1})
    adopt(orders)
    Sweep(Run(orders.kube, NAMES), timedelta(0)).sweep(stale)
    namespace = orders.kube.get("v1", "Namespace", orders.working())
    assert "deletionTimestamp" not in namespace["metadata"] | orders.hosted_cluster()["metadata"]
    assert "holderIdentity" not in orders.lease() and orphans(orders) == []
    orders.provision()


def test_the_grace_time_of_an_order_that_was_lost_again_begins_again(orders: Orders) -> None:
    abandon(orders)
    sweep(orders, timedelta(0))
    stale = orphans(orders)
    orders.kube.patch(stale[0].item, {"metadata": {"annotations": {NAMES.orphaned_annotation: None}}})
    Sweep(Run(orders.kube, NAMES), timedelta(0)).sweep(stale)
    assert "deletionTimestamp" not in orders.hosted_cluster()["metadata"]


def test_a_new_order_of_the_same_name_is_ready_once_the_sweep_has_removed_what_the_first_left(orders: Orders) -> None:
    abandon(orders)
    orders.apply(nodes={"fc430": 2})
    assert sweep(orders, timedelta(0)) == ["Namespace"]
    until(lambda: not sweep(orders, timedelta(0)), "the namespace of the first is deleted")
    assert orders.get() and not orders.get()["metadata"].get("deletionTimestamp")
    orders.provision()
    assert sweep(orders, timedelta(0)) == []
    assert orders.pools() == {"fc430": 2}


def test_the_lease_of_an_order_is_removed_with_its_namespace_and_not_before(orders: Orders, tmp_path: Path) -> None:
    with fresh_namespace(orders.hub) as namespace:
        other = Orders(orders.hub, namespace, tmp_path)
        other.apply(nodes={"fc430": 1})
        other.provision()
        other.remove()
        assert other.lease() and sweep(other, timedelta(0)) == []
    until(lambda: orders.kube.find("v1", "Namespace", namespace) is None, "the tenant's namespace is deleted")
    assert sweep(other, timedelta(0)) == ["Lease"]
    assert other.lease(), "its grace time has just begun"
    assert sweep(other, timedelta(0)) == ["Lease"]
    assert sweep(other, timedelta(0)) == [] and not other.lease()


def test_a_namespace_that_does_not_name_its_provider_is_not_removed(orders: Orders) -> None:
    labels = {
        f"{orders.group}/clusterorder{part}": value for part, value in {"": "demo", "-namespace": orders.namespace, "-uid": "1"}.items()
    }
    left: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": orders.working(), "labels": labels}}
    orders.kube.create(left)
    for _each in range(3):
        assert sweep(orders, timedelta(0)) == ["Namespace"]


def test_the_event_source_counts_and_removes_what_orders_left_behind(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_search, "SWEEP_SECONDS", 0.2)
    abandon(orders)
    with Source(orders).running() as source:
        until(lambda: source.state().orphans.get("Namespace"), "it is counted")
        assert orders.hosted_cluster()
    with Source(orders, remove_orphans_after=1).running() as source:
        until(lambda: orders.kube.find("v1", "Namespace", orders.working()) is None, "it is removed")
        until(lambda: source.state().orphans["Namespace"] == 0, "nothing is counted")
