# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Relocate: the home gives up its data in order, then the preferred cluster becomes primary. Nothing is lost.

All clusters have to answer until the home is demoted. Until then the request can be taken back.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import Action, StopWorkload, Wait
from ..ramen_api import Phase, Progression, VRGCondition
from ..state import Decision, State
from ..vrg import VRG
from .completion import completion, not_removed, publish_decision
from .context import Context
from .desired import primary_spec, reconcile_vrg, secondary_spec
from .gates import closed, gate
from .promotion import PROMOTE, READY, with_phase
from .stages import Stage, with_request


@gate("AllAnswer")
def all_answer(context: Context) -> Wait | None:
    missing = context.unanswered(context.policy.clusters)
    if not missing:
        return None
    return closed(
        f"{context.explain(missing)} does not answer, and a relocation needs all clusters",
        "Restore the cluster or its access; if it is lost, request a Failover",
    )


@gate("OnePrimary")
def one_primary(context: Context) -> Wait | None:
    claimants = [name for name, vrg in context.vrgs.items() if vrg.claims_data]
    if claimants == [context.request.origin]:
        return None
    found = " and ".join(claimants) if claimants else "no cluster"
    return closed(
        f"{found} has a primary VolumeReplicationGroup; a relocation starts from exactly one, on {context.request.origin}",
        "Request a Failover to the cluster with the data",
    )


@gate("TargetUnfenced")
def target_unfenced(context: Context) -> Wait | None:
    member = context.policy.member(context.target)
    if not context.policy.synchronous or (member and not member.fencing):
        return None
    return closed(f"{context.target} is fenced", f"Set clusterFence of the DRCluster {context.target} to Unfenced")


@gate("HomeReadyToSwitch")
def home_ready(context: Context) -> Wait | None:
    kinds = (VRGCondition.DATA_READY, VRGCondition.CLUSTER_DATA_PROTECTED)
    home = context.own(context.request.origin)
    if home and home.is_true(*kinds):
        return None
    missing = home.not_true(*kinds) if home else "the VolumeReplicationGroup"
    return closed(
        f"{context.request.origin} is not ready to switch: {missing} is missing, or not True for the current generation",
        "Check the VolumeReplicationGroup there, and its stores",
    )


@gate("PeerReady")
def peer_ready(context: Context) -> Wait | None:
    """The target is clean: it is secondary, and a sync has reached it since the last move."""
    target = context.own(context.target)
    if context.state.peer_ready and target and target.reports_secondary:
        return None
    return closed(
        f"{context.target} is not a clean peer: it reports no state Secondary, or no sync has reached it since the last move",
        "Wait until the condition PeerReady is True",
    )


@gate("Prepared")
def prepared(context: Context) -> Wait | None:
    home = _home(context)
    if home and home.is_current and home.spec.get("prepareForFinalSync") and home.prepared:
        return None
    return closed(f"{context.request.origin} has not prepared the final sync", _home_remedy(context))


@gate("WorkloadStopped")
def workload_stopped(context: Context) -> Wait | None:
    """The final sync is final only if nothing writes any more."""
    return not_removed(context, (context.request.origin,))


@gate("FinalSynced")
def final_synced(context: Context) -> Wait | None:
    home = _home(context)
    if home and home.is_current and home.spec.get("runFinalSync") and home.synced:
        return None
    return closed(f"{context.request.origin} has not completed the final sync", _home_remedy(context))


@gate("DataProtected")
def data_protected(context: Context) -> Wait | None:
    """The demoted clusters have given all their data away."""
    pending = [name for name in context.others if not ((vrg := context.own(name)) and vrg.is_true(VRGCondition.DATA_PROTECTED))]
    if not pending:
        return None
    return closed(
        f"DataProtected of {' and '.join(pending)} is not True for the current generation",
        f"Wait for the last sync, or request a Failover to {context.request.origin} to go back",
    )


def prepare_final_sync(context: Context) -> tuple[Action, ...]:
    origin = context.request.origin
    return reconcile_vrg(context, origin, primary_spec(context, origin, prepareForFinalSync=True))


def clear_placement(context: Context) -> tuple[Action, ...]:
    origin = context.request.origin
    workload = context.workload(origin)
    stop = (StopWorkload(origin),) if workload and workload.wanted and not context.intent.discovered else ()
    return publish_decision(context) + stop


def run_final_sync(context: Context) -> tuple[Action, ...]:
    origin = context.request.origin
    return reconcile_vrg(context, origin, primary_spec(context, origin, runFinalSync=True))


def demote_others(context: Context) -> tuple[Action, ...]:
    return tuple(action for name in context.others for action in reconcile_vrg(context, name, secondary_spec(context, name)))


def record_cleared(_context: Context, state: State) -> State:
    return replace(state, decision=Decision(reason=f"{state.request} is in progress"))


def record_demotion(_context: Context, state: State) -> State:
    return replace(with_request(state, demoted=True), peer_ready=False)


def _home(context: Context) -> VRG | None:
    return context.own(context.request.origin)


def _home_remedy(context: Context) -> str:
    return f"Check the VolumeReplicationGroup of {context.request.origin}. The request can still be taken back"


BEFORE_SWITCH = ("AllAnswer", "PolicyValid", "OnePrimary", "GlobalConsensus", "TargetUnfenced", "HomeReadyToSwitch", "PeerReady")
# All of it again: from the next stage on there is no way back but a failover.
BEFORE_DEMOTION = ("AllAnswer", "PeerReady", "WorkloadStopped", "FinalSynced")

PROCEDURE = (
    Stage("Check", Phase.INITIATING, Progression.NONE, after=BEFORE_SWITCH),
    Stage("Quiesce", Phase.INITIATING, Progression.PREPARING_FINAL_SYNC, work=prepare_final_sync, after=("Prepared",)),
    Stage(
        "Clear",
        Phase.RELOCATING,
        Progression.CLEARING_PLACEMENT,
        work=clear_placement,
        after=("Placed", "WorkloadStopped"),
        enter=record_cleared,
    ),
    Stage("FinalSync", Phase.RELOCATING, Progression.RUNNING_FINAL_SYNC, work=run_final_sync, after=("FinalSynced",)),
    Stage("Synced", Phase.RELOCATING, Progression.FINAL_SYNC_COMPLETE, work=run_final_sync, after=BEFORE_DEMOTION),
    Stage(
        "Demote",
        Phase.RELOCATING,
        Progression.ENSURING_SECONDARY,
        work=demote_others,
        after=("AllAnswer", "PeersSecondary", "DataProtected"),
        enter=record_demotion,
    ),
    with_phase(PROMOTE, Phase.RELOCATING),
    with_phase(READY, Phase.RELOCATING),
    *completion(Phase.RELOCATED),
)
