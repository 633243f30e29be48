"""AddressPools on a real API server: what a cluster has belongs to no other one, and is returned when its order is deleted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import address_pools
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.address_pools import (
    API_VERSION,
    KIND,
    AddressPools,
    PoolExhausted,
    PoolRequest,
    allocations_of,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_owner import ClusterOwner
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE, LockLost
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.orphans import read_orphans
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.sweep import Sweep

from ..support.actions import answer
from ..support.orders import Orders
from ..support.playbooks import Answer

NAMES = Names()
INSTALL = """
- name: Allocate the network of the cluster
  openfleet.clusters.cluster_addresses:
    pools: {pools}
    disjoint_from: ["{{{{ template_parameters.pod_network_cidr }}}}"]
- name: Install
  ansible.builtin.include_role:
    name: openfleet.clusters.ocp_4_17_small
    tasks_from: install
"""


class Pools:
    """The pools of a test."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._made: list[Object] = []

    def create(self, name: str, *ranges: str, type: str = "VLAN", **spec: Any) -> None:  # noqa: A002
        metadata = {"name": name, "namespace": SITE_NAMESPACE}
        pool = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"type": type, "ranges": list(ranges)} | spec}
        self._made.append(self._kube.create(pool))

    def allocated(self, name: str) -> list[str]:
        """All entries that clusters have."""
        return [value for allocation in allocations_of(self.get(name)).values() for value in allocation.values]

    def get(self, name: str) -> Object:
        return self._kube.get(API_VERSION, KIND, name, SITE_NAMESPACE)

    def delete(self) -> None:
        for pool in self._made:
            self._kube.delete(pool)


@pytest.fixture
def pools(quick_hub: Access) -> Iterator[Pools]:
    made = Pools(quick_hub.kube)
    yield made
    made.delete()


@pytest.fixture
def of_cluster(quick_hub: Access, orders: Orders) -> Callable[..., Answer]:
    """The task for a cluster without an order."""

    def run(name: str, state: str = "present", **arguments: Any) -> Answer:
        cluster = {"name": name, "namespace": orders.namespace, "provider": "hypershift"}
        return answer("cluster_addresses", kubeconfig=str(quick_hub.kubeconfig), state=state, **cluster, **arguments)

    return run


def test_a_cluster_has_what_it_needs_of_all_pools_and_a_second_task_changes_nothing(pools: Pools, of_cluster: Any) -> None:
    pools.create("vlans", "100-101")
    pools.create("networks", "10.20.0.0/22", type="Network", prefixLength=24)
    wanted = {"pools": [{"name": "vlans"}, {"name": "networks", "count": 2}], "disjoint_from": ["10.20.1.0/25"]}
    predicted = of_cluster("one", check=True, **wanted)
    assert predicted.changed and pools.allocated("vlans") == []
    first = of_cluster("one", **wanted)
    assert first.result["addresses"] == predicted.result["addresses"] == {"vlans": ["100"], "networks": ["10.20.0.0/24", "10.20.2.0/24"]}
    assert "10.20.2.0/24" in first.result["diff"][1]["after"]
    second = of_cluster("one", **wanted)
    assert not second.changed and second.result["addresses"] == first.result["addresses"]
    assert pools.get("networks")["status"] | {"allocations": None} == {"allocated": 2, "free": 2, "allocations": None}
    released = of_cluster("one", "absent")
    assert {item["action"] for item in released.result["objects"]} == {"deleted"} and pools.allocated("networks") == []
    assert not of_cluster("one", "absent").changed


def test_nothing_of_any_pool_is_allocated_where_one_has_too_little(pools: Pools, of_cluster: Any) -> None:
    pools.create("vlans", "100")
    pools.create("addresses", "192.0.2.1-192.0.2.4", type="Address")
    assert not of_cluster("one", pools=[{"name": "vlans"}]).failed
    refused = of_cluster("two", pools=[{"name": "addresses"}, {"name": "vlans"}])
    assert refused.result["reason"] == "PoolExhausted" and refused.result["retryable"]
    assert "The AddressPool vlans has 0 of 1 VLANs free, and the cluster needs 1" in refused.message
    assert pools.allocated("addresses") == [] and pools.allocated("vlans") == ["100"]


