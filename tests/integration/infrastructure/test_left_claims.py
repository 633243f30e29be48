"""Claims of hosts whose order has another uid after a restore, or no longer exists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import orphan_search
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import address_pools
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.agent_hosts import AgentInventory, AgentLabels
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.claim_record import ClaimRecord
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_owner import ClusterOwner
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.host_claims import HostClaims
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.listed_hosts import ListedInventory
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.orphans import read_orphans
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.sweep import Sweep

from ..support import mortal
from ..support.agents import CLAIM, CLAIMED_CLASS, CLASS, CLEANING, GROUP, Agents, hosts, site_agents
from ..support.in_process import act
from ..support.orders import HYPERSHIFT, Orders
from ..support.restored import adopt, restore
from ..support.sources import Source

NAMES, LABELS = Names(), AgentLabels(GROUP)
GONE = "uid-of-the-deleted"


@pytest.fixture
def agents(orders: Orders) -> Iterator[Agents]:
    with site_agents(orders.hub) as found:
        yield found


@pytest.fixture
def pool(orders: Orders) -> Iterator[Object]:
    metadata = {"name": f"left-{orders.namespace}", "namespace": SITE_NAMESPACE}
    spec = {"type": "VLAN", "ranges": ["100-199"]}
    made = orders.kube.create({"apiVersion": address_pools.API_VERSION, "kind": address_pools.KIND, "metadata": metadata, "spec": spec})
    yield made
    orders.kube.delete(made)


def test_a_restored_order_has_its_hosts_and_addresses_wherever_the_adoption_is_killed(
    orders: Orders, agents: Agents, pool: Object, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents.discover(hosts(3))
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    former, restored = restore(orders)
    allocation = {"namespace": orders.namespace, "name": "demo", "uid": former, "token": 1, "values": ["100"]}
    orders.kube.patch(pool, {"status": {"allocations": {former: allocation}}}, subresource="status")
    claimed = agents.claims()[former]

    predicted = adopt(orders, check=True)
    assert predicted["changed"] and former in str(predicted["diff"]) and agents.claims() == agents.recorded() == {former: claimed}
    monkeypatch.setattr(Kube, "connect", mortal.connect)
    deaths = 0
    while mortal.dies_at(deaths + 1, lambda: adopt(orders)):
        deaths += 1
        lease.release_held(orders.kube, orders.namespace, "demo", lease.read(orders.kube, orders.namespace, "demo").holder)
    assert deaths >= 6, "the lock, objects of the cluster, the claims, two hosts, the pool, the namespace"
    monkeypatch.undo()
    assert agents.claims() == agents.recorded() == {restored: claimed}
    allocations = address_pools.allocations_of(
        orders.kube.get(address_pools.API_VERSION, address_pools.KIND, pool["metadata"]["name"], SITE_NAMESPACE)
    )
    assert {uid: found.values for uid, found in allocations.items()} == {restored: ("100",)}
    assert {agent["metadata"]["labels"].get(f"{GROUP}/clusterorder-uid") for agent in agents.all()} == {restored, None}
    assert not adopt(orders)["changed"]

    orders.provision()
    (node_pool,) = orders.kube.list_all(HYPERSHIFT, "NodePool", orders.working())
    assert node_pool["spec"]["platform"]["agent"]["agentLabelSelector"]["matchLabels"] == {CLAIM: restored, CLAIMED_CLASS: "fc430"}
    assert agents.claims() == agents.recorded() == {restored: claimed} and agents.bound() == claimed, "the same hosts"


def claim_for_a_deleted_order(orders: Orders, agents: Agents) -> None:
    lock = lease.acquire(orders.kube, orders.namespace, "demo", "earlier")
    writer = FencedWriter(orders.kube, lock, NAMES.lock_token_annotation)
    owner = ClusterOwner(orders.namespace, "demo", GONE, GROUP)
    inventory = AgentInventory(orders.kube, agents.namespace, GONE, "demo", LABELS, {"fc430": {CLASS: "fc430"}}, {}, writer)
    HostClaims(ClaimRecord(orders.kube, SITE_NAMESPACE, inventory.name), inventory, owner, writer).present({"fc430": 2})
    lease.release(orders.kube, lock)


def sweep(orders: Orders, grace: timedelta | None) -> list[str]:
    found = [orphan for orphan in read_orphans(orders.kube, NAMES) if orphan.namespace == orders.namespace and orphan.kind == "ConfigMap"]
    return [orphan.uid for orphan in Sweep(Run(orders.kube, NAMES), grace).sweep(found)]


def events(orders: Orders, agents: Agents) -> list[str]:
    about = f"involvedObject.name=host-claims-agents-{agents.namespace}"
    return [item["reason"] for item in orders.kube.list_all("v1", "Event", SITE_NAMESPACE, field_selector=about)]


def test_hosts_of_a_deleted_order_are_reported_and_released_after_the_grace_time_once_they_left_the_cluster(
    orders: Orders, agents: Agents
) -> None:
    agents.discover(hosts(3))
    claim_for_a_deleted_order(orders, agents)
    before = agents.recorded()
    for grace in (None, timedelta(days=1)):
        assert sweep(orders, grace) == [GONE]
        assert agents.claims() == agents.recorded() == before == {GONE: ["host-000", "host-001"]}
    assert events(orders, agents) == ["OrderNotFound"]
    answer = act("cluster_order_info", {"kubeconfig": str(orders.hub.kubeconfig), "orphans": True, "namespace": orders.namespace})
    (shown,) = [item for item in answer["orphans"] if item["order"]["namespace"] == orders.namespace]
    assert (shown["kind"], shown["name"]) == ("ConfigMap", f"host-claims-agents-{agents.namespace}")
    assert shown["order"] == {"namespace": orders.namespace, "name": "demo", "uid": GONE} and shown["since"]

    agents.patch("host-001", {"metadata": {"labels": {"agentMachineRef": "m"}}})
    sweep(orders, timedelta(0))
    assert agents.claims() == agents.recorded() == {GONE: ["host-001"]}, "it is part of a cluster"
    agents.patch("host-001", {"metadata": {"labels": {"agentMachineRef": None}}})
    until(lambda: not sweep(orders, timedelta(0)), "nothing is left")
    assert agents.claims() == agents.recorded() == {}
    released = [agent for agent in agents.all() if CLEANING in agent["metadata"]["labels"]]
    assert [agent["metadata"]["name"] for agent in released] == before[GONE] and not any(agent["spec"]["approved"] for agent in released)
    assert "OrphanRemoved" in events(orders, agents)


def test_hosts_that_only_the_site_knows_are_reported_and_not_released(orders: Orders) -> None:
    record = ClaimRecord(orders.kube, SITE_NAMESPACE, ListedInventory(f"left-{orders.namespace}", []).name)
    text = f'{{"namespace": "{orders.namespace}", "name": "demo", "uid": "{GONE}", "token": 1, "hosts": {{"blade": ["b-1"]}}}}'
    made = orders.kube.create(record.item | {"data": {GONE: text}})
    try:
        for _each in range(3):
            assert sweep(orders, timedelta(0)) == [GONE]
        assert record.read()[GONE].hosts == {"blade": ("b-1",)} and record.read()[GONE].orphaned_since
    finally:
        orders.kube.delete(made)


def test_the_event_source_counts_and_releases_hosts_of_deleted_orders(
    orders: Orders, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphan_search, "SWEEP_SECONDS", 0.2)
    agents.discover(hosts(2))
    claim_for_a_deleted_order(orders, agents)
    with Source(orders, remove_orphans_after=1).running() as source:
        until(lambda: source.state().orphans["ConfigMap"], "it is counted")
        until(lambda: agents.claims() == agents.recorded() == {}, "they are released")
        until(lambda: source.state().orphans["ConfigMap"] == 0, "nothing is counted")
