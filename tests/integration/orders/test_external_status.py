"""The status of an order that another controller writes too: a write of either is no conflict for ours, and undoes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LockLost, acquire
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status_writer import StatusWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeSet, ObservedCluster

from ..support.orders import Orders

Write = Callable[[], None]


def observed(ready: int) -> ObservedState:
    nodes = (NodeSet("demo-fc430", "fc430", 3, ready),)
    return ObservedState(ObservedCluster(internal_id="x/demo", status="ready", node_sets=nodes, installed=True), namespace_exists=True)


@pytest.fixture
def run(orders: Orders) -> Run:
    return Run(Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)}), Names(external_controller=True))


@pytest.fixture
def settled(orders: Orders, run: Run) -> ClusterOrder:
    """An order that both controllers have written to."""
    orders.apply(nodes={"fc430": 3})
    their_write(orders, "Progressing")
    written = StatusWriter(run).sync(found(orders, run), observed(1))
    assert message(written) == "1 of 3 nodes ready"
    return written


def found(orders: Orders, run: Run) -> ClusterOrder:
    order = run.find(orders.namespace, "demo")
    assert order
    return order


def their_write(orders: Orders, phase: str) -> None:
    order = orders.get()
    status = order.get("status") or {}
    theirs = {"type": "Progressing", "status": "True", "reason": phase, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    others = [item for item in status.get("conditions", []) if item["type"] != "Progressing"]
    orders.kube.replace(order | {"status": status | {"phase": phase, "conditions": [theirs, *others]}}, subresource="status")


def message(order: ClusterOrder) -> str:
    return str((order.condition("NodesReady") or {})["message"])


def theirs(orders: Orders) -> tuple[str, str]:
    status = orders.status()
    return status["phase"], next(item["reason"] for item in status["conditions"] if item["type"] == "Progressing")


def test_what_the_other_controller_wrote_meanwhile_is_no_conflict_and_stays(orders: Orders, run: Run, settled: ClusterOrder) -> None:
    their_write(orders, "Ready")
    before = run.kube.requests
    written = StatusWriter(run).sync(settled, observed(2))
    assert run.kube.requests == before + 1, "one write, and no second attempt"
    assert message(written) == message(found(orders, run)) == "2 of 3 nodes ready"
    assert theirs(orders) == ("Ready", "Ready")


def test_what_another_of_our_writers_wrote_meanwhile_is_observed_again(orders: Orders, run: Run, settled: ClusterOrder) -> None:
    outcome = Outcome("provision", config_version(settled), accepted=True, finished=True, template_applied=True, provider="hypershift")
    StatusWriter(run).write(settled, outcome, observed=observed(3))
    assert found(orders, run).is_applied
    late = StatusWriter(run).sync(settled, observed(2))
    assert late.is_applied, "the late writer derived its status again, from the order as it is"
    assert message(late) == "0 of 3 nodes ready", "and observed the cluster, which does not exist here"


def test_a_spec_that_was_changed_meanwhile_is_read_first(orders: Orders, run: Run, settled: ClusterOrder) -> None:
    orders.apply(nodes={"fc430": 5})
    late = StatusWriter(run).sync(settled, observed(2))
    assert late.status["observedGeneration"] == late.generation == settled.generation + 1


def test_the_order_of_our_conditions_may_change(orders: Orders, run: Run, settled: ClusterOrder) -> None:
    status: Object = orders.status()
    orders.kube.replace(orders.get() | {"status": status | {"conditions": status["conditions"][::-1]}}, subresource="status")
    written = StatusWriter(run).sync(replace(settled), observed(2))
    kinds = [item["type"] for item in orders.status()["conditions"]]
    assert len(kinds) == len(set(kinds)) and written.raw["status"] == orders.status()


def test_a_run_that_has_lost_its_lock_writes_nothing(orders: Orders, run: Run, settled: ClusterOrder) -> None:
    lock = acquire(run.kube, orders.namespace, "demo", "first")
    orders.expire_lock()
    acquire(run.kube, orders.namespace, "demo", "second", wait_timeout=30)
    before = orders.status()
    with pytest.raises(LockLost):
        StatusWriter(run).write(settled, Outcome("provision", config_version(settled), accepted=True), lock=lock, observed=observed(2))
    assert orders.status() == before
