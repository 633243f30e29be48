"""The status of a hub from what its agent reports: each reason of Ready, what is written, and what never is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import Check, ClassNodes, HubReport, OfferedTemplate
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_state import (
    HEARTBEAT_INTERVAL,
    AgentState,
    derive_hub_status,
    is_not_reporting,
    ready_state,
)

NOW, LIMIT = datetime(2026, 1, 2, 12, 10, tzinfo=UTC), timedelta(minutes=3)
REPORT = HubReport((Check("dns", passed=True),), {"fc430": ClassNodes(4, 2)}, (OfferedTemplate("small"),), {"kubernetes": "v1"})
FAILED = replace(REPORT, checks=(Check("dns", passed=False, message="No zone."), Check("storage", passed=False, message="No class.")))


def merged(status: Object, changes: Object) -> Object:
    return {key: value for key, value in (status | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("agent", "status", "reason", "message"),
    [
        (AgentState(), "Unknown", "NotReportedYet", "has not reported yet"),
        (AgentState(NOW - LIMIT, REPORT), "True", "ChecksPassed", "1 checks passed"),
        (AgentState(NOW - LIMIT - timedelta(seconds=1), REPORT), "Unknown", "AgentNotReporting", "since 2026-01-02T12:06:59Z"),
        (AgentState(NOW), "False", "CheckFailed", "has not written its report"),
        (AgentState(NOW, HubReport()), "False", "CheckFailed", "no check"),
        (AgentState(NOW, FAILED), "False", "CheckFailed", "dns: No zone. storage: No class."),
    ],
)
def test_ready_has_a_reason_and_says_what_does_not_hold(agent: AgentState, status: str, reason: str, message: str) -> None:
    found = ready_state(agent, NOW, LIMIT)
    assert (found.status, found.reason) == (status, reason)
    assert message in found.message


def test_first_report_is_written_and_the_same_report_is_not_written_again() -> None:
    reservations: Object = {"reservations": {"1": {}}, "clusters": 1, "free": {"clusters": 9}}
    changes = derive_hub_status(reservations, AgentState(NOW, REPORT), NOW, LIMIT)
    assert changes.keys() == {"templates", "nodes", "versions", "heartbeat", "conditions"}
    written = merged(reservations, changes)
    assert derive_hub_status(written, AgentState(NOW + timedelta(seconds=5), REPORT), NOW + timedelta(seconds=5), LIMIT) == {}


def test_heartbeat_alone_is_written_seldom() -> None:
    written = merged({}, derive_hub_status({}, AgentState(NOW, REPORT), NOW, LIMIT))
    later = NOW + HEARTBEAT_INTERVAL
    assert derive_hub_status(written, AgentState(later, REPORT), later, LIMIT) == {"heartbeat": format_time(later)}


def test_heartbeat_is_written_often_enough_for_a_short_time_limit() -> None:
    limit = timedelta(seconds=9)
    written = merged({}, derive_hub_status({}, AgentState(NOW, REPORT), NOW, limit))
    for seconds, changes in ((2, set()), (3, {"heartbeat"})):
        later = NOW + timedelta(seconds=seconds)
        assert derive_hub_status(written, AgentState(later, REPORT), later, limit).keys() == changes


def test_missing_heartbeat_changes_only_the_condition_and_is_known_afterwards() -> None:
    written = merged({}, derive_hub_status({}, AgentState(NOW, REPORT), NOW, LIMIT))
    later = NOW + timedelta(minutes=4)
    changes = derive_hub_status(written, AgentState(NOW, REPORT), later, LIMIT)
    assert changes.keys() == {"conditions"}
    assert [is_not_reporting({"status": each}) for each in (written, merged(written, changes))] == [False, True]
    assert derive_hub_status(merged(written, changes), AgentState(NOW, REPORT), later + timedelta(minutes=1), LIMIT) == {}


def test_what_a_report_no_longer_has_is_removed() -> None:
    written = merged({}, derive_hub_status({}, AgentState(NOW, REPORT), NOW, LIMIT))
    changes = derive_hub_status(written, AgentState(NOW, replace(REPORT, nodes={}, versions={})), NOW, LIMIT)
    assert (changes["nodes"], changes["versions"]) == (None, None)
