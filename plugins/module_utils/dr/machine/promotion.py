# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Demotion before promotion: the work and the gates by which a cluster becomes the one primary.

A cluster that does not answer cannot be written to. Its demotion is in the state, and is written to it when it answers again.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import Action, Wait
from ..ramen_api import Progression, VRGCondition
from ..state import State
from .context import Context
from .desired import primary_spec, reconcile_vrg, secondary_spec
from .gates import closed, first_closed, gate
from .stages import Stage, with_request


def record_promotion(_context: Context, state: State) -> State:
    return with_request(state, promoted=True)


def demote_claimants(context: Context) -> tuple[Action, ...]:
    """Demote every other cluster that answers and is primary in its spec, by any leader or person.

    The others get the current epoch: from then on they refuse a late promotion by an earlier leader.
    """
    epoch = context.state.epoch
    return tuple(action for name in _undemoted(context) for action in reconcile_vrg(context, name, secondary_spec(context, name), epoch))


def promote(context: Context) -> tuple[Action, ...]:
    """Demotions first; the promotion once they are written, and the old home is fenced where that is needed."""
    allowed = first_closed(context, ("Demoted", "Fenced")) is None
    return demote_claimants(context) + (promote_target(context) if allowed else ())


def promote_target(context: Context) -> tuple[Action, ...]:
    return reconcile_vrg(context, context.target, primary_spec(context, context.target))


@gate("Demoted")
def demoted(context: Context) -> Wait | None:
    claimants = _undemoted(context)
    if not claimants:
        return None
    return closed(
        f"The VolumeReplicationGroup of {' and '.join(claimants)} is still primary in its spec, or does not have the current epoch yet",
        "It is demoted first; check that its API server accepts changes to the VolumeReplicationGroup",
    )


@gate("Restored")
def restored(context: Context) -> Wait | None:
    """No workload before its data: the volumes are there for the current generation."""
    vrg = context.own(context.target)
    if vrg and vrg.is_primary and vrg.is_true(VRGCondition.CLUSTER_DATA_READY):
        return None
    return closed(_not_yet(context, VRGCondition.CLUSTER_DATA_READY), _what_to_check(context))


@gate("TargetReady")
def target_ready(context: Context) -> Wait | None:
    kinds = (VRGCondition.DATA_READY, VRGCondition.CLUSTER_DATA_READY)
    vrg = context.own(context.target)
    if vrg and vrg.reports_primary and vrg.is_true(*kinds):
        return None
    return closed(_not_yet(context, *kinds), _what_to_check(context))


def _undemoted(context: Context) -> list[str]:
    found = ((name, context.vrgs.get(name)) for name in context.others)
    return [name for name, vrg in found if vrg and (vrg.claims_data or (vrg.epoch < context.state.epoch and not vrg.deleting))]


def _not_yet(context: Context, *kinds: str) -> str:
    vrg = context.own(context.target)
    if not context.answered(context.target):
        return f"{context.explain((context.target,))} does not answer"
    if not vrg or not vrg.is_primary:
        return f"{context.target} has no primary VolumeReplicationGroup of this protection yet"
    missing = vrg.not_true(*kinds)
    detail = f"{missing} is not True for generation {vrg.generation}" if missing else f"its state is {vrg.state or 'not reported'}"
    return f"The VolumeReplicationGroup of {context.target} is not ready: {detail}"


def _what_to_check(context: Context) -> str:
    name = f"{context.intent.namespace}/{context.intent.name}"
    return f"Check the conditions of the VolumeReplicationGroup {name} on {context.target} and the stores it restores from"


# The stages that end a promotion, for failover and relocate.
PROMOTE = Stage(
    "Promote", None, Progression.WAITING_FOR_RESTORE, work=promote, after=("Demoted", "Fenced", "Restored"), enter=record_promotion
)
READY = Stage("Ready", None, Progression.WAIT_FOR_READINESS, work=promote, after=("Demoted", "TargetReady"), enter=record_promotion)


def with_phase(stage: Stage, phase: str) -> Stage:
    return replace(stage, phase=phase)
