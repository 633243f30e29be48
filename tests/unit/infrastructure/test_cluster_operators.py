"""The objects of operators, and how far OLM has installed them, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_operators import (
    operator_objects,
    operator_state,
    operators_state,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.modules.cluster_operators import SPEC

DEFAULTS = {name: option.get("default") for name, option in SPEC["operators"]["options"].items()}


def operator(name: str, **options: Any) -> dict[str, Any]:
    return DEFAULTS | {"name": name} | options


def test_an_operator_of_the_whole_cluster_is_a_subscription_only() -> None:
    (subscription,) = operator_objects([operator("web-terminal", channel="fast", starting_csv="web-terminal.v1")])
    assert subscription["metadata"] == {"name": "web-terminal", "namespace": "openshift-operators"}
    assert subscription["spec"] == {
        "name": "web-terminal",
        "channel": "fast",
        "startingCSV": "web-terminal.v1",
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
        "installPlanApproval": "Automatic",
    }


def test_operators_in_a_namespace_of_their_own_share_it() -> None:
    objects = operator_objects(
        [operator("a", namespace="gpu"), operator("b", namespace="gpu"), operator("c", namespace="all", all_namespaces=True)]
    )
    assert [item["kind"] for item in objects] == ["Namespace", "OperatorGroup"] * 2 + ["Subscription"] * 3
    assert [item["spec"] for item in objects if item["kind"] == "OperatorGroup"] == [{"targetNamespaces": ["gpu"]}, {}]


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        ([operator("a"), operator("a", namespace="b")], "The operator a is listed twice"),
        ([operator("a", namespace="b"), operator("c", namespace="b", all_namespaces=True)], "differ in all_namespaces"),
    ],
)
def test_mistake_is_named(operators: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        operator_objects(operators)


def csv(phase: str, message: str = "") -> dict[str, Any]:
    return {"spec": {"version": "1.2.3"}, "status": {"phase": phase, "message": message}}


REFUSED = {"conditions": [{"type": "ResolutionFailed", "status": "True", "message": "no channel fast"}]}


@pytest.mark.parametrize(
    ("status", "installed", "reason", "message"),
    [
        ({}, None, "Installing", "The operator demo is being installed"),
        ({"state": "UpgradePending"}, None, "InstallPlanPending", "approve it if it is manual"),
        (REFUSED, None, "ResolutionFailed", "cannot be resolved: no channel fast"),
        ({}, csv("Installing", "waiting for deployment"), "Installing", "is being installed: waiting for deployment"),
        ({}, csv("Failed", "no image"), "OperatorFailed", "has failed: no image"),
        ({}, csv("Succeeded"), "OperatorReady", "is installed"),
        # An upgrade that waits does not make the installed version unusable.
        ({"state": "UpgradePending"}, csv("Succeeded"), "OperatorReady", "is installed"),
    ],
)
def test_state_of_an_operator(status: dict[str, Any], installed: dict[str, Any] | None, reason: str, message: str) -> None:
    state = operator_state({"metadata": {"name": "demo", "namespace": "x"}, "status": status}, installed)
    assert (state.part.ready, state.part.reason) == (reason == "OperatorReady", reason)
    assert message in state.part.message and state.version == ("1.2.3" if installed else "")


def test_all_operators_together_are_ready_when_each_is() -> None:
    one = operator_state({"metadata": {"name": "one", "namespace": "x"}}, csv("Succeeded"))
    two = operator_state({"metadata": {"name": "two", "namespace": "x"}}, csv("Failed", "no image"))
    both = operators_state([one, two])
    assert (both.ready, both.reason) == (False, "OperatorFailed") and "two" in both.message and "one" not in both.message
    assert operators_state([one]).ready and operators_state([]).ready
