"""Ramen's table "Rebuilding state", row by row, for a bucket that has no state of the workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import DeleteVRG, DeployVRG, Intent, Observations, Step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.vrg import VRG

from .. import samples
from ..samples import DEAD, observed, secondary, vrg

EMPTY = State(epoch=1, revision=1)
STOP, ALLOW, CONTINUE = ("", "Paused"), ("WaitForUser", "Paused"), ("Initiating", "")
DEPLOY = samples.intent()
FAILOVER, RELOCATE = samples.intent("Failover", "west"), samples.intent("Relocate", "east")


def ours(role: str = "primary", action: str = "", **changes: Any) -> dict[str, Any]:
    """An object of the leader before, which was another DRPlacementControl's."""
    return vrg(role, owner="uid-0", spec={"action": action} | changes.pop("spec", {}), **changes)


def stored(action: str, cluster: str) -> dict[str, Any]:
    return {"stored": VRG.from_object(ours(action=action)), "stored_cluster": cluster}


@pytest.mark.parametrize(
    ("given", "intent", "observations", "then"),
    [
        ("no cluster answers", DEPLOY, observed(DEAD, DEAD), STOP),
        ("both answer, no object", DEPLOY, observed(None, None), CONTINUE),
        ("one answers, nothing anywhere, the destination answers", DEPLOY, observed(None, DEAD), CONTINUE),
        ("one answers, nothing anywhere, the destination is dead", DEPLOY, observed(DEAD, None), STOP),
        ("one answers, a store has a primary of another action", DEPLOY, observed(None, DEAD, **stored("Failover", "east")), ALLOW),
        ("one answers, a store has the same, here", DEPLOY, observed(None, DEAD, **stored("", "east")), CONTINUE),
        ("one answers, a store has the same, elsewhere", DEPLOY, observed(None, DEAD, **stored("", "west")), ALLOW),
        ("one answers, primary at the destination, same action", DEPLOY, observed(ours(), DEAD), CONTINUE),
        ("one answers, primary at the destination, another action", RELOCATE, observed(ours(), DEAD), STOP),
        ("one answers, a secondary", DEPLOY, observed(DEAD, ours("secondary")), ALLOW),
        ("one answers, a primary elsewhere", DEPLOY, observed(DEAD, ours()), ALLOW),
        ("both answer, both secondary", RELOCATE, observed(ours("secondary"), ours("secondary")), STOP),
        ("both answer, primary at the destination, same action", DEPLOY, observed(ours(), ours("secondary")), CONTINUE),
        ("both answer, primary at the destination, another action", RELOCATE, observed(ours(), ours("secondary")), ALLOW),
        ("both answer, a primary elsewhere", FAILOVER, observed(ours(), ours("secondary")), ALLOW),
        ("the primary of a test does not count", FAILOVER, observed(ours(), ours(action="Failover", spec={"dryRun": True})), ALLOW),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_empty_bucket(given: str, intent: Intent, observations: Observations, then: tuple[str, str]) -> None:
    result = step(intent, EMPTY, observations, samples.policy())
    assert (result.phase, result.progression) == then, given
    assert not result.actions
    assert bool(result.waits) == (then != CONTINUE)


def test_stopped_is_neither_available_nor_ready() -> None:
    result = step(DEPLOY, EMPTY, observed(DEAD, DEAD), samples.policy())
    assert [(result.conditions[kind].status, result.conditions[kind].reason) for kind in ("Available", "PeerReady")] == [
        ("False", "Paused"),
        ("False", "Paused"),
    ]


def test_a_failover_is_allowed_while_the_user_decides() -> None:
    observations = observed(DEAD, ours("secondary"))
    paused = recorded(step(DEPLOY, EMPTY, observations, samples.policy()))
    assert step(DEPLOY, paused, observations, samples.policy()).conditions["PeerReady"].message == "Failover allowed"
    asked = samples.intent("Failover", "west", generation=2)
    begun = recorded(step(asked, paused, observations, samples.policy()))
    assert (begun.phase, begun.home) == ("Initiating", "east")
    failover = recorded(step(asked, begun, observations, samples.policy()))
    assert failover.request and failover.decision.reason == "the state was rebuilt"


def test_both_secondary_has_a_way_back() -> None:
    """Ramen stops there for good. A Failover that a user requests afterwards goes on."""
    observations = observed(ours("secondary"), ours("secondary"))
    stopped = recorded(step(RELOCATE, EMPTY, observations, samples.policy()))
    assert step(FAILOVER, stopped, observations, samples.policy()).progression == "Paused", "not asked for since"
    begun = recorded(step(replace(FAILOVER, generation=2), stopped, observations, samples.policy()))
    assert begun.phase == "Initiating"


def test_failover_that_one_of_several_copies_shows_already_is_not_begun() -> None:
    """It may be of long ago: the primary is healthy, and data since the last sync would be lost."""
    observations = observed(ours(action="Relocate"), ours("secondary", action="Relocate"))
    disputed = replace(FAILOVER, disputed=True)
    paused = recorded(step(disputed, EMPTY, observations, samples.policy()))
    later = step(disputed, paused, observations, samples.policy())
    assert (later.phase, later.state, later.actions) == ("WaitForUser", paused, ())
    assert "request different things" in str(later.waits[0]) and "remove its action first" in str(later.waits[0])
    assert step(FAILOVER, paused, observations, samples.policy()).phase == "Initiating", "one copy, or all, ask for it"
    asked = replace(FAILOVER, generation=2)
    assert step(asked, paused, observations, samples.policy()).phase == "Initiating", "a person has asked for it since"
    home = step(replace(RELOCATE, generation=2), paused, observations, samples.policy())
    assert (home.phase, home.state.home) == ("Initiating", "east"), "or for what there is"


@pytest.mark.parametrize("state", [EMPTY, replace(EMPTY, uid=samples.UID, phase="WaitForUser", progression="Paused")])
def test_end_of_a_protection_whose_bucket_was_lost_leaves_nothing_behind(state: State) -> None:
    deleted, both = samples.intent(deleting=True), observed(ours(), ours("secondary"))
    deleting = recorded(step(deleted, state, both, samples.policy()))
    waiting = recorded(step(deleted, deleting, both, samples.policy()))
    assert step(deleted, waiting, both, samples.policy()).actions == (DeleteVRG("west"),)
    primary = recorded(step(deleted, waiting, observed(ours(), None), samples.policy()))
    assert step(deleted, primary, observed(ours(), None), samples.policy()).actions == (DeleteVRG("east"),)
    assert step(deleted, primary, observed(None, None), samples.policy()).progression == "Deleted"


@pytest.mark.parametrize("state", [EMPTY, replace(EMPTY, uid=samples.UID, phase="Initiating")])
def test_end_of_a_protection_deletes_no_object_that_is_not_known_to_be_its_own(state: State) -> None:
    """Written by no leader, or left by an earlier protection while the state is known."""
    other = observed(ours(epoch=0 if state == EMPTY else 1), None)
    deleting = recorded(step(samples.intent(deleting=True), state, other, samples.policy()))
    assert step(samples.intent(deleting=True), deleting, other, samples.policy()).progression == "Deleted"


def test_an_adopted_primary_stays_primary_and_gets_our_stamps() -> None:
    observations = observed(ours(), ours("secondary"))
    state = recorded(step(DEPLOY, EMPTY, observations, samples.policy()))
    assert (state.home, state.request and state.request.stage) == ("east", "Create")
    state = recorded(step(DEPLOY, state, observations, samples.policy()))
    (action,) = step(DEPLOY, state, observations, samples.policy()).actions
    assert isinstance(action, DeployVRG)
    assert (action.cluster, action.spec["replicationState"], action.owner) == ("east", "primary", samples.UID)


def test_the_table_is_used_once() -> None:
    """Later losses of objects change nothing about what the state knows."""
    result = step(DEPLOY, samples.settled(), observed(None, secondary()), samples.policy())
    assert result.state.home == "east"
    assert result.phase == "Deployed"


def recorded(result: Step) -> State:
    return replace(result.state, revision=result.state.revision + 1)
