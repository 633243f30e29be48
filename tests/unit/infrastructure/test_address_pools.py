"""What a cluster has of an AddressPool, computed from the pool as it is stored."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.address_pools import (
    AddressPool,
    InvalidPool,
    PoolExhausted,
    PoolRequest,
    orphaned,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_owner import ClusterOwner
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid

DEMO = ClusterOwner("team", "demo", "1")


def pool(*ranges: str, type: str = "VLAN", allocated: dict[str, list[str]] | None = None, **spec: Any) -> Object:  # noqa: A002
    allocations = {
        uid: {"namespace": "team", "name": f"of-{uid}", "uid": uid, "token": 1, "values": v} for uid, v in (allocated or {}).items()
    }
    spec |= {"type": type, "ranges": list(ranges)}
    return {"metadata": {"name": "pool", "namespace": "site"}, "spec": spec, "status": {"allocations": allocations}}


def chosen(item: Object, count: int = 1, *disjoint_from: str) -> list[str]:
    return list(AddressPool.from_object(item).choose(DEMO, PoolRequest.of("pool", count, disjoint_from)))


@pytest.mark.parametrize(
    ("item", "count", "values"),
    [
        (pool("100-103"), 1, ["100"]),
        (pool("100-103"), 3, ["100", "101", "102"]),
        (pool("100-103", allocated={"2": ["100", "102"]}), 2, ["101", "103"]),
        (pool("100", "200-201", allocated={"2": ["100"]}), 2, ["200", "201"]),
        (pool("100-103", allocated={"1": ["102"], "2": ["100"]}), 1, ["102"]),  # a cluster keeps what it has
        (pool("100-103", allocated={"1": ["102"], "2": ["100"]}), 3, ["102", "101", "103"]),
        (pool("100-103", allocated={"1": ["102", "103"]}), 1, ["102", "103"]),  # also what it no longer needs, until it is gone
        (pool("100-103", allocated={"1": ["900"]}), 1, ["900"]),  # also what has left the ranges
    ],
)
def test_a_cluster_has_the_first_free_entries_and_keeps_them(item: Object, count: int, values: list[str]) -> None:
    assert chosen(item, count) == values


@pytest.mark.parametrize(
    ("item", "count", "message"),
    [
        (pool("100-101", allocated={"2": ["100", "101"]}), 1, "pool has 0 of 2 VLANs free, and the cluster needs 1"),
        (pool("100-101", allocated={"2": ["100"]}), 2, "has 1 of 2 VLANs free, and the cluster needs 2"),
        (pool("192.0.2.1", type="Address"), 2, "has 1 of 1 addresses free"),
        (pool("10.0.0.0/24", type="Network", prefixLength=25), 3, "has 2 of 2 networks free"),
    ],
)
def test_a_shortage_says_how_much_is_free_and_needed(item: Object, count: int, message: str) -> None:
    with pytest.raises(PoolExhausted, match=message):
        chosen(item, count)


def test_no_network_overlaps_with_the_others_of_the_cluster() -> None:
    networks = pool("10.0.0.0/22", type="Network", prefixLength=24)
    assert chosen(networks, 1, "10.0.0.0/23") == ["10.0.2.0/24"]
    with pytest.raises(PoolExhausted, match=r"free that does not overlap with 10\.0\.0\.0/8, and"):
        chosen(networks, 1, "10.0.0.0/8")
    with pytest.raises(Invalid, match=r"10\.0\.1\.0/24, which the cluster has .* overlaps with its network 10\.0\.0\.0/8"):
        chosen(pool("10.0.0.0/22", type="Network", prefixLength=24, allocated={"1": ["10.0.1.0/24"]}), 1, "10.0.0.0/8")
    assert chosen(pool("100-101"), 1, "10.0.0.0/8") == ["100"]


@pytest.mark.parametrize("ranges", [("100-199", "150"), ("1-4095",)])
def test_a_pool_that_the_site_has_to_correct_is_named(ranges: tuple[str, ...]) -> None:
    with pytest.raises(InvalidPool, match="AddressPool pool of the site cannot be used"):
        AddressPool.from_object(pool(*ranges))


@pytest.mark.parametrize("count", [0, -1, 257])
def test_a_count_out_of_bounds_is_refused(count: int) -> None:
    with pytest.raises(Invalid, match="count of the pool pool must be between 1 and 256"):
        PoolRequest.of("pool", count, [])


def test_allocations_of_orders_that_are_gone_are_found_and_those_without_an_order_are_not() -> None:
    item = pool("100-103", allocated={"1": ["100"], "2": ["101"]})
    item["status"]["allocations"]["clusters.lab"] = {"namespace": "clusters", "name": "lab", "token": 1, "values": ["102"]}
    found = orphaned([item], "cloudkit.openshift.io", {"1"})
    assert [(allocation.owner.uid, allocation.values) for _item, allocation in found] == [("2", ("101",))]
    item["status"]["allocations"]["2"]["group"] = "osac.openshift.io"
    assert orphaned([item], "cloudkit.openshift.io", {"1"}) == [], "of orders that another engine runs"
