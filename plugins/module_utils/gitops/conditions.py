# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The conditions of an order that Flux's own objects show. Pure functions.

A condition is True only when Flux reports Ready for the generation that its object has now. It is Unknown while Flux works on something
or waits for something else, which changes no phase of the order: Flux reports Ready as Unknown with each new commit. False is a failure,
with the failed object's own message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..common.text import as_reason, shortened
from ..common.types import Object
from ..providers.model import FALSE, TRUE, UNKNOWN, ConditionState
from .condition_types import INSTALLED, MISSING, PROFILES_READY, SOURCE_READY, SYNCED
from .profiles.lock_file import ProfilesLock
from .profiles.render import HELM_RELEASE
from .profiles.state import PROGRESSING as PROFILES_PROGRESSING
from .profiles.state import ready_state

MESSAGE_LIMIT = 2048
# What Flux reports of an object that waits for another one, as a reason or as the begin of a message.
WAITING_REASON, WAITING_MESSAGES = "DependencyNotReady", ("Source artifact not found", "Source is not ready, artifact not found")
ROLLED_OUT = "NewReplicaSetAvailable"  # the reason of a Deployment that has worked before
UNREACHABLE = "ClusterUnreachable"


@dataclass(frozen=True)
class ObservedGitOps:
    """The objects of Flux as they were read; None and absent ones do not exist. `controllers` are those that have to exist."""

    controllers: Sequence[str] = ()
    deployments: Sequence[Object] = ()
    source: Object | None = None
    sync: Object | None = None
    releases: Sequence[Object] = field(default_factory=tuple)


def gitops_conditions(
    used: Iterable[str], observed: ObservedGitOps, lock: ProfilesLock, *, is_applied: bool = True
) -> dict[str, ConditionState]:
    """The conditions that are `used`, in their order. `lock` has the profiles of the order; `is_applied` says whether a run applied it."""
    wanted = set(used)
    derived = {
        INSTALLED: installed(observed.controllers, observed.deployments),
        SOURCE_READY: ready(observed.source, "GitRepository flux-system"),
        SYNCED: ready(observed.sync, "Kustomization flux-system"),
        PROFILES_READY: _profiles_ready(lock, observed.releases, is_applied=is_applied),
    }
    return {kind: state for kind, state in derived.items() if kind in wanted}


def unreachable(used: Iterable[str], problem: str) -> dict[str, ConditionState]:
    """Of a cluster that does not answer nothing is known, and nothing is assumed."""
    return {kind: ConditionState(UNKNOWN, UNREACHABLE, shortened(problem, MESSAGE_LIMIT)) for kind in used}


def is_unreachable(states: Mapping[str, ConditionState]) -> bool:
    """Whether these are the conditions of a cluster that did not answer."""
    return any(state.reason == UNREACHABLE for state in states.values())


def installed(controllers: Sequence[str], deployments: Sequence[Object]) -> ConditionState:
    """Whether every controller runs as its Deployment says now."""
    found = {_name(item): item for item in deployments}
    if not controllers:
        return ConditionState(FALSE, MISSING, "Flux is not installed")
    if missing := [name for name in controllers if name not in found]:
        return ConditionState(FALSE, MISSING, f"Deployment {missing[0]}: it does not exist")
    states = [_available(found[name]) for name in controllers]
    failing = [state for state in states if state.status == FALSE] or [state for state in states if state.status != TRUE]
    return failing[0] if failing else ConditionState(TRUE, "ControllersAvailable", f"{', '.join(controllers)}")


def ready(item: Object | None, called: str) -> ConditionState:
    """What Flux reports of one object."""
    if item is None:
        return ConditionState(FALSE, MISSING, f"{called}: it does not exist")
    metadata, status = _mapping(item.get("metadata")), _mapping(item.get("status"))
    generation = metadata.get("generation")
    condition = _condition(status, "Ready")
    if not condition:
        return ConditionState(UNKNOWN, "Pending", f"{called}: Flux does not report it yet")
    reason, text = as_reason(str(condition.get("reason") or "")), str(condition.get("message") or "")
    message = shortened(f"{called}: {text}" if text else called, MESSAGE_LIMIT)
    if condition.get("observedGeneration", generation) != generation:
        return ConditionState(UNKNOWN, "Outdated", f"{called}: Flux has not observed its generation {generation} yet")
    if condition.get("status") == FALSE:
        waits = reason == WAITING_REASON or text.startswith(WAITING_MESSAGES)
        return ConditionState(UNKNOWN if waits else FALSE, reason, message)
    # Flux counts a generation as observed when it was reconciled with success.
    if condition.get("status") == TRUE and status.get("observedGeneration") == generation:
        return ConditionState(TRUE, reason, message)
    return ConditionState(UNKNOWN, reason if condition.get("status") == UNKNOWN else "Outdated", message)


def _profiles_ready(lock: ProfilesLock, releases: Sequence[Object], *, is_applied: bool) -> ConditionState:
    """Releases that are being installed are no failure. A failed one is named before one that is missing: it says more."""
    state = ready_state(lock, releases)
    if state.reason != PROFILES_PROGRESSING:
        return state
    present = {_name(item) for item in releases}
    missing = [item.name for item in lock.profiles if item.name not in present]
    if missing and is_applied:
        return ConditionState(FALSE, MISSING, f"{HELM_RELEASE} {missing[0]}: it does not exist")
    return ConditionState(UNKNOWN, state.reason, state.message)


def _available(deployment: Object) -> ConditionState:
    name, status, spec = _name(deployment), _mapping(deployment.get("status")), _mapping(deployment.get("spec"))
    generation = _mapping(deployment.get("metadata")).get("generation")
    called = f"Deployment {name}"
    if status.get("observedGeneration") != generation:
        return ConditionState(UNKNOWN, "Outdated", f"{called}: its generation {generation} is not observed yet")
    for kind, bad in (("Progressing", FALSE), ("ReplicaFailure", TRUE)):
        condition = _condition(status, kind)
        if condition.get("status") == bad:
            return ConditionState(FALSE, as_reason(str(condition.get("reason") or kind)), _message(called, condition))
    available, wanted = _condition(status, "Available"), spec.get("replicas", 1)
    if available.get("status") != TRUE:
        has_worked = _condition(status, "Progressing").get("reason") == ROLLED_OUT
        reason = as_reason(str(available.get("reason") or "Pending"))
        return ConditionState(FALSE if has_worked else UNKNOWN, reason, _message(called, available))
    if status.get("updatedReplicas", 0) != wanted or status.get("replicas", 0) != wanted:
        return ConditionState(UNKNOWN, "RollingOut", f"{called}: {status.get('updatedReplicas', 0)} of {wanted} replicas are updated")
    return ConditionState(TRUE, "Available", called)


def _message(called: str, condition: Mapping[str, object]) -> str:
    return shortened(f"{called}: {condition.get('message') or 'it has no available replica yet'}", MESSAGE_LIMIT)


def _condition(status: Object, kind: str) -> Object:
    found = status.get("conditions")
    items = found if isinstance(found, list) else []
    return next((item for item in items if isinstance(item, dict) and item.get("type") == kind), {})


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _name(item: Object) -> str:
    return str(_mapping(item.get("metadata")).get("name") or "")
