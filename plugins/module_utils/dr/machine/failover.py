# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Failover: the target becomes primary without the help of the old home, which may be dead.

Its gates ask the target, the state and the policy. No gate needs an answer of the old home or of its store.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import Action, Wait
from ..ramen_api import FAILOVER, Phase, Progression
from ..state import State
from .completion import completion, publish_decision, retain_origin
from .context import Context
from .gates import closed, gate
from .promotion import PROMOTE, READY, demote_claimants, with_phase
from .stages import Stage, with_request


@gate("TargetValid")
def target_valid(context: Context) -> Wait | None:
    """The target has the data: it is primary already, reports that it is secondary, or is the home that a request has begun to demote."""
    target = context.target
    if not context.answered(target):
        return closed(f"{context.explain((target,))} does not answer", "Restore the access to the cluster, or choose another one")
    vrg = context.own(target)
    if vrg and (vrg.is_primary or vrg.reports_secondary or target == context.state.home):
        return None
    found = "reports no state Secondary for its current generation" if vrg else "does not exist, or is of an earlier protection"
    return closed(
        f"{target} cannot take over: its VolumeReplicationGroup {found}",
        "Without replicated data there a failover would lose everything; choose another cluster, or wait for the first sync",
    )


@gate("GlobalConsensus")
def global_consensus(context: Context) -> Wait | None:
    """DRPlacementControls that share their storage move together."""
    wanted = context.intent.action, context.intent.target
    pending = [member.name for member in context.observations.group if (member.action, member.target) != wanted]
    if not pending:
        return None
    return closed(
        f"{', '.join(pending)} of the group {context.intent.group} does not request {' to '.join(wanted)}",
        "Set the same action and cluster on every DRPlacementControl of the group",
        Progression.WAIT_ON_GLOBAL_ACTION,
    )


@gate("Fenced")
def fenced(context: Context) -> Wait | None:
    """Synchronous storage has one copy: the old home must not write to it any more when the target is promoted."""
    origin = context.request.origin
    if not context.policy.synchronous or context.request.kind != FAILOVER or origin in ("", context.target):
        return None
    target, member = context.own(context.target), context.policy.member(origin)
    if (member and member.fenced) or (target and target.claims_data):
        return None
    return closed(
        f"{origin} is not fenced for the current generation of its DRCluster",
        f"Set clusterFence of the DRCluster {origin} to Fenced, or to ManuallyFenced once it is cut off from the storage",
        Progression.WAIT_FOR_FENCING,
    )


@gate("StorageMaintenance")
def storage_maintenance(context: Context) -> Wait | None:
    """Some storage needs a maintenance mode on the target. The state knows which: no request is sent to the dead site."""
    member = context.policy.member(context.target)
    active = member.maintenance if member else frozenset()
    missing = [found for found in context.state.storage if found not in active]
    if context.policy.synchronous or not missing:
        return None
    names = ", ".join(f"{found.provisioner}/{found.replication_id}" for found in missing)
    return closed(
        f"The storage {names} is not in the maintenance mode Failover on {context.target}",
        f"Check status.maintenanceModes of the DRCluster {context.target}",
        Progression.WAIT_FOR_MAINTENANCE,
    )


def record_demotion(context: Context, state: State) -> State:
    """From here on the old home is secondary, whether it answers or not, and the request cannot be taken back."""
    demoted = with_request(state, demoted=True, unanswered=context.unanswered(context.policy.clusters))
    return replace(demoted, decision=retain_origin(demoted), peer_ready=False)


def demote(context: Context) -> tuple[Action, ...]:
    return publish_decision(context) + demote_claimants(context)


PROCEDURE = (
    Stage("Check", Phase.INITIATING, Progression.NONE, after=("TargetValid", "GlobalConsensus")),
    Stage("Prepare", Phase.FAILING_OVER, Progression.CHECKING_PREREQUISITES, after=("TargetValid", "Fenced", "StorageMaintenance")),
    Stage("Demote", Phase.FAILING_OVER, Progression.FAILING_OVER, work=demote, after=("Demoted",), enter=record_demotion),
    with_phase(PROMOTE, Phase.FAILING_OVER),
    with_phase(READY, Phase.FAILING_OVER),
    *completion(Phase.FAILED_OVER),
)
