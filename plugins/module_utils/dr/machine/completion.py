# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The end of a move: the placement and the workload follow the data, and the other clusters become clean peers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..model import Action, SetPlacement, StartWorkload, StopWorkload, Wait
from ..ramen_api import Progression, VRGCondition
from ..state import Decision, State
from .context import Context
from .desired import reconcile_vrg, replicating_primary_spec, replicating_secondary_spec
from .gates import closed, gate, is_open
from .promotion import demote_claimants, promote
from .stages import Stage

# Work


def publish_decision(context: Context) -> tuple[Action, ...]:
    decision, placed = context.state.decision, context.observations.placed
    if (placed.cluster, placed.retained) == (decision.cluster, decision.retained):
        return ()
    return (SetPlacement(decision.cluster, decision.retained, decision.reason),)


def start_workload(context: Context) -> tuple[Action, ...]:
    """Start the workload where it belongs, once its data is there."""
    workload = context.workload(context.target)
    if not workload or not workload.startable or not is_open(context, "Restored"):
        return ()
    return (StartWorkload(context.target),)


def stop_workloads(context: Context) -> tuple[Action, ...]:
    """Stop the workload on the clusters that have observed that they are secondary. Discovered applications are a person's to clean up."""
    if context.intent.discovered:
        return ()
    return tuple(StopWorkload(name) for name in context.others if _runs(context, name) and _is_requested_secondary(context, name))


def set_up_peers(context: Context) -> tuple[Action, ...]:
    """All other clusters that answer become secondary and receive what the primary protects."""
    return tuple(action for name in context.others for action in reconcile_vrg(context, name, replicating_secondary_spec(context, name)))


def replicate(context: Context) -> tuple[Action, ...]:
    """Claimants are demoted before anything else is changed; then both ends of the replication are brought in step."""
    if demotions := demote_claimants(context):
        return demotions
    target = context.target
    primary = reconcile_vrg(context, target, replicating_primary_spec(context, target)) if is_open(context, "Demoted") else ()
    return primary + set_up_peers(context)


def place(context: Context) -> tuple[Action, ...]:
    return promote(context) + publish_decision(context) + start_workload(context)


def clean_up(context: Context) -> tuple[Action, ...]:
    return keep_home(context) + stop_workloads(context)


def keep_home(context: Context) -> tuple[Action, ...]:
    return replicate(context) + publish_decision(context) + start_workload(context)


# What is recorded


def record_home(context: Context, state: State) -> State:
    """The target is the new home. PeerReady needs a sync newer than this, on the clock of the new home."""
    request = state.in_progress
    retained = state.decision.retained if state.decision.retained != request.target else ""
    vrg = context.own(request.target)
    ready = vrg.condition(VRGCondition.DATA_READY) if vrg else None
    return replace(
        state,
        home=request.target,
        last_action=request.action,
        decision=Decision(request.target, retained, f"{request.kind} requested by the user"),
        peer_ready=False,
        moved_at=max(vrg.last_sync if vrg else "", ready.since if ready else ""),
        storage=vrg.storage if vrg else state.storage,
    )


def release_retained(_context: Context, state: State) -> State:
    return replace(state, decision=replace(state.decision, retained=""))


def retain_origin(state: State) -> Decision:
    """The workload is not deleted on the old cluster before that one knows that it is secondary."""
    return Decision("", state.in_progress.origin, f"{state.in_progress} is in progress")


# Gates


@gate("Placed")
def placed(context: Context) -> Wait | None:
    if not publish_decision(context):
        return None
    wanted = context.state.decision.cluster or "no cluster"
    return closed(f"The placement does not name {wanted} yet", "Check that the placement of the workload can be written")


@gate("PeersAnswer")
def peers_answer(context: Context) -> Wait | None:
    missing = context.unanswered(context.others)
    if not missing:
        return None
    return closed(
        f"{context.explain(missing)} does not answer, so it is not known to be secondary",
        "Restore the cluster or its access; cleaning up continues then. A failover does not wait for it",
    )


@gate("PeersObserved")
def peers_observed(context: Context) -> Wait | None:
    """The old cluster knows that it is secondary; only then may the workload be removed there."""
    pending = [name for name in context.others if not _is_requested_secondary(context, name)]
    if not pending:
        return None
    return closed(f"{' and '.join(pending)} has not observed that it is secondary", "Check that Ramen's cluster operator runs there")


@gate("DestinationRemoved")
def destination_removed(context: Context) -> Wait | None:
    """A new primary no longer receives by VolSync."""
    vrg = context.own(context.target)
    if vrg and not (vrg.spec.get("volSync") or {}).get("rdSpec") and not vrg.rd_info:
        return None
    return closed(f"{context.target} still has VolSync's destinations, or does not answer", "Check the ReplicationDestinations there")


@gate("PeersSecondary")
def peers_secondary(context: Context) -> Wait | None:
    pending = [name for name in context.others if not ((vrg := context.own(name)) and vrg.reports_secondary)]
    if not pending:
        return None
    return closed(
        f"The volumes of {' and '.join(pending)} are not reported as secondary for the current generation",
        "Check that nothing uses the volumes there, and the conditions of its VolumeReplicationGroup",
    )


@gate("WorkloadRemoved")
def workload_removed(context: Context) -> Wait | None:
    return not_removed(context, context.others)


def not_removed(context: Context, clusters: Iterable[str]) -> Wait | None:
    """Why the workload is not known to be stopped on these clusters."""
    running = [name for name in clusters if not ((workload := context.workload(name)) and workload.stopped)]
    if not running:
        return None
    where = " and ".join(running)
    if not context.intent.discovered:
        return closed(f"The workload is not known to be stopped on {where}", "Check its Deployments, StatefulSets and pods there")
    vrgs = [context.own(name) for name in running]
    if all(vrg and vrg.is_true(VRGCondition.AUTO_CLEANUP) for vrg in vrgs):
        return closed(f"Ramen removes the application on {where}", "Check the condition AutoCleanup there")
    namespaces = ", ".join(context.intent.protected_namespaces)
    return closed(f"The application still runs on {where}", f"Delete it from the namespaces {namespaces} there", Progression.WAIT_ON_USER)


def _runs(context: Context, cluster: str) -> bool:
    workload = context.workload(cluster)
    return bool(workload and workload.wanted)


def _is_requested_secondary(context: Context, cluster: str) -> bool:
    vrg = context.own(cluster)
    return bool(vrg and not vrg.is_primary and vrg.is_current)


def completion(phase: str) -> tuple[Stage, ...]:
    """The stages after the target is ready."""
    return (
        Stage("Place", phase, Progression.UPDATED_PLACEMENT, ("TargetReady",), place, ("Placed",), record_home),
        Stage("Clean", phase, Progression.CLEANING_UP, work=replicate, after=("DestinationRemoved", "PeersAnswer", "PeersObserved")),
        Stage(
            "Release",
            phase,
            Progression.CLEANING_UP,
            work=clean_up,
            after=("Placed", "PeersAnswer", "WorkloadRemoved", "PeersSecondary"),
            enter=release_retained,
        ),
    )
