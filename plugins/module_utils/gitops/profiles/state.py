# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How far the profiles of a lock file are installed, by the releases that Flux reports on. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...common.text import shortened
from ...common.types import Object
from ...providers.model import FALSE, TRUE, ConditionState
from .lock_file import LockedProfile, ProfilesLock
from .render import HELM_RELEASE, REVISION_LABEL

READY, FAILED, PROGRESSING = "ProfilesReady", "ProfileFailed", "ProfilesProgressing"
WAITS_FOR_DEPENDENCY = "DependencyNotReady"  # the reason of Flux
# Flux's messages while it fetches a chart; any other message about a source is an error.
SOURCE_STARTING = ("does not have an artifact", "latest generation of object has not been reconciled")
MESSAGE_LIMIT, SHOWN = 1024, 10

Stage = Literal["ready", "failed", "waiting", "progressing"]


@dataclass(frozen=True)
class ProfileState:
    """The state of one release. `message` is Flux's own."""

    name: str
    layer: int
    version: str
    stage: Stage
    message: str = ""


def profile_states(lock: ProfilesLock, releases: Iterable[Object]) -> list[ProfileState]:
    """The state of every release of the lock, from the lowest layer to the highest."""
    observed = {str(release["metadata"].get("name")): release for release in releases}
    return [_state(item, lock, observed.get(item.name)) for item in lock.profiles]


def ready_state(lock: ProfilesLock, releases: Iterable[Object]) -> ConditionState:
    """The condition of all profiles: it names the first failed release with its own message, and those that wait."""
    states = profile_states(lock, releases)
    waiting = _names("waiting", [state for state in states if state.stage == "waiting"])
    for stage, reason, others in (("failed", FAILED, "also failed"), ("progressing", PROGRESSING, "also progressing")):
        if found := [state for state in states if state.stage == stage]:
            first = f"{HELM_RELEASE} {found[0].name}: {shortened(found[0].message, MESSAGE_LIMIT)}"
            return ConditionState(FALSE, reason, "; ".join(filter(None, [first, _names(others, found[1:]), waiting])))
    if waiting:
        return ConditionState(FALSE, PROGRESSING, waiting)
    return ConditionState(TRUE, READY, f"{len(states)} profiles ready")


def _names(title: str, states: Sequence[ProfileState]) -> str:
    more = f" and {len(states) - SHOWN} more" if len(states) > SHOWN else ""
    return f"{title}: {', '.join(state.name for state in states[:SHOWN])}{more}" if states else ""


def _state(item: LockedProfile, lock: ProfilesLock, release: Object | None) -> ProfileState:
    def state(stage: Stage, message: str = "") -> ProfileState:
        return ProfileState(item.name, item.layer, item.version, stage, message)

    # A tenant administers the cluster, and its objects may have anything as their status.
    metadata = _mapping((release or {}).get("metadata"))
    if release is None or _mapping(metadata.get("labels")).get(REVISION_LABEL) != lock.revisions[item.name]:
        return state("progressing", "not applied yet")
    if metadata.get("deletionTimestamp"):
        return state("progressing", "being deleted")
    status = _mapping(release.get("status"))
    conditions = status.get("conditions")
    known = conditions if isinstance(conditions, list) else []
    ready: Object = next((each for each in known if isinstance(each, dict) and each.get("type") == "Ready"), {})
    if ready.get("observedGeneration", metadata.get("generation")) != metadata.get("generation"):
        return state("progressing", "Flux has not observed its new spec yet")
    message = str(ready.get("message") or "")
    if ready.get("status") == FALSE and ready.get("reason") == WAITS_FOR_DEPENDENCY:
        return state("waiting", message)
    if ready.get("status") == FALSE and message.endswith(SOURCE_STARTING):
        return state("progressing", message)
    if ready.get("status") == FALSE:
        return state("failed", message or str(ready.get("reason") or "not ready"))
    # Flux sets this generation when its reconciliation is complete, that of the condition when it starts.
    if ready.get("status") == TRUE and status.get("observedGeneration") == metadata.get("generation"):
        return state("ready", message)
    return state("progressing", message or "installation not started yet")


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}