def test_what_another_order_took_between_two_pools_is_noticed_and_the_first_pool_is_released(
    pools: Pools, quick_hub: Access, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools.create("vlans", "100")
    pools.create("addresses", "192.0.2.1", type="Address")
    first, second = (manager(quick_hub.kube, orders.namespace, name) for name in ("one", "two"))
    checked: list[str] = []
    original = AddressPools._swap  # noqa: SLF001 - between two pools

    def swap(self: AddressPools, owner: ClusterOwner, name: str, wanted: Any) -> Any:
        if not checked:
            checked.append(name)
            second[1].allocate(second[0], [PoolRequest("vlans")])
        return original(self, owner, name, wanted)

    monkeypatch.setattr(AddressPools, "_swap", swap)
    with pytest.raises(PoolExhausted):
        first[1].allocate(first[0], [PoolRequest("addresses"), PoolRequest("vlans")])
    assert pools.allocated("addresses") == [] and pools.allocated("vlans") == ["100"]


@pytest.mark.parametrize(
    ("wanted", "reason", "message"),
    [
        ([{"name": "nope"}], "PoolNotFound", "The site has no AddressPool nope in its namespace openfleet-system"),
        ([{"name": "broken"}], "InvalidPool", "AddressPool broken of the site cannot be used: a range of VLANs must be"),
        (
            [{"name": "east"}],
            "InvalidPool",
            "AddressPools east and west of the site cannot be used: their ranges 10.0.0.0/8 and 10.1.2.3 overlap",
        ),
        ([{"name": "broken", "count": 0}], "Invalid", "count of the pool broken must be between 1 and 256"),
    ],
)
def test_a_pool_that_cannot_be_used_is_named(pools: Pools, of_cluster: Any, wanted: Any, reason: str, message: str) -> None:
    pools.create("broken", "abc")
    pools.create("east", "10.0.0.0/8", type="Network", prefixLength=24)
    pools.create("west", "10.1.2.3", type="Address")
    refused = of_cluster("one", pools=wanted)
    assert refused.result["reason"] == reason and message in refused.message


def manager(kube: Kube, namespace: str, name: str, uid: str = "") -> tuple[ClusterOwner, AddressPools]:
    """The pools for a cluster whose lock is held."""
    lock = lease.acquire(kube, namespace, name, "test", duration=3600)
    return ClusterOwner(namespace, name, uid), AddressPools(kube, SITE_NAMESPACE, FencedWriter(kube, lock, NAMES.lock_token_annotation))


def test_clusters_that_allocate_at_once_never_share_an_entry(pools: Pools, quick_hub: Access, orders: Orders, soak: int) -> None:
    """24 clusters for 20 networks and 48 addresses: 20 have one network and two addresses each, and 4 have nothing."""
    pools.create("networks", "10.64.0.0/20", "10.65.0.0/22", type="Network", prefixLength=24)
    pools.create("addresses", "198.51.100.1-198.51.100.48", type="Address")
    clusters = [manager(quick_hub.kube, orders.namespace, f"at-once-{number}", f"uid-{number}") for number in range(24)]

    def allocate(cluster: tuple[ClusterOwner, AddressPools]) -> list[str] | None:
        owner, available = cluster
        try:
            changes = available.allocate(owner, [PoolRequest("addresses", 2), PoolRequest("networks")])
        except PoolExhausted:
            return None
        return [value for change in changes for value in change.after]

    for _round in range(soak):
        with ThreadPoolExecutor(8) as threads:
            found = [values for values in threads.map(allocate, clusters) if values]
        values = list(itertools.chain.from_iterable(found))
        assert len(found) == 20 and len(values) == 60 == len(set(values))
        assert sorted(pools.allocated("networks") + pools.allocated("addresses")) == sorted(values)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda cluster: cluster[1].release(cluster[0]), clusters))
        assert pools.allocated("networks") == pools.allocated("addresses") == []
        assert pools.get("networks")["status"]["free"] == 20


def test_a_run_that_lost_its_lock_changes_no_pool(pools: Pools, quick_hub: Access, orders: Orders) -> None:
    pools.create("vlans", "100-103")
    owner, late = manager(quick_hub.kube, orders.namespace, "late")
    late.allocate(owner, [PoolRequest("vlans")])
    lease.release(quick_hub.kube, lease.acquire(quick_hub.kube, orders.namespace, "late", "test"))
    _owner, current = manager(quick_hub.kube, orders.namespace, "late")
    with pytest.raises(LockLost):
        late.allocate(owner, [PoolRequest("vlans", 2)])
    current.allocate(owner, [PoolRequest("vlans", 3)])
    with pytest.raises(LockLost):
        late.release(owner)
    assert pools.allocated("vlans") == ["100", "101", "102"]


def test_a_write_to_a_pool_that_changed_since_it_was_read_is_refused(pools: Pools, quick_hub: Access, orders: Orders) -> None:
    pools.create("vlans", "100-103")
    (owner, first), (other, second) = (manager(quick_hub.kube, orders.namespace, name) for name in ("first", "second"))
    read = pools.get("vlans")
    second.allocate(other, [PoolRequest("vlans")])
    with pytest.raises(Conflict):
        first._write(read, {owner.key: address_pools.Allocation(owner, ("100",))})  # noqa: SLF001 - a late write
    assert pools.allocated("vlans") == ["100"] and list(allocations_of(pools.get("vlans"))) == [other.key]


