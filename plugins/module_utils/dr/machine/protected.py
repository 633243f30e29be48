# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The condition Protected: the first report of the home that is missing or bad, in Ramen's order."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import ConditionState
from ..ramen_api import FALSE, TRUE, UNKNOWN, VRGCondition
from ..vrg import VRG
from .context import Context

ERRORS = ("Error", "UploadError", "PeerClassNotFound", "StorageIDNotFound", "ClusterDataConflictPrimary", "ClusterDataConflictSecondary")
REPLICATING = "Replicating"  # a primary whose volumes are being replicated is protected


def protected(context: Context) -> ConditionState:
    home = context.state.home
    vrg = context.own(home)
    if not vrg:
        answer = "has no VolumeReplicationGroup of this protection" if context.answered(home) else "does not answer"
        return ConditionState(UNKNOWN, "Unknown", f"{home or 'No cluster'} {answer}")
    return next(_problems(context, vrg), ConditionState(TRUE, "Protected", f"The workload on {home} is protected"))


def _problems(context: Context, vrg: VRG) -> Iterator[ConditionState]:
    if hooks := _hooks(vrg):
        yield hooks
    kinds = (VRGCondition.CLUSTER_DATA_READY, VRGCondition.DATA_READY) if vrg.is_primary else (VRGCondition.DATA_READY,)
    for kind in kinds:
        yield from _required(vrg, kind)
    if not _is_replicating(vrg):
        yield from _required(vrg, VRGCondition.DATA_PROTECTED)
    if any(item.type == VRGCondition.DESTINATION_INFO for item in vrg.conditions):
        yield from _required(vrg, VRGCondition.DESTINATION_INFO)
    yield from _required(vrg, VRGCondition.NO_CONFLICT)
    yield from _state(context, vrg)
    if vrg.is_primary:
        yield from _required(vrg, VRGCondition.CLUSTER_DATA_PROTECTED)


def _hooks(vrg: VRG) -> ConditionState | None:
    found = vrg.condition(VRGCondition.HOOKS_READY)
    return ConditionState(FALSE, "Error", f"HooksReady: {found.message}") if found and found.status == FALSE else None


def _required(vrg: VRG, kind: str) -> Iterator[ConditionState]:
    found = vrg.condition(kind)
    if found is None:
        yield ConditionState(UNKNOWN, "Unknown", f"{kind} is not reported for generation {vrg.generation}")
    elif found.status != TRUE:
        yield ConditionState(FALSE, "Error" if found.reason in ERRORS else "Progressing", f"{kind} ({found.reason}): {found.message}")


def _is_replicating(vrg: VRG) -> bool:
    found = vrg.condition(VRGCondition.DATA_PROTECTED)
    return bool(vrg.is_primary and found and found.status == FALSE and found.reason == REPLICATING)


def _state(context: Context, vrg: VRG) -> Iterator[ConditionState]:
    if not vrg.is_current:
        yield ConditionState(UNKNOWN, "Unknown", f"The status is of generation {vrg.observed_generation}, not {vrg.generation}")
    elif not (vrg.reports_primary or vrg.reports_secondary):
        yield ConditionState(FALSE, "Progressing", f"The state is {vrg.state or 'not reported'}, not {vrg.spec.get('replicationState')}")
    elif not context.policy.synchronous and not vrg.last_sync:
        yield ConditionState(FALSE, "Progressing", "The first sync is not complete")
