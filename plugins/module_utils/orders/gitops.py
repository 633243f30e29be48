# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The conditions of GitOps on an order: what runs and the engine report of it, and what it means for the cluster. Pure functions.

What makes up these conditions is known elsewhere. Here they are reported, kept while nothing is reported, and dropped when the order no
longer uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..common.timestamps import parse_time
from ..gitops.condition_types import INSTALLED, MISSING, TYPES
from ..kube.errors import Invalid
from ..providers.model import FALSE, TRUE, UNKNOWN, ConditionState
from .model import ClusterOrder
from .outcome import Outcome

NOT_READY = "GitOpsNotReady"  # reason of ClusterAvailable where nothing but GitOps is missing
# How long something of Flux is missing before it is applied again. A tenant administers the cluster, and could delete
# it at once again: each time it takes as long.
REPAIR_SECONDS = 300.0


def used_by(order: ClusterOrder) -> tuple[str, ...]:
    """The conditions that the order has, in their order."""
    return tuple(kind for kind in TYPES if order.condition(kind))


def is_from_hub(order: ClusterOrder) -> bool:
    """Whether Flux of the hub applies to the cluster, which has none itself."""
    used = used_by(order)
    return bool(used) and INSTALLED not in used


def is_repair_due(order: ClusterOrder, now: datetime) -> bool:
    """Whether something of Flux that was applied has been missing for long enough to apply it again."""
    missing = [condition for kind in used_by(order) if (condition := order.condition(kind) or {}).get("reason") == MISSING]
    since = [parse_time(str(condition.get("lastTransitionTime") or "")) for condition in missing]
    return any(moment is not None and (now - moment).total_seconds() >= REPAIR_SECONDS for moment in since)


def conditions_from(part: str, given: Any) -> dict[str, ConditionState]:
    """The conditions that a role has reported with a part of the infrastructure."""
    if not isinstance(given, Mapping) or any(kind not in TYPES for kind in given):
        raise Invalid(f"cluster_infrastructure.{part}.conditions must be a mapping of {', '.join(TYPES)}.", ["infrastructure"])
    states = {}
    for kind, state in given.items():
        if not isinstance(state, Mapping) or state.get("status") not in (TRUE, FALSE, UNKNOWN) or not state.get("reason"):
            raise Invalid(f"cluster_infrastructure.{part}.conditions.{kind} must have status and reason.", ["infrastructure"])
        states[kind] = ConditionState(state["status"], str(state["reason"]), str(state.get("message", "")))
    return states


def gitops_states(order: ClusterOrder, report: Outcome | None, observed: Mapping[str, ConditionState] | None) -> dict[str, ConditionState]:
    """A run that has completed the step decides which there are; between runs the engine observes those."""
    before = {kind: order.condition(kind) or {} for kind in used_by(order)}
    known = {kind: ConditionState(item["status"], item["reason"], item.get("message", "")) for kind, item in before.items()}
    if report and report.step == "post_install" and report.finished:
        reported: dict[str, ConditionState] = {}
        for part in (report.infrastructure or {}).values():
            reported |= part.conditions
        return {kind: reported[kind] for kind in TYPES if kind in reported}
    return known | {kind: state for kind, state in (observed or {}).items() if kind in known}


def cluster_with_gitops(available: ConditionState, states: Mapping[str, ConditionState]) -> ConditionState:
    """A cluster is available to its tenant only with all that the order asks of GitOps."""
    missing = {kind: state for kind, state in states.items() if state.status != TRUE}
    if available.status != TRUE or not missing:
        return available
    status = FALSE if any(state.status == FALSE for state in missing.values()) else UNKNOWN
    kind, state = next(entry for entry in missing.items() if entry[1].status == status)
    return ConditionState(status, NOT_READY, f"{kind} is {state}")