def test_what_a_cluster_kept_of_a_removed_range_is_not_allocated_from_another_pool(
    pools: Pools, quick_hub: Access, of_cluster: Any
) -> None:
    pools.create("old", "192.0.2.1-192.0.2.9", type="Address")
    of_cluster("one", pools=[{"name": "old"}])
    quick_hub.kube.patch(pools.get("old"), {"spec": {"ranges": ["192.0.2.9"]}})
    pools.create("new", "192.0.2.1-192.0.2.8", type="Address")
    assert of_cluster("two", pools=[{"name": "new"}]).result["addresses"] == {"new": ["192.0.2.2"]}


def test_a_mistake_of_the_site_does_not_keep_what_a_cluster_had(pools: Pools, quick_hub: Access, of_cluster: Any) -> None:
    pools.create("vlans", "100-103")
    of_cluster("one", pools=[{"name": "vlans"}])
    quick_hub.kube.patch(pools.get("vlans"), {"spec": {"ranges": ["abc"]}})
    assert of_cluster("one", "absent").changed and pools.allocated("vlans") == []


def template(orders: Orders, *names: str) -> str:
    return orders.template("networked", install=INSTALL.format(pools=json.dumps([{"name": name} for name in names])))


def test_an_order_keeps_its_addresses_until_its_cluster_is_gone(pools: Pools, orders: Orders) -> None:
    pools.create("vlans", "100-103")
    networked = template(orders, "vlans")
    orders.apply(template=networked, nodes={"fc430": 1})
    orders.provision()
    (allocation,) = allocations_of(pools.get("vlans")).values()
    assert allocation.owner == ClusterOwner(orders.namespace, "demo", orders.get()["metadata"]["uid"], orders.group)
    assert allocation.token and allocation.values == ("100",)
    orders.run("provision", "demo").complete().successful()
    assert pools.allocated("vlans") == ["100"]
    orders.hold_cluster()
    orders.remove(wait=0)
    assert pools.allocated("vlans") == ["100"]
    orders.release_cluster()
    until(lambda: orders.remove(wait=0) and orders.is_deleted(), "the order is deleted")
    assert pools.allocated("vlans") == []


@pytest.mark.parametrize(
    ("names", "parameters", "reason", "message"),
    [
        (["empty"], {}, "PoolExhausted", "The AddressPool empty has 0 of 1 VLANs free, and the cluster needs 1"),
        (["vlans", "nope"], {}, "PoolNotFound", "The site has no AddressPool nope"),
        (["vlans"], {"pod_network_cidr": "10.132.0.0/33"}, "InvalidOrder", "parameter pod_network_cidr must be an address range in CIDR"),
        (["vlans"], {"pod_network_cidr": "172.16.0.0/12"}, "InvalidOrder", "and parameter service_network_cidr 172.31.0.0/16 overlap"),
        (["vlans"], {"pod_network_cidr": "fd01::/48"}, "InvalidOrder", "use the same address family for all"),
    ],
)
def test_what_cannot_be_has_one_message_on_the_order_and_leaves_nothing(
    pools: Pools, orders: Orders, names: list[str], parameters: dict[str, str], reason: str, message: str
) -> None:
    pools.create("vlans", "100-103")
    pools.create("empty", "99")
    owner, taken = manager(orders.kube, orders.namespace, "taken")
    taken.allocate(owner, [PoolRequest("empty")])
    orders.apply(template=template(orders, *names), nodes={"fc430": 1}, **parameters)
    orders.run("provision", "demo").complete()
    failure = orders.status()["failure"]
    assert failure["reason"] == reason and message in failure["message"]
    assert orders.hosted_cluster() is None and pools.allocated("vlans") == []


def test_the_sweep_reports_and_releases_what_a_deleted_order_had(pools: Pools, orders: Orders) -> None:
    pools.create("vlans", "100-103")
    owner, kept = manager(orders.kube, orders.namespace, "kept")
    kept.allocate(owner, [PoolRequest("vlans")])  # a cluster without an order
    gone, available = manager(orders.kube, orders.namespace, "gone", "uid-of-the-deleted")
    available.allocate(gone, [PoolRequest("vlans")])

    def sweep(grace: timedelta | None) -> list[str]:
        found = [orphan for orphan in read_orphans(orders.kube, NAMES) if orphan.namespace == orders.namespace and orphan.kind == KIND]
        return [orphan.uid for orphan in Sweep(Run(orders.kube, NAMES), grace).sweep(found)]

    for grace in (None, timedelta(days=1)):
        assert sweep(grace) == [gone.uid]
        assert sorted(pools.allocated("vlans")) == ["100", "101"]
    assert allocations_of(pools.get("vlans"))[gone.uid].orphaned_since
    assert sweep(timedelta(0)) == [gone.uid]
    assert pools.allocated("vlans") == ["100"] and sweep(timedelta(0)) == []
