"""The stand-in binds Agents to NodePools as HyperShift does: only those that match, and the nodes follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until

from ..support.agents import CLASS, Agents, agents_on, hosts
from ..support.samples import FAULT, hosted_cluster, node_pool, pull_secret


@pytest.fixture
def agents(quick_hub: Access) -> Iterator[Agents]:
    with agents_on(quick_hub) as found:
        yield found


def apply(agents: Agents, replicas: int, selector: dict[str, str] | None = None, agent_namespace: str = "") -> None:
    """A cluster in the namespace of the Agents, and a NodePool with this selector."""
    cluster, pool = hosted_cluster(agents.namespace), node_pool(agents.namespace, replicas=replicas)
    cluster["spec"]["platform"] = {"type": "Agent", "agent": {"agentNamespace": agent_namespace or agents.namespace}}
    pool["spec"]["platform"] = {"type": "Agent", "agent": {"agentLabelSelector": {"matchLabels": selector}} if selector else {}}
    agents.hub.apply(pull_secret(agents.namespace), cluster, pool)


def approve(agents: Agents, *names: str) -> None:
    for name in names:
        agents.patch(name, {"spec": {"approved": True}})


def until_bound(agents: Agents, *names: str) -> None:
    def settled() -> bool:
        pool: Any = agents.hub.get("nodepool", "workers", "-n", agents.namespace)
        return agents.bound() == [*names] and pool.get("status", {}).get("replicas", 0) == len(names)

    until(settled, f"{names} are bound, and are the nodes")


def test_a_node_pool_takes_only_approved_agents_that_match_and_has_as_many_nodes(agents: Agents) -> None:
    agents.discover(hosts(3) | hosts(2, "fc640", start="big"))
    approve(agents, "host-000", "host-002", "big-000")
    apply(agents, 3, {CLASS: "fc430"})
    until_bound(agents, "host-000", "host-002")
    assert "2 of 3" in str(agents.hub.get("nodepool", "workers", "-n", agents.namespace)["status"]["conditions"])
    approve(agents, "host-001")
    until_bound(agents, "host-000", "host-001", "host-002")
    agents.hub.kubectl("scale", "nodepool/workers", "-n", agents.namespace, "--replicas=1")
    until_bound(agents, "host-000")
    agents.hub.kubectl("delete", "nodepool/workers", "-n", agents.namespace)
    assert agents.bound() == [], "a deleted NodePool has given up its hosts"


def test_without_a_selector_it_takes_any_that_is_connected(agents: Agents) -> None:
    agents.discover(hosts(1) | hosts(1, "fc640", start="big"))
    agents.patch("host-000", {"metadata": {"annotations": {FAULT: "disconnected"}}, "spec": {"approved": True}})
    until(lambda: "'status': 'False', 'type': 'Connected'" in str(agents.get("host-000")["status"]), "it is disconnected")
    approve(agents, "big-000")
    apply(agents, 2)
    until_bound(agents, "big-000")


def test_without_agents_it_has_all_its_nodes(agents: Agents) -> None:
    apply(agents, 2, agent_namespace="default")
    until(lambda: agents.hub.get("nodepool", "workers", "-n", agents.namespace).get("status", {}).get("replicas") == 2, "it has nodes")
