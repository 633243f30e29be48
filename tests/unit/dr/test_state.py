"""The state as the bucket keeps it, and what a step leaves in it."""

from __future__ import annotations

import json
from dataclasses import replace

from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import State as StateDocument
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import Decision, State
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.vrg import StorageTarget

from . import samples
from .samples import DEAD, in_progress, observed, secondary, settled, vrg

STATE = replace(
    in_progress("Failover", "Demote", decision=Decision("west", "east", "as asked"), storage=(StorageTarget("csi", "group-1"),)),
    leftovers=("north",),
    waiting=(("Demoted", samples.stamp()),),
)


def stored(state: State) -> StateDocument:
    return StateDocument(epoch=3, revision=21, **json.loads(json.dumps(state.to_changes())))


def test_a_state_survives_the_bucket() -> None:
    document = stored(STATE)
    again = State.from_document(document)
    assert again == STATE
    assert (again.epoch, again.revision) == (3, 21)
    assert document.step == "Completed"
    assert document.decision == {"cluster": "west", "retained": "east", "reason": "as asked"}
    assert stored(again) == document, "written twice, nothing changes"


def test_an_empty_document_is_an_empty_state() -> None:
    assert State.from_document(StateDocument()) == State()


def test_a_field_of_a_newer_leader_is_ignored() -> None:
    document = stored(STATE)
    newer = replace(document, intent=document.intent | {"flavour": "new"})
    assert State.from_document(newer) == STATE


def test_since_is_kept_while_the_gate_is_closed() -> None:
    intent, state = samples.intent("Failover", "west"), in_progress("Failover", "Check")
    first = step(intent, state, observed(DEAD, None), samples.policy())
    later = step(intent, first.state, observed(DEAD, None, minutes=30), samples.policy())
    assert later.state == first.state
    assert [wait.since for wait in later.waits] == [samples.stamp()]
    assert f"Since {samples.stamp()}: west cannot take over" in later.conditions["Waiting"].message


def test_an_intent_is_recorded_before_it_is_acted_on() -> None:
    asked = step(samples.intent("Failover", "west"), settled(), observed(vrg(), secondary()), samples.policy())
    assert asked.actions == ()
    assert asked.state.request


def test_the_storage_of_the_home_is_remembered_for_the_day_it_is_dead() -> None:
    pvcs = [{"name": "a", "csiProvisioner": "csi", "replicationID": {"id": "group-1", "modes": ["Failover"]}}]
    result = step(samples.intent(), settled(), observed(vrg(protectedPVCs=pvcs), secondary()), samples.policy())
    assert result.state.storage == (StorageTarget("csi", "group-1"),)
