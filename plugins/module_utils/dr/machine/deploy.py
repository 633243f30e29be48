# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The initial deployment: the first primary, the placement, then the peers."""

from __future__ import annotations

from dataclasses import replace

from ..model import Wait
from ..placement_manager import choose_home
from ..ramen_api import Phase, Progression
from ..state import DEPLOY, Decision, Request, State
from .completion import keep_home, place
from .context import Context, Outcome
from .gates import closed, gate
from .promotion import promote_target, record_promotion
from .stages import Stage, enter_stage


@gate("PolicyValid")
def policy_valid(context: Context) -> Wait | None:
    """Not a gate of failovers: a policy may be invalid because the cluster to fail over from is gone."""
    policy = context.policy
    if policy.valid and not policy.deleting:
        return None
    why = "is being deleted" if policy.deleting else "is not Validated for its current generation"
    return closed(f"The DRPolicy {policy.name} {why}", "Check the conditions of the DRPolicy and of its DRClusters")


@gate("HomeAnswers")
def home_answers(context: Context) -> Wait | None:
    if context.answered(context.target):
        return None
    return closed(f"{context.explain((context.target,))} does not answer", "Restore the cluster or its access")


@gate("NoOtherPrimary")
def no_other_primary(context: Context) -> Wait | None:
    claimants = [name for name in context.others if (vrg := context.vrgs.get(name)) and vrg.claims_data]
    if not claimants:
        return None
    return closed(
        f"{' and '.join(claimants)} has a primary VolumeReplicationGroup of this name already",
        "Delete it if it is a leftover; otherwise set preferredCluster to this cluster",
    )


def record_deployment(_context: Context, state: State) -> State:
    target = state.in_progress.target
    return replace(state, home=target, decision=replace(state.decision, cluster=target))


PROCEDURE = (
    Stage(
        "Create",
        Phase.DEPLOYING,
        Progression.CREATING,
        before=("PolicyValid", "HomeAnswers", "NoOtherPrimary"),
        work=promote_target,
        after=("Restored",),
        enter=record_promotion,
    ),
    Stage("Place", Phase.DEPLOYING, Progression.UPDATING_PLACEMENT, ("Restored",), place, ("Placed",), record_deployment),
    Stage(
        "Protect",
        Phase.DEPLOYED,
        Progression.ENSURING_VOLSYNC,
        work=keep_home,
        after=("PeersAnswer", "PeersObserved", "PeersSecondary"),
    ),
)


def begin_deployment(context: Context) -> Outcome:
    """Choose the first home, and write down why."""
    choice = choose_home(context.intent, context.policy, context.observations)
    if not choice.cluster:
        wait = closed(choice.reason, "Set preferredCluster to a cluster of the policy that answers and is not fenced")
        return Outcome(waits=(replace(wait, gate="HomeChosen"),))
    request = Request(DEPLOY, choice.cluster, "", choice.cluster, context.intent.generation, context.now)
    state = replace(context.state, decision=Decision(reason=choice.reason), started_at=context.now)
    return Outcome(enter_stage(context, state, request, PROCEDURE[0]))
