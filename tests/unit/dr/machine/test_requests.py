"""Two requests: which one wins, what the other gets as its reason, and until when a request can be taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    DeployVRG,
    Intent,
    Placed,
    SetPlacement,
    StartWorkload,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import Decision, State

from .. import samples
from ..samples import DEAD, STOPPED, in_progress, observed, secondary, settled, vrg

NO_ACTION = samples.intent()
TO_WEST, TO_EAST = samples.intent("Failover", "west"), samples.intent("Failover", "east")
HOME_WEST, HOME_EAST = samples.intent("Relocate", "west"), samples.intent("Relocate", "east")
TEST = samples.intent("Failover", "west", dry_run=True)
AFTER_FAILOVER = {"home": "west", "last_action": "Failover", "decision": Decision("west")}

QUIET = in_progress("Relocate", "Quiesce")
DEMOTED = in_progress("Relocate", "Demote")
TESTING = in_progress("TestFailover", "Testing")


@pytest.mark.parametrize(
    ("given", "intent", "state", "then"),
    [
        ("nothing is asked for", NO_ACTION, settled(), None),
        ("a failover is asked for", TO_WEST, settled(), "Failover to west"),
        ("a relocation is asked for", HOME_WEST, settled(), "Relocate to west"),
        ("a test is asked for", TEST, settled(), "TestFailover to west"),
        ("the failover was done before", TO_WEST, settled("west", "Failover"), None),
        ("the action was removed after a failover", NO_ACTION, settled("west", "Failover"), None),
        ("the same request goes on", HOME_WEST, QUIET, "Relocate to west"),
        ("another request before a demotion", TO_WEST, QUIET, "Failover to west"),
        ("it is taken back before a demotion", NO_ACTION, QUIET, None),
        (
            "it is taken back by the spec of before",
            TO_EAST,
            in_progress("Relocate", "Quiesce", home="east", last_action="Failover"),
            None,
        ),
        ("it is taken back after a demotion", NO_ACTION, DEMOTED, "Relocate to west"),
        ("a relocation back after a demotion", HOME_EAST, DEMOTED, "Relocate to west"),
        ("a test after a demotion", TEST, DEMOTED, "Relocate to west"),
        ("a failover back after a demotion", TO_EAST, DEMOTED, "Failover to east"),
        ("a failover forward after a demotion", TO_WEST, DEMOTED, "Failover to west"),
        ("a test that is promoted", TO_WEST, TESTING, "Failover to west"),
        ("a test that is reverted", NO_ACTION, TESTING, "RevertTestFailover to west"),
        ("a test, and a relocation", HOME_WEST, TESTING, "TestFailover to west"),
        ("a test that is reverted to a failover", TO_EAST, replace(TESTING, last_action="Failover"), "RevertTestFailover to west"),
        ("a revert that is complete, and another test", TEST, in_progress("RevertTestFailover", "Revert"), None),
        ("a deployment that has not placed the workload", HOME_WEST, in_progress("Deploy", "Create", "east", home=""), "Deploy to east"),
        ("a deployment that has", TO_WEST, in_progress("Deploy", "Protect", "east"), "Failover to west"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_request_in_progress(given: str, intent: Intent, state: State, then: str | None) -> None:
    result = step(intent, state, observed(vrg(), secondary()), samples.policy())
    assert (str(result.state.request) if result.state.request else None) == then, given


@pytest.mark.parametrize(
    ("intent", "state", "gate", "text"),
    [
        (HOME_EAST, DEMOTED, "RequestInProgress", "Relocate to west is in progress. Relocate to east is refused"),
        (NO_ACTION, DEMOTED, "RequestInProgress", "To take it back is refused"),
        (HOME_WEST, TESTING, "TestInProgress", "A test failover runs on west"),
        (HOME_WEST, in_progress("Deploy", "Create", "east", home=""), "RequestInProgress", "Relocate to west follows it"),
        (samples.intent("Failover", "north"), DEMOTED, "RequestValid", "not in the policy"),
        (samples.intent("Relocate", "west", dry_run=True), settled(), "RequestValid", "without the action Failover"),
        (samples.intent("Failover", "east", dry_run=True), settled(), "RequestValid", "the workload is there"),
    ],
)
def test_a_refused_request_is_reported(intent: Intent, state: State, gate: str, text: str) -> None:
    result = step(intent, state, observed(vrg(), secondary()), samples.policy())
    assert gate in [wait.gate for wait in result.waits]
    assert result.conditions["Waiting"].status == "True"
    assert text in result.conditions["Waiting"].message


def test_a_request_that_is_taken_back_restores_home_placement_and_workload() -> None:
    """The home had prepared the final sync, the placement was cleared and the workload stopped."""
    home = vrg(spec={"runFinalSync": True, "action": "Relocate"})
    observations = observed(home, secondary(), placed=Placed(), workloads={"east": STOPPED})
    taken_back = step(NO_ACTION, in_progress("Relocate", "FinalSync", decision=Decision()), observations, samples.policy())
    assert (taken_back.phase, taken_back.state.decision.cluster, taken_back.actions) == ("Deployed", "east", ())
    result = step(NO_ACTION, replace(taken_back.state, revision=11), observations, samples.policy())
    kinds = [type(action) for action in result.actions]
    assert kinds == [DeployVRG, SetPlacement, StartWorkload]
    assert isinstance(result.actions[0], DeployVRG)
    assert "runFinalSync" not in result.actions[0].spec


def test_a_failover_to_a_cluster_without_data_replaces_no_demoted_request() -> None:
    state = in_progress("Failover", "Promote", **AFTER_FAILOVER | {"home": "west", "origin": "west"})
    state = replace(state, request=replace(state.request, target="east"))  # type: ignore[type-var]
    result = step(TO_WEST, replace(state, home="north"), observed(DEAD, None), samples.policy())
    assert str(result.state.request) == "Failover to east"
    assert "TargetValid" in [wait.gate for wait in result.waits]


def test_a_new_request_inherits_the_demotion_of_the_one_before() -> None:
    result = step(TO_EAST, DEMOTED, observed(secondary(), secondary()), samples.policy())
    assert result.state.request
    assert result.state.request.demoted, "otherwise it could be taken back, and the old home be promoted beside the target"


@pytest.mark.parametrize("other", [TEST, TO_WEST], ids=["test", "failover"])
def test_a_request_that_is_replaced_before_its_demotion_leaves_the_workload_at_home(other: Intent) -> None:
    """The relocation had cleared the placement. What replaces it may take long, or wait."""
    state = in_progress("Relocate", "FinalSync", decision=Decision())
    result = step(other, state, observed(vrg(), secondary(), placed=Placed()), samples.policy())
    assert (result.state.request and result.state.request.stage, result.state.decision.cluster) == ("Check", "east")
