# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state of a workload that the bucket does not know, rebuilt once from what the clusters and stores report.

Ramen's table decides: go on, wait for a person's Failover, or stop. One row is less strict than Ramen's: if both clusters are
secondary, a Failover that a user requests afterwards is allowed, since there would be no other way back. One is stricter: if
copies of the DRPlacementControl request different things, a Failover that one of them shows already is not begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..model import Wait
from ..ramen_api import FAILOVER, Phase, Progression
from ..state import DEPLOY, Request, State
from ..vrg import VRG
from .context import Context, Outcome
from .procedures import PROCEDURES
from .stages import stage_names

CONTINUE, ALLOW_FAILOVER, STOP = "Continue", "AllowFailover", "Stop"


@dataclass(frozen=True)
class Evidence:
    """What the clusters and stores report."""

    clusters: tuple[str, ...]
    answered: tuple[str, ...]
    vrgs: Mapping[str, VRG]  # without the primaries of test failovers
    destination: str
    action: str
    stored: VRG | None
    stored_cluster: str

    @property
    def primaries(self) -> list[str]:
        return [name for name, vrg in self.vrgs.items() if vrg.claims_data]

    @property
    def is_as_requested(self) -> bool:
        """Whether the destination is primary by the same action."""
        return self.destination in self.primaries and (self.vrgs[self.destination].spec.get("action") or "") == self.action


def is_rebuilt(state: State) -> bool:
    """Whether the bucket knows nothing of the workload, so that clusters and stores are read."""
    return state.phase in (Phase.NONE, Phase.WAIT_FOR_USER)


def rebuild(context: Context) -> Outcome | None:
    """None if the state is known."""
    state, intent = context.state, context.intent
    if state.is_deleted and not intent.deleting:
        # The next protection of this name. The bucket knows what the one before has left.
        fresh = State(uid=intent.uid, phase=Phase.INITIATING, leftovers=state.leftovers, epoch=state.epoch, revision=state.revision)
        return Outcome(fresh)
    if not is_rebuilt(state) or intent.deleting:
        return None
    evidence = gather(context)
    verdict = judge(context, evidence)
    if verdict == CONTINUE:
        return Outcome(_rebuilt(context, evidence))
    paused = _paused(context, verdict)
    return Outcome(paused if paused != state else None, waits=(_wait(context, verdict, evidence),))


def gather(context: Context) -> Evidence:
    intent, observations, clusters = context.intent, context.observations, context.policy.clusters
    vrgs = {name: vrg for name, vrg in context.vrgs.items() if not vrg.is_test}
    destination = intent.failover if intent.action == FAILOVER else intent.preferred
    if not destination and not intent.action:
        destination = next((name for name, vrg in vrgs.items() if vrg.claims_data), "")
    answered = tuple(name for name in clusters if context.answered(name))
    return Evidence(clusters, answered, vrgs, destination, intent.action, observations.stored, observations.stored_cluster)


def judge(context: Context, evidence: Evidence) -> str:
    """The table, row by row."""
    state, intent = context.state, context.intent
    if not evidence.answered:
        return STOP
    complete = len(evidence.answered) == len(evidence.clusters)
    if complete and not evidence.vrgs:
        return CONTINUE
    # Of copies that request different things, one may show an outdated Failover: a user has to request it again.
    allowed = state.phase == Phase.WAIT_FOR_USER and not intent.disputed
    if _asks_for_failover(context) and (allowed or state.paused_generation < intent.generation):
        return CONTINUE
    if not complete:
        return _judge_part(evidence)
    if not evidence.primaries and len(evidence.vrgs) == len(evidence.clusters):
        return STOP  # the leader was lost in the middle of a relocation
    return CONTINUE if evidence.is_as_requested else ALLOW_FAILOVER


def _judge_part(evidence: Evidence) -> str:
    """Some clusters do not answer."""
    if evidence.primaries and evidence.destination in evidence.primaries:
        return CONTINUE if evidence.is_as_requested else STOP
    if evidence.vrgs:
        return ALLOW_FAILOVER
    here = evidence.destination in evidence.answered
    if not evidence.stored:
        return CONTINUE if here else STOP
    same = (evidence.stored.spec.get("action") or "") == evidence.action
    return CONTINUE if same and here and evidence.stored_cluster == evidence.destination else ALLOW_FAILOVER


def _asks_for_failover(context: Context) -> bool:
    intent = context.intent
    paused = context.state.progression == Progression.PAUSED
    return paused and intent.action == FAILOVER and not intent.dry_run and context.answered(intent.failover)


def _paused(context: Context, verdict: str) -> State:
    state, phase = context.state, Phase.WAIT_FOR_USER if verdict == ALLOW_FAILOVER else Phase.NONE
    since = state.paused_generation or context.intent.generation
    return replace(state, uid=state.uid or context.intent.uid, phase=phase, progression=Progression.PAUSED, paused_generation=since)


def _wait(context: Context, verdict: str, evidence: Evidence) -> Wait:
    silent = context.explain(name for name in evidence.clusters if name not in evidence.answered) or "none"
    found = ", ".join(f"{name} {vrg.spec.get('replicationState')}" for name, vrg in evidence.vrgs.items()) or "none"
    message = f"The bucket has no state of this workload; VolumeReplicationGroups: {found}; clusters without an answer: {silent}"
    remedy = "Request a Failover to the cluster that should have the workload"
    if context.intent.disputed:
        message += "; the copies of the DRPlacementControl request different things, and the newest of them is not known"
        remedy += ". On a copy that shows it already, remove its action first, and wait until its condition RequestAccepted is True"
    if verdict == STOP and len(evidence.answered) < len(evidence.clusters):
        remedy = "Restore the clusters that do not answer"
    return Wait("StateKnown", message, remedy)


def _rebuilt(context: Context, evidence: Evidence) -> State:
    state = replace(context.state, uid=context.state.uid or context.intent.uid, phase=Phase.INITIATING, progression="", waiting=())
    destination, action = evidence.destination, evidence.action
    if evidence.is_as_requested:
        return _resumed(context, replace(state, home=destination, last_action=action), destination, "Ready")
    if evidence.vrgs and action == FAILOVER:
        return replace(state, home=_last_home(evidence))
    if evidence.stored:
        return _resumed(context, state, destination, "Promote")
    return state


def _resumed(context: Context, state: State, target: str, stage: str) -> State:
    """A request that was in progress or complete when the bucket was lost: the rest of its procedure checks everything again."""
    kind = context.intent.action or DEPLOY
    names = stage_names(PROCEDURES[kind])
    silent = context.unanswered(context.policy.clusters)
    return replace(
        state,
        request=Request(
            kind,
            target,
            stage if stage in names else names[0],
            origin=target,
            generation=context.intent.generation,
            started_at=context.now,
            demoted=kind != DEPLOY,
            promoted=True,
            unanswered=silent,
        ),
        started_at=context.now,
    )


def _last_home(evidence: Evidence) -> str:
    """Where the workload was: the primary, else the newest in the stores, else the peer of the destination."""
    peers = [name for name in evidence.clusters if name != evidence.destination]
    primaries = [name for name in evidence.primaries if name != evidence.destination] or evidence.primaries
    return next(iter([*primaries, *filter(None, [evidence.stored_cluster]), *peers]))
