"""Bare-metal hosts that the event source follows: an order reports a missing one without a sync of all orders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from ..support.agents import Agents, hosts, site_agents
from ..support.orders import Orders
from ..support.samples import FAULT
from ..support.sources import Source


@pytest.fixture
def agents(orders: Orders) -> Iterator[Agents]:
    with site_agents(orders.hub) as found:
        yield found


def provision(orders: Orders) -> None:
    orders.run("provision", "demo").complete().successful()


def until_reported(orders: Orders, problem: str) -> None:
    said = f"hosts: Host host-000 of the class fc430 {problem}"
    until(lambda: orders.condition("InfrastructureReady")["message"] == said, "the order reports it")
    assert orders.status()["phase"] == "Degraded"


def test_a_host_that_goes_missing_is_on_the_order_at_once_and_another_run_follows(orders: Orders, agents: Agents) -> None:
    agents.discover(hosts(2))
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    with Source(orders).running() as source:
        until(lambda: "Agent" in source.state().watch_restarts, "it follows the hosts")
        agents.patch("host-000", {"metadata": {"annotations": {FAULT: "disconnected"}}})
        until_reported(orders, "is not connected")
        until(lambda: ("degraded", "InfrastructureNotReady") in source.transitions("demo"), "the transition is reported")
        writes = source.writes()
        agents.patch("host-000", {"metadata": {"labels": {"rack": "2"}}})
        agents.patch("host-001", {"metadata": {"annotations": {FAULT: "disconnected"}}})  # of no order
        due = [item | {"nextAttempt": "2020-01-01T00:00:00Z"} for item in orders.status()["infrastructure"]]
        orders.patch({"status": {"infrastructure": due}}, subresource="status")
        source.until_asked("provision")
        assert source.writes() == writes, "it is reported once"


def test_a_host_that_was_deleted_while_no_event_source_ran_is_reported(orders: Orders, agents: Agents) -> None:
    agents.discover(hosts(2))
    orders.apply(nodes={"fc430": 1})
    orders.provision()
    agents.delete("host-000")
    with Source(orders).running():
        until_reported(orders, "no longer exists")
    provision(orders)
    assert agents.recorded() == {orders.get()["metadata"]["uid"]: ["host-001"]}
