"""Orders of a template with bare-metal workers: hosts of the site are claimed, bound by HyperShift, and returned."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.agent_hosts import AgentLabels, lost_agents
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..support.agents import CLAIM, CLAIMED_CLASS, CLEANING, Agents, configure, hosts, site_agents
from ..support.orders import GROUP, HYPERSHIFT, Orders
from ..support.samples import FAULT


@pytest.fixture
def agents(orders: Orders) -> Iterator[Agents]:
    """The inventory of the site."""
    with site_agents(orders.hub) as found:
        yield found


def part(orders: Orders) -> tuple[bool, str]:
    found = next(item for item in orders.status()["infrastructure"] if item["part"] == "hosts")
    return found["ready"], found["reason"]


def provision(orders: Orders) -> None:
    orders.run("provision", "demo").complete().successful()


def remove(orders: Orders) -> None:
    """Delete the order by as many runs as that takes."""

    def is_gone() -> bool:
        orders.run("delete", "demo").complete().successful()
        return orders.is_deleted()

    until(is_gone, "the order is deleted")


def test_an_order_has_hosts_of_its_own_and_returns_them(orders: Orders, agents: Agents) -> None:
    agents.discover(hosts(4, zones=2) | hosts(2, "fc640", start="big"))
    before = {agent["metadata"]["name"]: agent["spec"] for agent in agents.all()}
    orders.apply(nodes={"fc430": 3, "fc640": 1})
    orders.provision()
    uid = orders.get()["metadata"]["uid"]
    assert agents.claims() == agents.recorded() == {uid: ["big-000", "host-000", "host-001", "host-002"]}
    assert agents.bound() == agents.claims()[uid], "HyperShift takes only those"
    pools = {
        pool["metadata"]["name"]: pool["spec"]["platform"]["agent"]
        for pool in orders.kube.list_all(HYPERSHIFT, "NodePool", orders.working())
    }
    assert pools["demo-fc430"] == {"agentLabelSelector": {"matchLabels": {CLAIM: uid, CLAIMED_CLASS: "fc430"}}}
    assert orders.hosted_cluster()["spec"]["platform"]["agent"] == {"agentNamespace": agents.namespace}
    assert part(orders) == (True, "HostsClaimed") and orders.condition("InfrastructureReady")["status"] == "True"
    assert sorted(agent["spec"]["hostname"] for agent in agents.all() if agent["spec"].get("hostname")) == [
        "demo-fc430-0",
        "demo-fc430-1",
        "demo-fc430-2",
        "demo-fc640-0",
    ]
    assert orders.provision().changed == 0

    orders.apply(nodes={"fc430": 1})
    provision(orders)
    assert part(orders) == (False, "HostsLeaving")
    assert orders.condition("InfrastructureReady")["message"] == (
        "hosts: Hosts that have to leave the cluster first: 2 of the class fc430, 1 of the class fc640"
    )
    until(lambda: len(agents.bound()) == 1, "HyperShift gives up three")
    (left,) = agents.bound()
    provision(orders)
    assert part(orders) == (True, "HostsClaimed")
    assert agents.claims() == agents.recorded() == {uid: [left]}
    orders.until_phase("Ready")

    remove(orders)
    assert agents.claims() == agents.recorded() == {} and agents.bound() == []
    assert {agent["metadata"]["name"]: agent["spec"] for agent in agents.all()} == before
    cleaned = {agent["metadata"]["name"] for agent in agents.all() if agent["metadata"]["labels"].get(CLEANING) == "required"}
    assert cleaned == {"big-000", "host-000", "host-001", "host-002"}


def test_a_shortage_is_on_the_order_and_leaves_nothing_behind(orders: Orders, agents: Agents) -> None:
    agents.discover(hosts(2))
    before = agents.all()
    for nodes, reason, said in (
        ({"fc430": 3}, "HostShortage", "1 of 3 hosts of the class fc430 are missing"),
        ({"fc640": 1}, "UnknownClass", "no bare-metal hosts of the class fc640"),
    ):
        orders.apply(nodes=nodes)
        orders.run("provision", "demo").complete()
        failure = orders.status()["failure"]
        assert (failure["reason"], failure["retryable"]) == (reason, True)
        assert said in failure["message"]
        assert orders.hosted_cluster() is None and orders.pools() == {}
        assert agents.all() == before and agents.recorded() == {}
    orders.apply(nodes={"fc430": 2})
    provision(orders)
    assert len(agents.recorded()[orders.get()["metadata"]["uid"]]) == 2


@pytest.mark.parametrize("parameter", ["agent_namespace", "hosts", "worker_agents_namespace", "worker_agents_adapter", "cluster_site"])
def test_a_tenant_can_name_neither_hosts_nor_their_namespace(orders: Orders, parameter: str) -> None:
    orders.apply(nodes={"fc430": 1}, **{parameter: "of-another-tenant"})
    orders.run("provision", "demo").complete()
    failure = orders.status()["failure"]
    assert (failure["reason"], failure["retryable"]) == ("InvalidOrder", False)
    assert f"parameter {parameter} is not known" in failure["message"]
    assert orders.names() == []


def test_a_host_that_goes_missing_is_reported_on_the_order(orders: Orders, agents: Agents) -> None:
    """By the sync of all orders, and by the next run, which replaces a host that no longer exists."""
    agents.discover(hosts(2))
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    assert not orders.sync("demo")["changed"]
    agents.patch("host-000", {"metadata": {"annotations": {FAULT: "disconnected"}}})

    def is_reported() -> bool:
        orders.sync("demo")
        return part(orders) == (False, "HostMissing")

    until(is_reported, "the sync reports it")
    said = "hosts: Host host-000 of the class fc430 is not connected"
    assert orders.condition("InfrastructureReady")["message"] == said and orders.status()["phase"] == "Degraded"
    assert not orders.sync("demo")["changed"], "and reports it once"
    provision(orders)
    assert orders.condition("InfrastructureReady")["message"] == said

    agents.patch("host-000", {"metadata": {"annotations": {FAULT: None}}})
    until(lambda: not lost(agents), "it is back")
    provision(orders)
    assert part(orders) == (True, "HostsClaimed")
    agents.delete("host-000")
    orders.sync("demo")
    assert orders.condition("InfrastructureReady")["message"] == "hosts: Host host-000 of the class fc430 no longer exists"
    provision(orders)
    assert part(orders) == (True, "HostsClaimed")
    assert agents.claims() == agents.recorded() == {orders.get()["metadata"]["uid"]: ["host-001"]}


def lost(agents: Agents) -> dict[str, str]:
    return lost_agents(agents.kube, SITE_NAMESPACE, agents.namespace, AgentLabels(GROUP))


def test_another_adapter_has_the_same_interface(orders: Orders, agents: Agents) -> None:
    """A group of Ansible's inventory, by a real playbook."""
    group = f"metal_{agents.namespace.replace('-', '_')}"
    configure(
        orders.kube, agent_namespace=None, infrastructure={"hosts": {"adapter": "openfleet.clusters.hosts_inventory", "group": group}}
    )
    variables = {"cluster_host": {"name": "{{ inventory_hostname }}", "resource_class": "{{ kind }}", "failure_domain": "{{ rack }}"}}
    members = {f"blade-{number}": {"kind": "fc430", "rack": f"r{number % 2}"} for number in range(4)}
    inventory = orders.folder / "inventory.yml"
    inventory.write_text(yaml.safe_dump({group: {"hosts": members, "vars": variables}}), encoding="utf-8")
    orders.apply(nodes={"fc430": 2})
    orders.play("create_cluster", "demo", "-i", str(inventory)).successful()
    assert part(orders) == (True, "HostsClaimed")
    uid = orders.get()["metadata"]["uid"]
    records = orders.kube.list_all("v1", "ConfigMap", SITE_NAMESPACE, "openfleet.clusters/host-claims")
    record = next(item for item in records if uid in (item.get("data") or {}))
    assert json.loads(record["data"][uid])["hosts"] == {"fc430": ["blade-0", "blade-1"]}
    hostvars = {name: {"cluster_host": {"name": name, "resource_class": "fc430"}} for name in members}
    orders.run("delete", "demo", site={"groups": {group: [*members]}, "hostvars": hostvars}).complete().successful()
    assert not orders.kube.get("v1", "ConfigMap", record["metadata"]["name"], SITE_NAMESPACE).get("data")
    orders.kube.delete(record)
