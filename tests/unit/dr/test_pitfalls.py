"""The ways in which disaster recovery is known to go wrong, each as a test."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.procedures import PROCEDURES
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.stages import stage_names
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step, sweep_leftovers
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    DeleteVRG,
    DeployVRG,
    Observations,
    Placed,
    ReleaseDRPC,
    SetPlacement,
    StartWorkload,
    Step,
    StopWorkload,
    Workload,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Found, Unauthorized, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import Decision, State
from ansible_collections.openfleet.clusters.tests.unit.dr.audit import Recorded

from . import samples
from .samples import DEAD, RUNNING, in_progress, observed, secondary, settled, vrg
from .simulation import Simulation

FAILOVER, RELOCATE = samples.intent("Failover", "west"), samples.intent("Relocate", "west")
FAILOVER_REQUESTED = {"spec": {"action": "Failover"}}


def settled_step(intent: object, state: State, observations: Observations) -> Step:
    """Steps until the state is recorded: the one that acts or waits."""
    for _number in range(10):
        result = step(intent, state, observations, samples.policy())  # type: ignore[arg-type]
        if result.state == state:
            return result
        state = replace(result.state, revision=state.revision + 1)
    raise AssertionError("the state changes for ever")


def roles(result: Step) -> list[tuple[str, str]]:
    return [(action.cluster, action.spec["replicationState"]) for action in result.actions if isinstance(action, DeployVRG)]


@pytest.mark.parametrize("missing", ["DataReady", "ClusterDataReady"])
def test_the_placement_does_not_move_before_the_data_is_ready(missing: str) -> None:
    true = tuple(kind for kind in samples.ALL_TRUE if kind != missing)
    target = vrg(true=true, **FAILOVER_REQUESTED)
    result = settled_step(FAILOVER, in_progress("Failover", "Ready", decision=Decision("", "east")), observed(DEAD, target))
    assert result.state.decision.cluster == ""
    assert not [action for action in result.actions if isinstance(action, SetPlacement | StartWorkload) and action.cluster]


def test_complete_of_an_old_generation_is_not_believed() -> None:
    """The status still says Primary and ready, but of the spec before the promotion."""
    target = vrg(
        generation=2,
        observed=1,
        true=(),
        conditions=[samples.condition(kind, generation=1) for kind in samples.ALL_TRUE],
        **FAILOVER_REQUESTED,
    )
    result = settled_step(FAILOVER, in_progress("Failover", "Promote", decision=Decision("", "east")), observed(DEAD, target))
    assert (result.state.request and result.state.request.stage, result.waits[0].gate) == ("Promote", "Restored")


def test_no_relocation_to_a_peer_that_is_not_clean() -> None:
    state = settled("east", "Failover", peer_ready=False, moved_at=samples.stamp(5), decision=Decision("east"))
    result = settled_step(RELOCATE, state, observed(vrg(**FAILOVER_REQUESTED), secondary(**FAILOVER_REQUESTED)))
    assert (result.state.request and result.state.request.stage, result.waits[0].gate) == ("Check", "PeerReady")
    assert result.conditions["PeerReady"].status == "False"


def test_progress_never_goes_backwards() -> None:
    """A final sync that is no longer reported, and a cluster that stops answering, leave a request where it is."""
    simulation = Simulation()
    simulation.settle(6)
    simulation.ask("Relocate", "west")
    for _round in range(60):
        simulation.lead()
        simulation.tick("east")
        simulation.run_pods("east")
        simulation.clusters["west"].reachable = not simulation.clusters["west"].reachable
        simulation.tick("west")
        simulation.write()
    requests = [entry.state.request for entry in simulation.history if isinstance(entry, Recorded) and entry.state.request]
    positions = [stage_names(PROCEDURES["Relocate"]).index(item.stage) for item in requests if item.kind == "Relocate"]
    assert positions == sorted(positions)
    assert positions[-1] > 3


def test_a_failover_asks_nothing_of_the_dead_site() -> None:
    """No action for its API server, no gate that needs its answer, no store of it in the promoted spec."""
    simulation = Simulation()
    simulation.settle(6)
    simulation.clusters["east"].alive = False
    simulation.history.clear()
    simulation.ask("Failover", "west")
    actions = []
    for _round in range(40):
        actions += simulation.lead().actions
        simulation.tick("west")
        simulation.run_pods("west")
    assert simulation.state.home == "west"
    assert simulation.running == ["east", "west"], "the dead cluster's pods are its own"
    assert "east" not in [action.cluster for action in actions if not isinstance(action, ReleaseDRPC)]
    assert {tuple(action.spec["s3Profiles"]) for action in actions if isinstance(action, DeployVRG)} == {("s3-west",)}


def test_a_failover_needs_no_valid_policy() -> None:
    """A policy may be invalid just because a cluster is gone."""
    state = in_progress("Failover", "Prepare")
    result = step(FAILOVER, state, observed(DEAD, secondary()), samples.policy(valid=False))
    assert result.state.request
    assert result.state.request.stage == "Demote"


def test_protection_ends_although_a_member_is_dead_and_its_leftovers_are_removed_later() -> None:
    deleted = samples.intent(deleting=True)
    deleting = settled(phase="Deleting", progression="Deleting")
    first = settled_step(deleted, deleting, observed(vrg(), DEAD))
    assert [wait.gate for wait in first.waits] == ["MembersAnswer"]
    assert not first.actions, "the primary is not deleted yet"

    later = settled_step(deleted, first.state, observed(vrg(), DEAD, minutes=6))
    assert (later.state.leftovers, later.actions) == (("west",), (DeleteVRG("east"),))
    ended = settled_step(deleted, later.state, observed(None, DEAD, minutes=7))
    assert (ended.progression, ended.actions) == ("Deleted", (ReleaseDRPC(),))

    back = sweep_leftovers(deleted, ended.state, observed(None, secondary(), minutes=90), samples.policy())
    assert back.actions == (DeleteVRG("west"),)
    done = sweep_leftovers(deleted, ended.state, observed(None, None, minutes=91), samples.policy())
    assert done.state.leftovers == ()


def test_no_protection_ends_while_the_leader_is_cut_off_from_all_members() -> None:
    deleting = settled(phase="Deleting", progression="Deleting", waiting=(("MembersAnswer", samples.stamp()),))
    result = settled_step(samples.intent(deleting=True), deleting, observed(DEAD, DEAD, minutes=60))
    assert (result.progression, result.state.leftovers) == ("Deleting", ())


def test_leftovers_of_an_earlier_protection_are_deleted_before_they_are_used() -> None:
    """The next protection of the same name does not take the old secondary for its own."""
    ended = settled(phase="Deleting", progression="Deleted", leftovers=("west",))
    fresh = step(samples.intent(uid="uid-2"), ended, observed(None, DEAD), samples.policy()).state
    assert (fresh.uid, fresh.home, fresh.leftovers) == ("uid-2", "", ("west",))
    state = replace(in_progress("Deploy", "Protect", "east"), uid="uid-2", leftovers=("west",))
    observations = observed(vrg(owner="uid-2"), secondary())
    result = settled_step(samples.intent(uid="uid-2"), state, observations)
    assert result.actions == (DeleteVRG("west", adopts=samples.UID),)
    assert result.waits[0].gate == "PeersObserved"


def test_a_complete_primary_of_an_earlier_protection_is_demoted_not_believed() -> None:
    """Its status is perfect, and is about other data."""
    result = settled_step(FAILOVER, settled(), observed(vrg(), vrg(owner="uid-0", **FAILOVER_REQUESTED)))
    assert roles(result) == [("west", "secondary")]
    assert [action.adopts for action in result.actions if isinstance(action, DeployVRG)] == ["uid-0"]
    assert result.state.request
    assert result.state.request.stage == "Check"


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ("while the target is being promoted", in_progress("Failover", "Promote", decision=Decision("", "east"))),
        (
            "while the peers are cleaned up",
            in_progress("Failover", "Clean", home="west", last_action="Failover", decision=Decision("west", "east")),
        ),
        ("long after", settled("west", "Failover")),
    ],
)
def test_an_old_primary_that_comes_back_is_demoted_at_once(given: str, state: State) -> None:
    observations = observed(
        vrg(), vrg(**FAILOVER_REQUESTED), placed=Placed(state.decision.cluster, state.decision.retained), workloads={"west": RUNNING}
    )
    assert roles(settled_step(FAILOVER, state, observations)) == [("east", "secondary")], given


def test_an_old_primary_stops_its_workload_once_it_knows_that_it_is_secondary() -> None:
    state = in_progress("Failover", "Release", home="west", last_action="Failover", decision=Decision("west"))
    requested = observed(
        secondary(state="Unknown", **FAILOVER_REQUESTED), vrg(**FAILOVER_REQUESTED), placed=Placed("west"), workloads={"west": RUNNING}
    )
    assert settled_step(FAILOVER, state, requested).actions == (StopWorkload("east"),)


HALF_STARTED = Workload(1, 1, idle=1, pending=1)
AS_A_PERSON_WANTS = Workload(1, 1, idle=1)  # the one without replicas was never noted: before a start all are


@pytest.mark.parametrize(
    ("given", "kind", "workload", "starts"),
    [
        ("a failover", "Failover", HALF_STARTED, True),
        ("a relocation", "Relocate", HALF_STARTED, True),
        ("a failover back to a home that was never stopped", "Failover", AS_A_PERSON_WANTS, False),
        ("a component that had no replicas", "Failover", Workload(1, 1), False),
        ("a workload that had no replicas", "Failover", Workload(), False),
    ],
)
def test_no_part_of_a_workload_is_left_behind(given: str, kind: str, workload: Workload, starts: bool) -> None:
    requested = {"spec": {"action": kind}}
    observations = observed(secondary(**requested), vrg(**requested), placed=Placed("west"), workloads={"west": workload})
    state = in_progress(kind, "Place", home="west", decision=Decision("west"))
    result = settled_step(samples.intent(kind, "west"), state, observations)
    assert (StartWorkload("west") in result.actions) is starts, given
    assert (result.state.in_progress.stage == "Place") is starts, given


@pytest.mark.parametrize(("workload", "starts"), [(HALF_STARTED, True), (AS_A_PERSON_WANTS, False)])
def test_settled_workload_has_the_components_that_it_is_known_to_have(workload: Workload, starts: bool) -> None:
    result = settled_step(samples.intent(), settled(), observed(vrg(), secondary(), workloads={"east": workload}))
    assert (result.actions == (StartWorkload("east"),)) is starts


@pytest.mark.parametrize("target", ["east", "west"])
def test_both_secondary_has_a_way_out(target: str) -> None:
    """The target of a relocation died after the home was demoted: a Failover to either cluster goes on."""
    state = in_progress("Relocate", "Demote", decision=Decision())
    observations = observed(secondary(), secondary(), placed=Placed())
    result = settled_step(samples.intent("Failover", target), state, observations)
    begun = result.state.request
    assert begun
    assert (begun.kind, begun.target, begun.demoted) == ("Failover", target, True)
    assert begun.stage in ("Demote", "Promote")


def test_a_late_promotion_by_an_earlier_leader_cannot_succeed() -> None:
    """Before a promotion, every other cluster that answers has the current epoch, and so refuses older ones."""
    state = replace(in_progress("Failover", "Promote", decision=Decision("", "east")), epoch=7)
    old = observed(secondary(epoch=6, **FAILOVER_REQUESTED), secondary(epoch=6), placed=Placed("", "east"))
    assert roles(settled_step(FAILOVER, state, old)) == [("east", "secondary")]
    new = observed(secondary(epoch=7, **FAILOVER_REQUESTED), secondary(epoch=6), placed=Placed("", "east"))
    assert roles(settled_step(FAILOVER, state, new)) == [("west", "primary")]


def test_peer_ready_waits_for_a_sync_after_the_move() -> None:
    state = settled("west", "Failover", peer_ready=False, moved_at=samples.stamp(5))
    old, new = (
        observed(secondary(**FAILOVER_REQUESTED), vrg(lastGroupSyncTime=samples.stamp(time), **FAILOVER_REQUESTED), placed=Placed("west"))
        for time in (5, 6)
    )
    assert step(FAILOVER, state, old, samples.policy()).conditions["PeerReady"].status == "False"
    assert step(FAILOVER, state, new, samples.policy()).conditions["PeerReady"].status == "True"


@pytest.mark.parametrize("answer", [Unreachable("no route to host"), Unauthorized("expired")], ids=["unreachable", "unauthorized"])
def test_no_answer_is_not_absence(answer: Unreachable | Unauthorized) -> None:
    """Only a cluster that says so has no object; of one that does not answer, or refuses to, nothing is known."""
    result = settled_step(RELOCATE, settled(), replace(observed(vrg(), None), vrgs={"east": Found(vrg()), "west": answer}))
    assert [wait.gate for wait in result.waits] == ["AllAnswer"]
    assert answer.why in result.waits[0].message
    assert not result.actions
