"""Which namespaces a DRPlacementControl may protect, and which of two that protect the same one goes on."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Intent, Neighbor, Placed
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State

from .. import samples
from ..samples import DEAD, in_progress, observed, secondary, settled


def from_ops(*namespaces: str) -> Intent:
    return Intent("ops", "all", "uid-1", 1, preferred="east", protected_namespaces=namespaces)


@pytest.mark.parametrize(
    ("intent", "allowed"),
    [
        (samples.intent(), True),
        (samples.intent(protected_namespaces=("shop",)), True),
        (samples.intent(protected_namespaces=("shop", "bank")), False),
        (from_ops("shop", "bank"), True),
        (from_ops(), False),
        (from_ops("shop", "ops"), False),
    ],
    ids=["its own", "its own by name", "of another tenant", "from ops", "none from ops", "ops itself"],
)
def test_only_the_namespace_for_operations_protects_others_and_never_itself(intent: Intent, allowed: bool) -> None:
    result = step(intent, State(epoch=1), observed(None, None, placed=Placed(), ops_namespace="ops"), samples.policy())
    assert ([wait.gate for wait in result.waits] == []) == allowed
    assert allowed or result.waits[0].gate == "NamespacesAllowed"


@pytest.mark.parametrize(
    ("name", "begun", "waits"),
    [("ops/all", True, True), ("ops/all", False, True), ("web/all", True, True), ("web/all", False, False)],
    ids=["begun", "first by name", "begun, last by name", "last by name"],
)
def test_of_two_with_a_common_namespace_one_goes_on(name: str, begun: bool, waits: bool) -> None:
    neighbors = (Neighbor(name, ("shop",), begun),)
    result = step(samples.intent(), State(epoch=1), observed(None, None, placed=Placed(), neighbors=neighbors), samples.policy())
    assert bool(result.waits) == waits
    if waits:
        assert f"{name} (shop) protects a namespace" in result.waits[0].message


@pytest.mark.parametrize("state", [settled(), in_progress("Failover", "Prepare")], ids=["protected", "failing over"])
def test_a_conflict_that_is_created_later_stops_no_failover(state: State) -> None:
    wanted, neighbors = samples.intent("Failover", "west"), (Neighbor("ops/all", ("shop",), begun=True),)
    result = step(wanted, state, observed(DEAD, secondary(), neighbors=neighbors), samples.policy())
    assert "NamespacesFree" not in [wait.gate for wait in result.waits]
    assert result.state.phase in ("Initiating", "FailingOver")
