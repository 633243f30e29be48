"""Machine pools of OpenShift Cluster Manager: sizes, names, and the node sets they come to. Tables of cases, without the service."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest, NodeSet
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.pools import (
    NAME_LIMIT,
    node_sets,
    pool_name,
    rounded,
    wanted_pools,
)

LABEL = "example.com/class"


@pytest.mark.parametrize(("nodes", "in_zones"), [(0, 0), (1, 3), (2, 3), (3, 3), (4, 6), (6, 6), (100, 102)])
def test_nodes_fill_all_zones(nodes: int, in_zones: int) -> None:
    assert rounded(nodes, True) == in_zones
    assert rounded(nodes, False) == nodes


@pytest.mark.parametrize(
    ("resource_class", "name"),
    [("m5.xlarge", "m5-xlarge"), ("FC_430", "fc-430"), ("4x-large", "class-4x-large"), ("x" * 99, "x" * NAME_LIMIT)],
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
    ("pool", "requested", "multi_az", "wanted"),
    [
        (POOL, {}, False, [NodeSet("p", "m5", 3, 3)]),
        (POOL, {"m5": 3}, False, [NodeSet("p", "m5", 3, 3)]),
        (POOL, {"m5": 2}, False, [NodeSet("p", "m5", 3, 3)]),  # on its way, or changed by hand
        (POOL, {"m5": 2}, True, [NodeSet("p", "m5", 2, 2)]),  # the third fills up the zones
        (POOL, {"m5": 4}, True, [NodeSet("p", "m5", 3, 3)]),
        ({**POOL, "labels": {}}, {}, False, []),  # of no order
        ({**POOL, "autoscaling": {"min_replicas": 1, "max_replicas": 9}}, {}, False, [NodeSet("p", "m5", None, 1)]),
    ],
)
def test_node_sets_are_what_was_requested(pool: dict[str, Any], requested: dict[str, int], multi_az: bool, wanted: list[NodeSet]) -> None:
    assert list(node_sets([pool], LABEL, requested, multi_az, True)) == wanted
    assert all(node_set.ready == 0 for node_set in node_sets([pool], LABEL, requested, multi_az, False))


def test_pool_that_can_be_made_only_later_counts_as_requested_until_then() -> None:
    later = NodeSet("r5", "r5", 2, 0)
    assert later in node_sets([POOL], LABEL, {"m5": 3, "r5": 2}, False, False)
    assert later not in node_sets([POOL], LABEL, {"m5": 3, "r5": 2}, False, True), "now it is missing, and to be made"
