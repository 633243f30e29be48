"""Every gate: a situation in which it is the one that is closed, and what happens in the same situation without it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.gates import GATES
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    GroupMember,
    Intent,
    Neighbor,
    Observations,
    Placed,
    Policy,
    Step,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import Decision, State
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.vrg import StorageTarget

from .. import samples
from ..samples import DEAD, RUNNING, STOPPED, STOPPING, in_progress, observed, secondary, settled, vrg

FAILOVER, RELOCATE = samples.intent("Failover", "west"), samples.intent("Relocate", "west")
TEST = samples.intent("Failover", "west", dry_run=True)
DELETED = samples.intent(deleting=True)
SYNC = samples.policy("")
STORAGE = (StorageTarget("csi", "group-1"),)
DELETING = settled(phase="Deleting", progression="Deleting")


def action_of(kind: str) -> dict[str, Any]:
    """The spec of an object that was written by a request of this kind."""
    return {"spec": {"action": kind}}


def sync_spec(role: str, **fields: Any) -> dict[str, Any]:
    return {"async": None, "sync": SYNC.replication, "replicationState": role} | fields


def fenced(name: str) -> Policy:
    members = tuple(replace(member, fenced=member.name == name, fencing=member.name == name) for member in SYNC.members)
    return replace(SYNC, members=members)


@dataclass(frozen=True)
class Case:
    """One situation."""

    gate: str
    given: str
    intent: Intent
    state: State
    observations: Observations
    policy: Policy = field(default_factory=samples.policy)

    def step(self) -> Step:
        return step(self.intent, self.state, self.observations, self.policy)


CREATING = in_progress("Deploy", "Create", "east", home="", decision=Decision())
FAILED = {"home": "west", "last_action": "Failover", "decision": Decision("west")}

CASES = [
    # Deploy
    Case("PolicyValid", "a policy that is not Validated", samples.intent(), CREATING, observed(None, None), samples.policy(valid=False)),
    Case("HomeAnswers", "a home that is gone after it was chosen", samples.intent(), CREATING, observed(DEAD, None)),
    Case("NoOtherPrimary", "a primary of the same name elsewhere", samples.intent(), CREATING, observed(None, vrg(owner="uid-0"))),
    Case(
        "Restored",
        "volumes that are restored for an old generation only",
        samples.intent(),
        CREATING,
        observed(vrg(generation=2, true=(), conditions=[samples.condition("ClusterDataReady", generation=1)]), None),
    ),
    Case(
        "Placed",
        "a placement that is not written yet",
        samples.intent(),
        in_progress("Deploy", "Place", "east"),
        observed(vrg(), None, placed=Placed()),
    ),
    Case("PeersAnswer", "a peer that is dead", samples.intent(), in_progress("Deploy", "Protect", "east"), observed(vrg(), DEAD)),
    Case(
        "PeersObserved",
        "a peer whose operator has not seen that it is secondary",
        FAILOVER,
        in_progress("Failover", "Clean", **FAILED),
        observed(secondary(observed=0, **action_of("Failover")), vrg(**action_of("Failover")), placed=Placed("west")),
    ),
    Case(
        "PeersSecondary",
        "a peer that is not reported as secondary",
        samples.intent(),
        in_progress("Deploy", "Protect", "east"),
        observed(vrg(), secondary(state="Unknown")),
    ),
    # Failover
    Case(
        "RequestValid",
        "a failover to a cluster that the policy does not have",
        samples.intent("Failover", "north"),
        settled(),
        observed(vrg(), secondary()),
    ),
    Case(
        "TargetValid",
        "a target that never had data",
        FAILOVER,
        in_progress("Failover", "Check"),
        observed(DEAD, secondary(state="Unknown")),
    ),
    Case(
        "GlobalConsensus",
        "another DRPlacementControl of the group that stays",
        samples.intent("Failover", "west", group="global-1"),
        in_progress("Failover", "Check"),
        observed(DEAD, secondary(), group=(GroupMember("shop/search", "", ""),)),
    ),
    Case(
        "Fenced",
        "synchronous storage, and an old home that is not fenced",
        FAILOVER,
        in_progress("Failover", "Prepare"),
        observed(DEAD, secondary()),
        SYNC,
    ),
    Case(
        "StorageMaintenance",
        "storage that needs maintenance mode, as the state knows",
        FAILOVER,
        in_progress("Failover", "Prepare", storage=STORAGE),
        observed(DEAD, secondary()),
    ),
    Case(
        "Demoted",
        "an old home that answers and is primary in its spec",
        FAILOVER,
        in_progress("Failover", "Demote", decision=Decision("", "east")),
        observed(vrg(), secondary(), placed=Placed("", "east")),
    ),
    Case(
        "TargetReady",
        "a target whose data is ready for an old generation only",
        FAILOVER,
        in_progress("Failover", "Ready"),
        observed(
            DEAD,
            vrg(
                generation=3, true=("ClusterDataReady",), conditions=[samples.condition("DataReady", generation=2)], **action_of("Failover")
            ),
        ),
    ),
    Case(
        "DestinationRemoved",
        "a new primary that still receives by VolSync",
        FAILOVER,
        in_progress("Failover", "Clean", **FAILED),
        observed(secondary(**action_of("Failover")), vrg(rdInfo=[{"protectedPVC": {"name": "data"}}], **action_of("Failover"))),
    ),
    Case(
        "WorkloadRemoved",
        "an old home whose pods still end",
        FAILOVER,
        in_progress("Failover", "Release", **FAILED),
        observed(
            secondary(**action_of("Failover")),
            vrg(**action_of("Failover")),
            placed=Placed("west"),
            workloads={"east": STOPPING, "west": RUNNING},
        ),
    ),
    Case(
        "PeerSynced",
        "no sync since the failover",
        FAILOVER,
        settled("west", "Failover", peer_ready=False, moved_at=samples.stamp()),
        observed(
            secondary(**action_of("Failover")),
            vrg(**action_of("Failover")),
            placed=Placed("west"),
            workloads={"east": STOPPED, "west": RUNNING},
        ),
    ),
    # Relocate
    Case("AllAnswer", "a home that does not answer", RELOCATE, in_progress("Relocate", "Check"), observed(DEAD, secondary())),
    Case("OnePrimary", "two primaries", RELOCATE, in_progress("Relocate", "Check"), observed(vrg(), vrg())),
    Case(
        "TargetUnfenced",
        "a target that is fenced",
        RELOCATE,
        in_progress("Relocate", "Check"),
        observed(vrg(spec=sync_spec("primary")), secondary(spec=sync_spec("secondary"))),
        fenced("west"),
    ),
    Case(
        "HomeReadyToSwitch",
        "a home whose cluster data is protected for an old generation only",
        RELOCATE,
        in_progress("Relocate", "Check"),
        observed(vrg(generation=2, true=("DataReady",), conditions=[samples.condition("ClusterDataProtected", generation=1)]), secondary()),
    ),
    Case(
        "PeerReady",
        "a peer that no sync has reached since the last move",
        RELOCATE,
        in_progress("Relocate", "Check", peer_ready=False, moved_at=samples.stamp(9)),
        observed(vrg(), secondary()),
    ),
    Case(
        "Prepared",
        "a home that prepared the sync of an old generation",
        RELOCATE,
        in_progress("Relocate", "Quiesce"),
        observed(
            vrg(generation=2, observed=1, spec={"prepareForFinalSync": True, "action": "Relocate"}, prepareForFinalSyncComplete=True),
            secondary(),
        ),
    ),
    Case(
        "WorkloadStopped",
        "a workload whose pods still end",
        RELOCATE,
        in_progress("Relocate", "Clear", decision=Decision()),
        observed(vrg(), secondary(), placed=Placed(), workloads={"east": STOPPING}),
    ),
    Case(
        "FinalSynced",
        "a final sync of an old generation",
        RELOCATE,
        in_progress("Relocate", "FinalSync"),
        observed(vrg(generation=2, observed=1, spec={"runFinalSync": True, "action": "Relocate"}, finalSyncComplete=True), secondary()),
    ),
    Case(
        "DataProtected",
        "a demoted home that has data which no other cluster has",
        RELOCATE,
        in_progress("Relocate", "Demote"),
        observed(secondary(true=("DataReady",), **action_of("Relocate")), secondary()),
    ),
    # Test failover
    Case(
        "TestAllowed",
        "a last sync that is older than three intervals",
        TEST,
        in_progress("TestFailover", "Check"),
        observed(vrg(), secondary(), minutes=16),
    ),
    Case(
        "TestEnds",
        "a test that runs",
        TEST,
        in_progress("TestFailover", "Testing"),
        observed(vrg(), vrg(spec={"dryRun": True, "action": "Failover"}), workloads={"west": RUNNING}),
    ),
    Case(
        "TestReverted",
        "a tested cluster that is not secondary yet",
        samples.intent(),
        in_progress("RevertTestFailover", "Revert"),
        observed(vrg(), secondary(state="Unknown")),
    ),
    # Delete
    Case("MembersAnswer", "a member that has just died", DELETED, DELETING, observed(None, DEAD)),
    Case(
        "SecondariesDeleted",
        "a secondary with a finalizer",
        DELETED,
        DELETING,
        observed(vrg(), secondary(metadata={"deletionTimestamp": samples.stamp()})),
    ),
    Case(
        "PrimariesDeleted",
        "a primary with a finalizer",
        DELETED,
        DELETING,
        observed(vrg(metadata={"deletionTimestamp": samples.stamp()}), None),
    ),
    # Always
    Case(
        "NamespacesAllowed",
        "the namespace of another tenant",
        samples.intent(protected_namespaces=("shop", "bank")),
        State(epoch=1),
        observed(None, None, placed=Placed(), ops_namespace="ops"),
    ),
    Case(
        "NamespacesFree",
        "a namespace that another DRPlacementControl protects already",
        samples.intent(),
        State(epoch=1),
        observed(None, None, placed=Placed(), neighbors=(Neighbor("ops/all", ("shop",), begun=True),)),
    ),
    Case("NoNewerStamp", "an object that a later leader has written", samples.intent(), settled(), observed(vrg(epoch=2), None)),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.gate}: {case.given}" for case in CASES])
def test_a_closed_gate_is_waited_for_and_nothing_passes_it(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = case.step()
    waiting = replace(recorded.state, revision=case.state.revision + 1)
    closed = replace(case, state=waiting).step()
    assert [wait.gate for wait in recorded.waits] == [case.gate] == [wait.gate for wait in closed.waits]
    assert closed.state == waiting
    assert closed.state.request == case.state.request
    assert all(wait.message and wait.remedy and wait.since == samples.stamp(_minutes(case)) for wait in closed.waits)

    monkeypatch.setitem(GATES, case.gate, lambda _context: None)
    opened = replace(case, state=waiting).step()
    assert case.gate not in [wait.gate for wait in opened.waits]
    assert (opened.state, opened.actions) != (closed.state, closed.actions), "the gate makes no difference"


def test_every_gate_has_a_situation() -> None:
    assert {case.gate for case in CASES} == set(GATES)
    assert len(CASES) == len(GATES)


def _minutes(case: Case) -> float:
    return (case.observations.now - samples.START).total_seconds() / 60
