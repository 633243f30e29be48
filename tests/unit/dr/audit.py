"""Checks what was recorded and done for a workload against the invariants of disaster recovery.

It knows no gate: it judges a history by what was reported when each thing was decided. Simulations and real runs are checked alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.context import Context
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.procedures import PROCEDURES
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.stages import stage_names
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    Action,
    DeleteVRG,
    DeployVRG,
    Intent,
    Observations,
    Policy,
    StartWorkload,
    Step,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.ramen_api import FAILOVER, PRIMARY, RELOCATE, Phase, VRGCondition
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import DEPLOY, TEST, Request, State


@dataclass(frozen=True)
class Report:
    """What was known of one cluster."""

    answered: bool = False
    exists: bool = False  # its object, of this protection
    claims_data: bool = False
    requested_secondary: bool = False  # and it has observed the request
    requested_test: bool = False
    restored: bool = False  # primary, with its volumes, for the current generation
    ready: bool = False  # and with its data
    secondary: bool = False
    protected: bool = False  # the others have its data
    synced: bool = False  # the final sync is complete
    stopped: bool = False  # nothing of the workload runs
    fenced: bool = False


Reports = Mapping[str, Report]


@dataclass(frozen=True)
class Recorded:
    """A revision of the state, and what it was decided on."""

    state: State
    reports: Reports = field(default_factory=dict)


@dataclass(frozen=True)
class Performed:
    """An action that was sent, the epoch and revision it carries, and what it was decided on."""

    action: Action
    epoch: int
    revision: int
    reports: Reports


Entry = Recorded | Performed


@dataclass(frozen=True)
class Violation:
    """A broken invariant, and the number of the entry that breaks it."""

    rule: str
    entry: int
    message: str

    def __str__(self) -> str:
        return f"{self.rule} at entry {self.entry}: {self.message}"


def reports_of(intent: Intent, state: State, observations: Observations, policy: Policy) -> dict[str, Report]:
    """What the observations say about each cluster of the policy."""
    context = Context(intent, state, observations, policy)
    return {name: _report(context, name) for name in policy.clusters}


def audit(entries: Iterable[Entry], *, synchronous: bool = False) -> list[Violation]:
    """All violations in a history, oldest entry first. It may begin in the middle: old revisions are deleted from the bucket."""
    history = _History(synchronous=synchronous)
    found: list[Violation] = []
    for number, entry in enumerate(entries):
        found += [Violation(rule, number, message) for rule, message in _broken(history, entry)]
        history.add(entry)
    return found


def _broken(history: _History, entry: Entry) -> list[tuple[str, str]]:
    if isinstance(entry, Recorded):
        if not history.states:
            return []  # nothing to compare the first one with
        return [(rule, message) for rule, check in RECORD_RULES.items() for message in check(history, entry)]
    return [(rule, message) for rule, check in ACTION_RULES.items() for message in check(history, entry)]


def is_stuck(step: Step) -> bool:
    """Whether a run neither ends, nor goes on, nor says what it waits for."""
    return bool(step.state.request) and not step.actions and not step.waits


@dataclass
class _History:
    """What the entries so far amount to."""

    synchronous: bool
    states: dict[int, State] = field(default_factory=dict)  # by revision
    last: State = field(default_factory=State)
    epoch: int = 0
    promoted: set[str] = field(default_factory=set)  # clusters whose spec was primary last, tests excluded

    def add(self, entry: Entry) -> None:
        if isinstance(entry, Recorded):
            self.last = self.states[entry.state.revision] = entry.state
            return
        self.epoch = max(self.epoch, entry.epoch)
        if isinstance(entry.action, DeployVRG):
            (self.promoted.add if _claims(entry.action) else self.promoted.discard)(entry.action.cluster)


def _claims(action: Action) -> TypeGuard[DeployVRG]:
    return isinstance(action, DeployVRG) and action.spec["replicationState"] == PRIMARY and not action.spec.get("dryRun")


def _report(context: Context, name: str) -> Report:
    vrg, workload, member = context.own(name), context.workload(name), context.policy.member(name)
    any_vrg = context.vrgs.get(name)
    restored = bool(vrg and vrg.is_primary and vrg.is_true(VRGCondition.CLUSTER_DATA_READY))
    return Report(
        answered=context.answered(name),
        exists=bool(any_vrg and context.is_owned(any_vrg)),
        claims_data=bool(any_vrg and any_vrg.claims_data),
        requested_secondary=bool(vrg and not vrg.is_primary and vrg.is_current),
        requested_test=bool(vrg and vrg.is_test),
        restored=restored,
        ready=bool(restored and vrg and vrg.reports_primary and vrg.is_true(VRGCondition.DATA_READY)),
        secondary=bool(vrg and vrg.reports_secondary),
        protected=bool(vrg and vrg.is_true(VRGCondition.DATA_PROTECTED)),
        synced=bool(vrg and vrg.is_current and vrg.synced),
        stopped=bool(workload and workload.stopped),
        fenced=bool(member and member.fenced),
    )


# Rules about what is recorded


def _revisions_grow(history: _History, entry: Recorded) -> Iterator[str]:
    before, after = history.last, entry.state
    if (after.epoch, after.revision) <= (before.epoch, before.revision):
        yield f"revision {after.epoch}-{after.revision} follows {before.epoch}-{before.revision}"


def _never_backwards(history: _History, entry: Recorded) -> Iterator[str]:
    before, after = history.last.request, entry.state.request
    if before and after and _same(before, after):
        stages = stage_names(PROCEDURES[after.kind])
        if stages.index(after.stage) < stages.index(before.stage):
            yield f"{after} goes back from {before.stage} to {after.stage}"


def _demotion_stays(history: _History, entry: Recorded) -> Iterator[str]:
    """After a demotion a request ends by its last stage, or hands the demotion on."""
    before, after = history.last.request, entry.state
    if not before or not before.demoted or after.phase == Phase.DELETING:
        return
    if after.request and not after.request.demoted:
        yield f"{after.request} forgets the demotion of {before}"
    if not after.request and before.stage != stage_names(PROCEDURES[before.kind])[-1]:
        yield f"{before} ends at {before.stage}, after its demotion"


def _decision_follows_data(history: _History, entry: Recorded) -> Iterator[str]:
    cluster, request = entry.state.decision.cluster, entry.state.request
    if not cluster or cluster in (history.last.decision.cluster, history.last.home):
        return
    report = entry.reports.get(cluster, Report())
    if not (report.restored if request and request.kind == DEPLOY else report.ready):
        yield f"the placement moves to {cluster}, which is not ready"


def _home_gave_all(history: _History, entry: Recorded) -> Iterator[str]:
    """A relocation demotes its home after the final sync of a stopped workload."""
    before, after = history.last.request, entry.state.request
    if not after or after.kind != RELOCATE or not after.demoted or (before and before.demoted):
        return
    report = entry.reports.get(after.origin, Report())
    if after.origin != after.target and not report.synced:
        yield f"{after.origin} is demoted before its final sync"
    if after.origin != after.target and not report.stopped:
        yield f"{after.origin} is demoted while its workload runs"


def _target_has_data(history: _History, entry: Recorded) -> Iterator[str]:
    """A failover demotes nothing for a target without data."""
    request = _entered(history, entry, FAILOVER, "Demote")
    if not request or request.target == history.last.home:
        return
    report = entry.reports.get(request.target, Report())
    if not (report.secondary or report.claims_data or report.requested_test):
        yield f"{request.target} has no data to fail over to"


def _clean_peer(history: _History, entry: Recorded) -> Iterator[str]:
    """A relocation leaves its first gates with one primary and a clean peer."""
    request = _entered(history, entry, RELOCATE, "Quiesce")
    if not request:
        return
    if not history.last.peer_ready or not entry.reports.get(request.target, Report()).secondary:
        yield f"{request.target} is not a clean peer"
    if [name for name, report in entry.reports.items() if report.claims_data] != [request.origin]:
        yield f"{request.origin} is not the one primary"
    if silent := [name for name, report in entry.reports.items() if not report.answered]:
        yield f"{', '.join(silent)} does not answer"


def _tested_with_protection(history: _History, entry: Recorded) -> Iterator[str]:
    request = _entered(history, entry, TEST, "Try")
    if request and not entry.reports.get(history.last.home, Report()).ready:
        yield f"a test begins while {history.last.home} is not protected"


def _retained_until_secondary(history: _History, entry: Recorded) -> Iterator[str]:
    """The workload is removed from the old cluster only once that one knows that it is secondary."""
    retained = history.last.decision.retained
    if not retained or entry.state.decision.retained or entry.state.phase == Phase.DELETING:
        return
    if entry.state.decision.cluster != retained and not entry.reports.get(retained, Report()).requested_secondary:
        yield f"the workload is no longer retained on {retained}, which does not know that it is secondary"


# Rules about what is done


def _recorded_first(history: _History, entry: Performed) -> Iterator[str]:
    if history.states and entry.revision not in history.states and entry.revision >= min(history.states):
        yield f"{type(entry.action).__name__} carries revision {entry.revision}, which is not recorded"


def _one_leader(history: _History, entry: Performed) -> Iterator[str]:
    if entry.epoch < history.epoch:
        yield f"{type(entry.action).__name__} is of epoch {entry.epoch} after epoch {history.epoch}"


def _one_primary(history: _History, entry: Performed) -> Iterator[str]:
    """Others that answer are demoted; others that do not are recorded as demoted."""
    if not _claims(entry.action):
        return
    target, state = entry.action.cluster, history.states.get(entry.revision, State())
    for name, report in entry.reports.items():
        if name == target:
            continue
        if report.claims_data:
            yield f"{target} is promoted while {name} is primary in its spec"
        elif not report.answered and name in history.promoted and not _is_recorded_demoted(state, name):
            yield f"{target} is promoted while {name}, which does not answer, is not recorded as demoted"


def _is_recorded_demoted(state: State, name: str) -> bool:
    """By a request whose demotion is recorded, or by the home that the last one left."""
    return bool(state.request and state.request.demoted) or name not in ("", state.home)


def _relocated_data(history: _History, entry: Performed) -> Iterator[str]:
    """A relocation promotes nothing before the others have given their data away."""
    request = _first_promotion(history, entry, RELOCATE)
    for name, report in entry.reports.items() if request else ():
        if request and name != request.target and report.answered and not (report.secondary and report.protected):
            yield f"{request.target} is promoted before {name} is secondary and its data protected"


def _fenced_first(history: _History, entry: Performed) -> Iterator[str]:
    request = _first_promotion(history, entry, FAILOVER)
    if history.synchronous and request and request.origin != request.target and not entry.reports[request.origin].fenced:
        yield f"{request.target} is promoted before {request.origin} is fenced"


def _data_before_workload(_history: _History, entry: Performed) -> Iterator[str]:
    if isinstance(entry.action, StartWorkload) and not entry.reports.get(entry.action.cluster, Report()).restored:
        yield f"the workload starts on {entry.action.cluster} without its data"


def _secondaries_first(history: _History, entry: Performed) -> Iterator[str]:
    """The primary is deleted last, and no member is forgotten."""
    state = history.states.get(entry.revision, State())
    if not isinstance(entry.action, DeleteVRG) or state.phase != Phase.DELETING or not entry.reports[entry.action.cluster].claims_data:
        return
    for name, report in entry.reports.items():
        if report.exists and not report.claims_data:
            yield f"the primary of {entry.action.cluster} is deleted before the secondary of {name}"
        if not report.answered and name not in state.leftovers and not state.is_deleted:
            yield f"{name}, which does not answer, is not recorded before the primary of {entry.action.cluster} is deleted"


def _entered(history: _History, entry: Recorded, kind: str, stage: str) -> Request | None:
    """The request, if it has just entered the stage."""
    before, after = history.last.request, entry.state.request
    if not before or not after or after.kind != kind or after.stage != stage:
        return None
    return after if before.stage != stage else None


def _first_promotion(history: _History, entry: Performed, kind: str) -> Request | None:
    """The request of a promotion that turns a secondary into the primary."""
    request = history.states.get(entry.revision, State()).request
    if not request or request.kind != kind or not _claims(entry.action) or entry.action.cluster != request.target:
        return None
    return None if entry.reports.get(request.target, Report()).claims_data else request


def _same(before: Request, after: Request) -> bool:
    return (before.kind, before.target, before.started_at, before.generation) == (
        after.kind,
        after.target,
        after.started_at,
        after.generation,
    )


RECORD_RULES: dict[str, Callable[[_History, Recorded], Iterator[str]]] = {
    "RevisionsGrow": _revisions_grow,
    "NeverBackwards": _never_backwards,
    "DemotionStays": _demotion_stays,
    "DecisionFollowsData": _decision_follows_data,
    "HomeGaveAll": _home_gave_all,
    "TargetHasData": _target_has_data,
    "CleanPeer": _clean_peer,
    "TestedWithProtection": _tested_with_protection,
    "RetainedUntilSecondary": _retained_until_secondary,
}
ACTION_RULES: dict[str, Callable[[_History, Performed], Iterator[str]]] = {
    "RecordedFirst": _recorded_first,
    "OneLeader": _one_leader,
    "OnePrimary": _one_primary,
    "RelocatedData": _relocated_data,
    "FencedFirst": _fenced_first,
    "DataBeforeWorkload": _data_before_workload,
    "SecondariesFirst": _secondaries_first,
}
