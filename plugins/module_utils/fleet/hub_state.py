# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status of a Hub from what its agent reports: heartbeat, templates, nodes, versions, and the condition Ready. Pure.

Reservations are no part of it. A hub is ready while its agent reports and every check holds; the condition names those that do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..common.text import shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..providers.model import FALSE, TRUE, ConditionState
from .compare_and_swap import merge_patch
from .hub_report import HubReport
from .model import READY

MESSAGE_LIMIT = 32768
UNKNOWN = "Unknown"
NOT_REPORTING, NOT_REPORTED_YET, CHECK_FAILED, CHECKS_PASSED = "AgentNotReporting", "NotReportedYet", "CheckFailed", "ChecksPassed"
REPORTED = ("templates", "nodes", "versions", "releases", "agentVersion")
HEARTBEAT_INTERVAL = timedelta(seconds=30)


@dataclass(frozen=True)
class AgentState:
    """What is known of the agent of a hub: when it last reported, None if it never did, and its report."""

    heartbeat: datetime | None = None
    report: HubReport | None = None

    def stopped_reporting(self, now: datetime, hub_timeout: timedelta) -> bool:
        return self.heartbeat is not None and now - self.heartbeat > hub_timeout


def heartbeat_interval(hub_timeout: timedelta) -> timedelta:
    """A heartbeat that is the only change is written so often at most: each write wakes all that watch hubs.

    Others know the hub by what is written, so it must not look as if it did not report between two writes.
    """
    return min(HEARTBEAT_INTERVAL, hub_timeout / 3)


def ready_state(agent: AgentState, now: datetime, hub_timeout: timedelta) -> ConditionState:
    """The condition Ready."""
    if agent.heartbeat is None:
        return ConditionState(UNKNOWN, NOT_REPORTED_YET, "The agent of the hub has not reported yet: deploy it with its credential.")
    if agent.stopped_reporting(now, hub_timeout):
        since = format_time(agent.heartbeat)
        text = f"The agent of the hub has not reported since {since}: check the hub and its connection."
        return ConditionState(UNKNOWN, NOT_REPORTING, text)
    if agent.report is None:
        return ConditionState(FALSE, CHECK_FAILED, "report: The agent has not written its report yet.")
    if not agent.report.is_ready:
        return ConditionState(FALSE, CHECK_FAILED, agent.report.missing or "report: The report has no check.")
    return ConditionState(TRUE, CHECKS_PASSED, f"{len(agent.report.checks)} checks passed")


def derive_hub_status(status: Object, agent: AgentState, now: datetime, hub_timeout: timedelta) -> Object:
    """The merge patch for the status of the hub; empty if nothing has to be written."""
    wanted = _reported(agent.report)
    present = {name: status[name] for name in REPORTED if name in status}
    # A hub whose report is lost keeps what it offered. It is not ready, so nothing is bound to it.
    changes = merge_patch(present, wanted) if agent.report else {}
    if conditions := _conditions(status, ready_state(agent, now, hub_timeout), now):
        changes["conditions"] = conditions
    written = parse_time(status.get("heartbeat"))
    if agent.heartbeat and (changes or written is None or agent.heartbeat - written >= heartbeat_interval(hub_timeout)):
        heartbeat = format_time(agent.heartbeat)
        changes |= {"heartbeat": heartbeat} if heartbeat != status.get("heartbeat") else {}
    return changes


def is_ready(status: Object) -> bool:
    """Whether a hub with this status takes clusters."""
    return any(each["type"] == READY and each["status"] == TRUE for each in status.get("conditions") or ())


def is_not_reporting(hub: Object) -> bool:
    """Whether the status of the hub says that its agent does not report."""
    conditions = (hub.get("status") or {}).get("conditions") or ()
    return any(each["type"] == READY and each["reason"] == NOT_REPORTING for each in conditions)


def _conditions(status: Object, state: ConditionState, now: datetime) -> list[Object] | None:
    """All conditions with this one, None if it is unchanged."""
    known = status.get("conditions") or []
    before: Object = next((each for each in known if each["type"] == READY), {})
    message = shortened(state.message, MESSAGE_LIMIT)
    since = before["lastTransitionTime"] if before.get("status") == state.status else format_time(now)
    ready = {"type": READY, "status": state.status, "reason": state.reason, "message": message, "lastTransitionTime": since}
    if all(before.get(key) == value for key, value in ready.items()):
        return None
    return [*(each for each in known if each["type"] != READY), ready]


def _reported(report: HubReport | None) -> Object:
    if report is None:
        return {}
    templates = [
        {
            "name": each.name,
            **({"title": each.title} if each.title else {}),
            **({"description": each.description} if each.description else {}),
            **({"parameters": dict(each.parameters)} if each.parameters else {}),
            **({"nodes": dict(each.nodes)} if each.nodes else {}),
            **({"classes": list(each.classes)} if each.classes else {}),
        }
        for each in report.templates
    ]
    found: Object = {
        "templates": templates,
        "nodes": {name: {"total": each.total, "free": each.free} for name, each in report.nodes.items()},
        "versions": dict(report.versions),
        "releases": list(dict.fromkeys(report.releases)),
        "agentVersion": report.agent_version,
    }
    return {name: value for name, value in found.items() if value}
