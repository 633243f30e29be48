# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status of a FleetCluster: conditions of quota and scheduling, then what its hub reports. Pure; a repeated call changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime

from ..common.text import shortened
from ..common.timestamps import format_time
from ..common.types import Object
from ..kube.event_recorder import NORMAL, WARNING, Event
from ..providers.model import FALSE, TRUE, ConditionState
from .model import DELETING, PENDING, PROGRESSING, QUOTA_RESERVED, SCHEDULED, ClusterAssignment, FleetCluster
from .quota import Refusal
from .schedule import Choice

MESSAGE_LIMIT = 32768
REPORTED = ("apiURL", "consoleURL", "version", "nodeSets", "failure", "profiles")
EXPIRING = "Expiring"  # only while the end is near
SECRETS_AVAILABLE = "SecretsAvailable"  # only for a cluster that refers to Secrets
HUB_REPORTING = "HubReporting"  # only while the hub of the cluster does not report
OWN = (QUOTA_RESERVED, SCHEDULED, SECRETS_AVAILABLE, EXPIRING, HUB_REPORTING)
NOT_SCHEDULED = ConditionState(FALSE, "WaitingForQuota", "Without quota no hub is chosen")
WAITING_FOR_SECRETS = "WaitingForSecrets"
UNSCHEDULABLE = "Unschedulable"

Transient = Mapping[str, ConditionState]  # conditions that exist only while they matter, by type


def derive_status(
    cluster: FleetCluster,
    now: datetime,
    *,
    refusal: Refusal | None = None,
    choice: Choice | None = None,
    assignment: ClusterAssignment | None = None,
    transient: Transient | None = None,
) -> Object:
    """The status after a decision about quota (`refusal`) and scheduling (`choice`), and the last report of the hub."""
    transient = transient or {}
    before = cluster.raw.get("status") or {}
    status = copy.deepcopy({key: value for key, value in before.items() if key not in REPORTED})
    if choice and choice.hub:
        status["hub"] = choice.hub
    if choice:
        status["scheduling"] = {"message": shortened(choice.explanation, MESSAGE_LIMIT)}
    report = (assignment.raw.get("status") or {}) if assignment else {}
    source = report if assignment else before
    status |= {key: source[key] for key in REPORTED if key in source}
    status["state"] = _state(cluster, status, report)
    if status["state"] == DELETING and before.get("state") not in (None, DELETING):
        status["lastState"] = before["state"]  # for the record
    status["nodes"] = _nodes(cluster, status)
    status["observedGeneration"] = cluster.raw["metadata"].get("generation", 1)
    secrets = transient.get(SECRETS_AVAILABLE)
    if secrets and secrets.status == FALSE and not status.get("hub"):
        waiting = ConditionState(FALSE, WAITING_FOR_SECRETS, secrets.message)
        wanted = {QUOTA_RESERVED: waiting, SCHEDULED: waiting}
    else:
        wanted = {QUOTA_RESERVED: _quota(refusal), SCHEDULED: _scheduled(status, refusal, choice)}
    wanted |= transient
    status["conditions"] = _conditions(before.get("conditions") or [], wanted, report.get("conditions") or [], now)
    return status


def shows_report(cluster: FleetCluster, assignment: ClusterAssignment) -> bool:
    """Whether the status of a cluster with a hub shows what the hub reported last."""
    shown, report = cluster.raw.get("status") or {}, assignment.raw.get("status") or {}
    theirs = [[each for each in status.get("conditions") or () if each["type"] not in OWN] for status in (shown, report)]
    return (
        all(shown.get(key) == report.get(key) for key in REPORTED)
        and shown.get("state") == _state(cluster, shown, report)
        and (not report.get("conditions") or theirs[0] == theirs[1])
    )


def _state(cluster: FleetCluster, status: Object, report: Object) -> str:
    if cluster.is_deleting:
        return DELETING
    if not status.get("hub"):
        return PENDING
    return str(report.get("state") or status.get("state", "").replace(PENDING, "") or PROGRESSING)


def _nodes(cluster: FleetCluster, status: Object) -> str:
    ready = sum(int(each.get("ready", 0)) for each in (status.get("nodeSets") or {}).values())
    return f"{ready}/{sum(cluster.nodes.values())}"


def _quota(refusal: Refusal | None) -> ConditionState:
    return ConditionState(FALSE, refusal.reason, refusal.message) if refusal else ConditionState(TRUE, "Reserved")


def _scheduled(status: Object, refusal: Refusal | None, choice: Choice | None) -> ConditionState:
    if status.get("hub"):
        return ConditionState(TRUE, "Bound", f"Bound to the hub {status['hub']}")
    if choice:
        return ConditionState(FALSE, UNSCHEDULABLE, choice.explanation)
    return NOT_SCHEDULED if refusal else ConditionState(FALSE, "Waiting", "No hub was chosen yet")


def _conditions(before: list[Object], wanted: dict[str, ConditionState], reported: Iterable[Object], now: datetime) -> list[Object]:
    known = {each["type"]: each for each in before}
    own = [_condition(known.get(name), name, state, now) for name, state in wanted.items()]
    theirs = [dict(each) for each in reported] or [each for each in before if each["type"] not in OWN]
    return own + [each for each in theirs if each["type"] not in OWN]


def _condition(before: Object | None, name: str, state: ConditionState, now: datetime) -> Object:
    changed = before is None or before["status"] != state.status
    since = format_time(now) if changed or before is None else before["lastTransitionTime"]
    message = shortened(state.message, MESSAGE_LIMIT)
    return {"type": name, "status": state.status, "reason": state.reason, "message": message, "lastTransitionTime": since}


def events_of(before: Object, after: Object) -> list[Event]:
    """The Events of a change: own conditions whose status or reason differ."""
    known = {each["type"]: each for each in before.get("conditions") or ()}
    changed = [each for each in after["conditions"] if each["type"] in OWN and _differs(known.get(each["type"]), each)]
    return [Event(each["reason"], each["message"] or each["type"], _event_type(each)) for each in changed]


def _differs(before: Object | None, after: Object) -> bool:
    return before is None or any(before[key] != after[key] for key in ("status", "reason"))


def _event_type(condition: Object) -> str:
    return NORMAL if (condition["status"] == TRUE) != (condition["type"] == EXPIRING) else WARNING
