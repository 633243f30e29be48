# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The events of a fleet for the rules of a site, derived from an object before and after a change. Pure.

An event reports a transition, so the same state is reported once. Its `uuid` is the same for the same transition, whichever source
reports it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from ..common.types import Object
from ..fleet.hub_state import is_ready
from ..fleet.model import DEGRADED, FAILED, QUOTA_RESERVED, READY, SCHEDULED
from ..fleet.status import EXPIRING, UNSCHEDULABLE
from ..providers.model import FALSE, TRUE

STATES = {READY: "cluster_ready", DEGRADED: "cluster_degraded", FAILED: "cluster_failed"}
REFUSED = ("QuotaExceeded", "TenantDenied", "NoQuota")
TYPES = (
    "cluster_accepted",
    "cluster_scheduled",
    "cluster_unschedulable",
    *STATES.values(),
    "cluster_expiring",
    "cluster_expired",
    "cluster_denied",
    "cluster_deleted",
    "hub_not_ready",
    "hub_ready",
)


def cluster_events(before: Object | None, after: Object) -> list[Object]:
    """What happened to a FleetCluster, in the order of its life."""
    return [_cluster_event(kind, after, reason, message) for kind, reason, message in _transitions(before or {}, after)]


def deleted_event(item: Object) -> Object:
    """A FleetCluster does not exist any more, on its hub and at home."""
    return _cluster_event("cluster_deleted", item, "Deleted", "")


def ended_event(item: Object, reason: str, message: str) -> Object:
    """A FleetCluster is being deleted because its time is over, or its tenant is denied."""
    return _cluster_event("cluster_denied" if reason == "Denied" else "cluster_expired", item, reason, message)


def hub_events(before: Object | None, after: Object) -> list[Object]:
    """Whether a hub became ready, or no longer is."""
    status = after.get("status") or {}
    then, now = is_ready((before or {}).get("status") or {}), is_ready(status)
    if then == now:
        return []
    ready = _conditions(after).get(READY, {})
    kind, metadata = "hub_ready" if now else "hub_not_ready", after["metadata"]
    identity = _identity(metadata["uid"], kind, str(ready.get("lastTransitionTime", "")))
    about = {"hub": metadata["name"], "uid": metadata["uid"], "clusters": int(status.get("clusters") or 0)}
    return [{"type": kind, **about, "reason": ready.get("reason", ""), "message": ready.get("message", ""), "meta": {"uuid": identity}}]


def _transitions(before: Object, after: Object) -> Iterator[tuple[str, str, str]]:
    then, now = _conditions(before), _conditions(after)

    def changed(name: str, status: str, *reasons: str) -> Object | None:
        """The condition, if it has become so."""
        found, earlier = now.get(name, {}), then.get(name, {})
        is_so = found.get("status") == status and (not reasons or found.get("reason") in reasons)
        was_so = earlier.get("status") == status and (not reasons or earlier.get("reason") == found.get("reason"))
        return found if is_so and not was_so else None

    quota, scheduled, expiring = changed(QUOTA_RESERVED, TRUE), changed(SCHEDULED, TRUE), changed(EXPIRING, TRUE)
    if refused := changed(QUOTA_RESERVED, FALSE, *REFUSED):
        yield "cluster_denied", refused["reason"], refused["message"]
    if quota:
        yield "cluster_accepted", quota["reason"], quota["message"]
    if unfit := changed(SCHEDULED, FALSE, UNSCHEDULABLE):
        yield "cluster_unschedulable", unfit["reason"], unfit["message"]
    if scheduled:
        yield "cluster_scheduled", scheduled["reason"], scheduled["message"]
    if expiring:
        yield "cluster_expiring", expiring["reason"], expiring["message"]
    state = (after.get("status") or {}).get("state", "")
    if state in STATES and state != (before.get("status") or {}).get("state"):
        failure = (after["status"].get("failure") or {}) if state == FAILED else {}
        yield STATES[state], str(failure.get("reason", state)), str(failure.get("message", ""))


def _conditions(item: Object) -> dict[str, Object]:
    return {each["type"]: each for each in (item.get("status") or {}).get("conditions") or ()}


def _cluster_event(kind: str, item: Object, reason: str, message: str) -> Object:
    metadata, status = item["metadata"], item.get("status") or {}
    times = [str(each.get("lastTransitionTime", "")) for each in status.get("conditions") or ()]
    cluster = {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    identity = _identity(metadata["uid"], kind, max(times, default=""))
    about = {"cluster": cluster, "hub": status.get("hub", ""), "template": item["spec"]["template"]}
    return {"type": kind, **about, "reason": reason, "message": message, "meta": {"uuid": identity}}


def _identity(uid: str, kind: str, since: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{uid} {kind} {since}"))
