# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The conditions of a DRPlacementControl, in Ramen's order: the column "peer ready" reads the second one. Then ours, Waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ...common.text import as_reason, shortened
from ...common.timestamps import format_time
from ...common.types import Object
from ..model import ConditionState, Wait
from ..ramen_api import FALSE, TRUE, UNKNOWN, Phase, Progression
from ..state import DEPLOY, REVERT, TEST, State
from .context import Context
from .protected import protected

MESSAGE_LIMIT = 32768
AVAILABLE = {
    Phase.DEPLOYED: TRUE,
    Phase.FAILED_OVER: TRUE,
    Phase.RELOCATED: TRUE,
    Phase.INITIATING: FALSE,
    Phase.DEPLOYING: FALSE,
    Phase.FAILING_OVER: FALSE,
    Phase.RELOCATING: FALSE,
}
CLEANING = ("Place", "Clean", "Release")
PAUSED = "Paused"
ALLOWED = "Failover allowed"


def conditions(context: Context, state: State, waits: Sequence[Wait]) -> dict[str, ConditionState]:
    """`state` is the one that this step leaves."""
    result = {"Available": _available(state), "PeerReady": _peer_ready(state), "Protected": protected(context)}
    if context.intent.group:
        result["GlobalAction"] = _global_action(waits)
    if mapping := context.intent.network_mapping or context.policy.network_mapping:
        result["NetworkMappingLoaded"] = _network_mapping(mapping)
    return result | {"Waiting": _waiting(waits)}


def merged(before: Sequence[Object], states: Mapping[str, ConditionState], generation: int, now: datetime) -> list[Object]:
    """The conditions as the status has them. A transition time changes with the status only."""
    earlier = {item["type"]: item for item in before}
    return [
        {
            "type": kind,
            "status": state.status,
            "reason": as_reason(state.reason),
            "message": shortened(state.message, MESSAGE_LIMIT),
            "observedGeneration": generation,
            "lastTransitionTime": (
                earlier[kind]["lastTransitionTime"] if earlier.get(kind, {}).get("status") == state.status else format_time(now)
            ),
        }
        for kind, state in states.items()
    ]


def _available(state: State) -> ConditionState:
    if state.progression == Progression.PAUSED:
        allowed = state.phase == Phase.WAIT_FOR_USER
        return ConditionState(TRUE if allowed else FALSE, PAUSED, ALLOWED if allowed else "The state of the workload is not known")
    phase = state.phase or Phase.INITIATING
    where = f" on {state.home}" if state.home else ""
    return ConditionState(AVAILABLE.get(phase, UNKNOWN), phase, f"{phase}{where}")


def _peer_ready(state: State) -> ConditionState:
    request = state.request
    if state.progression == Progression.PAUSED:
        allowed = state.phase == Phase.WAIT_FOR_USER
        return ConditionState(TRUE if allowed else FALSE, PAUSED, ALLOWED if allowed else "The state of the workload is not known")
    if state.peer_ready:
        return ConditionState(TRUE, "Success", "The peers are secondary, and a sync has reached them since the last move")
    if request is None:
        return ConditionState(FALSE, "Progressing", "The peers wait for the first sync after the last move")
    if request.kind in (TEST, REVERT) or (request.kind == DEPLOY and request.stage == "Protect"):
        return ConditionState(FALSE, "Progressing", f"{request}: {state.progression}")
    reason = "Cleaning" if request.stage in CLEANING and request.kind != DEPLOY else "NotStarted"
    return ConditionState(FALSE, reason, f"{request}: {state.progression}")


def _global_action(waits: Sequence[Wait]) -> ConditionState:
    wait = next((wait for wait in waits if wait.gate == "GlobalConsensus"), None)
    if wait:
        return ConditionState(FALSE, "ConsensusNotReached", str(wait))
    return ConditionState(TRUE, "ConsensusReached", "No DRPlacementControl of the group requests something else")


def _network_mapping(name: str) -> ConditionState:
    """Ramen translates static addresses of virtual machines. Here nothing does, and a move must not look as if it had."""
    message = f"The ConfigMap {name} is not used: virtual machines keep their addresses. Change them after a failover or relocation."
    return ConditionState(FALSE, "NotSupported", message)


def _waiting(waits: Sequence[Wait]) -> ConditionState:
    if not waits:
        return ConditionState(FALSE, "NotWaiting", "No gate is closed")
    return ConditionState(TRUE, waits[0].gate, " ".join(f"Since {wait.since}: {wait}" for wait in waits))
