"""The checker of histories: each rule is broken by a history of a few entries, and by nothing else in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Action, DeleteVRG, DeployVRG, StartWorkload, Step, Wait
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import Decision, State
from ansible_collections.openfleet.clusters.tests.unit.dr.audit import (
    ACTION_RULES,
    RECORD_RULES,
    Entry,
    Performed,
    Recorded,
    Report,
    Reports,
    audit,
    is_stuck,
)

from .samples import UID, in_progress, settled

PRIMARY = Report(answered=True, exists=True, claims_data=True, restored=True, ready=True)
SECONDARY = Report(answered=True, exists=True, requested_secondary=True, secondary=True, protected=True, stopped=True)
SILENT = Report()
USUAL: Reports = {"east": PRIMARY, "west": SECONDARY}
DEAD_EAST: Reports = {"east": SILENT, "west": SECONDARY}


def revision(state: State, number: int, reports: Reports | None = None, epoch: int = 1) -> Recorded:
    return Recorded(replace(state, revision=number, epoch=epoch), USUAL if reports is None else reports)


def done(action: Action, number: int, reports: Reports | None = None, epoch: int = 1) -> Performed:
    return Performed(action, epoch, number, USUAL if reports is None else reports)


def deploy(cluster: str, role: str, **fields: Any) -> DeployVRG:
    return DeployVRG(cluster, {"replicationState": role} | fields, UID)


HOME = revision(settled(), 10)
PROMOTE = in_progress("Failover", "Promote", decision=Decision("", "east"))
CLEANED = settled("west", "Failover")
SYNCED = {"east": replace(PRIMARY, synced=True, stopped=True), "west": SECONDARY}

CASES: dict[str, list[Entry]] = {
    "RevisionsGrow": [HOME, revision(settled(), 10)],
    "NeverBackwards": [revision(in_progress("Relocate", "Clear"), 10), revision(in_progress("Relocate", "Quiesce"), 11)],
    "DemotionStays": [revision(in_progress("Failover", "Promote"), 10), revision(settled(), 11)],
    "DecisionFollowsData": [
        revision(in_progress("Failover", "Ready", decision=Decision("", "east")), 10),
        revision(in_progress("Failover", "Place", home="west", decision=Decision("west", "east")), 11, DEAD_EAST),
    ],
    "HomeGaveAll": [
        revision(in_progress("Relocate", "Synced"), 10),
        revision(in_progress("Relocate", "Demote"), 11, {"east": replace(PRIMARY, stopped=True), "west": SECONDARY}),
    ],
    "TargetHasData": [
        revision(in_progress("Failover", "Prepare"), 10),
        revision(in_progress("Failover", "Demote"), 11, {"east": SILENT, "west": replace(SECONDARY, secondary=False)}),
    ],
    "CleanPeer": [revision(in_progress("Relocate", "Check", peer_ready=False), 10), revision(in_progress("Relocate", "Quiesce"), 11)],
    "TestedWithProtection": [
        revision(in_progress("TestFailover", "Check"), 10),
        revision(in_progress("TestFailover", "Try"), 11, {"east": replace(PRIMARY, ready=False), "west": SECONDARY}),
    ],
    "RetainedUntilSecondary": [
        revision(in_progress("Failover", "Clean", home="west", decision=Decision("west", "east")), 10),
        revision(in_progress("Failover", "Release", home="west", decision=Decision("west")), 11, {"east": PRIMARY, "west": PRIMARY}),
    ],
    "RecordedFirst": [HOME, done(DeleteVRG("west"), 12)],
    "OneLeader": [HOME, done(deploy("west", "secondary"), 10, epoch=2), done(deploy("west", "secondary"), 10, epoch=1)],
    "OnePrimary": [revision(PROMOTE, 10), done(deploy("west", "primary"), 10)],
    "RelocatedData": [
        revision(in_progress("Relocate", "Promote"), 10),
        done(deploy("west", "primary"), 10, {"east": replace(SECONDARY, secondary=False), "west": SECONDARY}),
    ],
    "FencedFirst": [revision(PROMOTE, 10), done(deploy("west", "primary"), 10, DEAD_EAST)],
    "DataBeforeWorkload": [HOME, done(StartWorkload("west"), 10)],
    "SecondariesFirst": [revision(settled(phase="Deleting"), 10), done(DeleteVRG("east"), 10)],
}


@pytest.mark.parametrize("rule", CASES)
def test_a_broken_rule_is_found(rule: str) -> None:
    assert {violation.rule for violation in audit(CASES[rule], synchronous=rule == "FencedFirst")} == {rule}


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == {*RECORD_RULES, *ACTION_RULES}


@pytest.mark.parametrize(
    ("given", "history"),
    [
        (
            "a failover from a dead cluster that is recorded as demoted",
            [revision(PROMOTE, 10), done(deploy("west", "primary"), 10, DEAD_EAST)],
        ),
        ("a test beside the primary", [HOME, done(deploy("west", "primary", dryRun=True), 10)]),
        (
            "a relocation that gave all",
            [revision(in_progress("Relocate", "Synced"), 10), revision(in_progress("Relocate", "Demote"), 11, SYNCED)],
        ),
        ("a history that begins in the middle", [revision(CLEANED, 900), done(deploy("east", "secondary"), 899)]),
    ],
)
def test_what_is_right_is_not_reported(given: str, history: list[Entry]) -> None:
    assert audit(history) == [], given


def test_a_dead_primary_that_is_not_recorded_as_demoted() -> None:
    """It was promoted by us, does not answer, and is still the home of the state."""
    history = [HOME, done(deploy("east", "primary"), 10), done(deploy("west", "primary"), 10, DEAD_EAST)]
    assert [violation.rule for violation in audit(history)] == ["OnePrimary"]


def test_a_run_that_neither_goes_on_nor_waits() -> None:
    state = in_progress("Failover", "Promote")
    assert is_stuck(Step(state, (), (), {}))
    assert not is_stuck(Step(state, (), (Wait("Restored", "not yet", "wait"),), {}))
    assert not is_stuck(Step(settled(), (), (), {}))
