"""The event source of a fleet as a process, on a real API server: what it does by itself, what it reports, and what waits for what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_report import (
    CONFIG_MAP,
    LEASE,
    Check,
    ClassNodes,
    HubReport,
    OfferedTemplate,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, HUB, RETRY, hub_namespace

from ..support.fleet import TEMPLATE, Fleet, fleet_of
from ..support.fleet_source import FleetProcess, running

REPORT = HubReport(
    (Check("crds", passed=True),), {"fc430": ClassNodes(10, 10)}, (OfferedTemplate(TEMPLATE, "Small"),), {"kubernetes": "v1"}
)


@pytest.fixture
def fleet(hub: Access, namespace: str) -> Iterator[Fleet]:
    with fleet_of(hub, namespace) as made:
        yield made


def status(fleet: Fleet, name: str) -> Object:
    item = fleet.home.find(API_VERSION, CLUSTER, name, fleet.namespace)
    found: Object = (item or {}).get("status") or {}
    return found


def until_state(fleet: Fleet, name: str, state: str) -> None:
    until(lambda: status(fleet, name).get("state") == state, f"{name} is {state}: {status(fleet, name)}", 120)


def until_condition(fleet: Fleet, name: str, kind: str, reason: str) -> None:
    def reasons() -> list[str]:
        return [each["reason"] for each in status(fleet, name).get("conditions") or () if each["type"] == kind]

    until(lambda: reasons() == [reason], f"{kind} of {name} is {reason}", 120)


def until_reported(source: FleetProcess, name: str, *types: str) -> None:
    until(lambda: source.types(name) == list(types), f"{types} of {name}: {source.of(name)}", 120)


def test_life_of_a_cluster_is_carried_on_by_changes_and_reported(fleet: Fleet) -> None:
    east = fleet.add_hub("east", clusters=1)
    fleet.set_quota(hard={"clusters": 2})
    with running(fleet) as source:
        fleet.add_cluster("first", 2)
        until_state(fleet, "first", "Progressing")
        # The second before the third, also if both are of the same second, which have no order of age.
        for priority, name in ((1, "second"), (0, "third")):
            fleet.add_cluster(name, 1, priority=priority)
            until_state(fleet, name, "Pending")
        until_condition(fleet, "second", "Scheduled", "Unschedulable")
        until_condition(fleet, "third", "QuotaReserved", "QuotaExceeded")
        fleet.report("first", 2, state="Ready", version="4.17.1")
        until_state(fleet, "first", "Ready")
        fleet.report("first", 1, state="Degraded")
        until_state(fleet, "first", "Degraded")
        fleet.report("first", 2, state="Failed", failure={"reason": "HostLost", "message": "one host is lost"})
        until_state(fleet, "first", "Failed")
        fleet.home.patch(fleet.cluster("first"), {"metadata": {"annotations": {RETRY: "2026-01-01T00:00:00Z"}}}, checked=False)
        until(lambda: fleet.assignments()[0]["metadata"].get("annotations") == {RETRY: "2026-01-01T00:00:00Z"}, "the retry reaches the hub")
        # Quota and capacity of a deleted cluster are for those that wait.
        fleet.home.delete(fleet.cluster("first"))
        until_state(fleet, "second", "Progressing")
        until_condition(fleet, "third", "Scheduled", "Unschedulable")
        fleet.home.patch(fleet.home.get(API_VERSION, HUB, east), {"spec": {"capacity": {"clusters": 2}}}, checked=False)
        until_state(fleet, "third", "Progressing")
        assert len(fleet.records()) == 1
        assert fleet.quota()["used"]["clusters"] == fleet.hub(east)["clusters"] == 2
        states = ("cluster_ready", "cluster_degraded", "cluster_failed")
        until_reported(source, "first", "cluster_accepted", "cluster_scheduled", *states, "cluster_deleted")
        until_reported(source, "second", "cluster_accepted", "cluster_unschedulable", "cluster_scheduled")
        until_reported(source, "third", "cluster_denied", "cluster_accepted", "cluster_unschedulable", "cluster_scheduled")
        failed = next(each for each in source.events if each["type"] == "cluster_failed")
        uid = failed["cluster"]["uid"]
        assert failed["cluster"] == {"namespace": fleet.namespace, "name": "first", "uid": uid}
        assert (failed["hub"], failed["reason"], failed["message"]) == (east, "HostLost", "one host is lost")


def test_clusters_that_are_deleted_before_they_are_reconciled_are_recorded_too(fleet: Fleet) -> None:
    names = {f"short-{number}" for number in range(20)}
    with running(fleet):
        for name in names:
            fleet.home.delete(fleet.add_cluster(name))
        until(lambda: {each["spec"]["name"] for each in fleet.records()} == names, "each cluster is recorded", 120)
    assert {each["spec"]["reason"] for each in fleet.records()} == {"Deleted"}


def test_changes_while_no_engine_led_are_reported_by_the_next_one(fleet: Fleet) -> None:
    east, west = fleet.add_hub("east"), fleet.add_hub("west", schedulable=False)
    fleet.set_quota(hard={})
    for name in ("demo", "other"):
        fleet.add_cluster(name, 1)
    fleet.reconcile()  # as an engine before did
    fleet.report("demo", 1, state="Ready")
    fleet.report("other", 0, state="Failed", failure={"reason": "HostLost", "message": "one host is lost"})
    fleet.renew(west, datetime.now(UTC) - timedelta(hours=1))
    with running(fleet) as source:
        until_reported(source, "demo", "cluster_ready")
        until_reported(source, "other", "cluster_failed")
        until_reported(source, west, "hub_not_ready")
        assert source.types(east) == []


def test_hub_whose_agent_reports_is_ready_although_no_engine_led_for_long(fleet: Fleet) -> None:
    """The stored heartbeat is of the engine before; the Lease, which is not renewed again here, is of the agent."""
    east = fleet.add_hub("east", clusters=1)
    fleet.set_quota(hard={})
    for priority, name in ((1, "bound"), (0, "pending")):
        fleet.add_cluster(name, priority=priority)
    fleet.reconcile()
    item = fleet.home.patch(fleet.home.get(API_VERSION, HUB, east), {"spec": {"capacity": {"clusters": 2}}})
    an_hour_ago = format_time(datetime.now(UTC) - timedelta(hours=1))
    fleet.home.patch(item, {"status": {"heartbeat": an_hour_ago}}, subresource="status")
    fleet.renew(east)
    with running(fleet) as source:
        until(lambda: status(fleet, "pending").get("hub") == east, "the pending cluster is bound", 60)
        fleet.report("bound", 0, state="Ready")
        until_state(fleet, "bound", "Ready")
        until_reported(source, "pending", "cluster_scheduled")
        assert source.types(east) == []
    assert "HubNotReporting" not in [each["reason"] for each in fleet.home.list_all("v1", "Event", fleet.namespace)]


def test_lifetimes_and_denials_are_enforced_without_any_change(fleet: Fleet) -> None:
    fleet.add_hub("east")
    fleet.set_quota(hard={})
    with running(fleet) as source:
        # The end is announced in the last quarter of the life, and not at all by a source that was stopped for so long.
        fleet.add_cluster("short", expiresAt=format_time(datetime.now(UTC) + timedelta(seconds=40)))
        fleet.add_cluster("kept")
        until(lambda: [each["spec"]["name"] for each in fleet.records()] == ["short"], "the cluster is deleted at its end", 180)
        until(lambda: len(source.types("short")) == 5, "all is reported", 60)
        types = source.types("short")
        assert sorted(types[:4]) == ["cluster_accepted", "cluster_expired", "cluster_expiring", "cluster_scheduled"], types
        assert types[4] == "cluster_deleted", types
        assert fleet.records()[0]["spec"]["reason"] == "Expired"
        # In the past: the clock of the server may be behind, and an end that is still to come is announced first.
        a_minute_ago = format_time(datetime.now(UTC) - timedelta(minutes=1))
        fleet.set_quota(hard={}, denied={"reason": "unpaid", "deleteAfter": a_minute_ago})
        until(lambda: len(fleet.records()) == 2, "the cluster of a denied tenant is deleted", 120)
        until_reported(source, "kept", "cluster_accepted", "cluster_scheduled", "cluster_denied", "cluster_deleted")


def test_hub_takes_clusters_only_while_its_agent_reports_and_every_check_passes(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    created = fleet.home.get(API_VERSION, HUB, east)
    fleet.home.patch(created, {"status": {"heartbeat": None, "templates": None, "conditions": None}}, subresource="status")
    for api_version, kind, name in (("coordination.k8s.io/v1", "Lease", LEASE), ("v1", "ConfigMap", CONFIG_MAP)):
        fleet.home.delete({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": hub_namespace(east)}})
    fleet.set_quota(hard={})

    def ready() -> tuple[str, str]:
        found = next((each for each in fleet.hub(east).get("conditions") or () if each["type"] == "Ready"), {})
        return found.get("reason", ""), found.get("message", "")

    def until_while_reporting(condition: Callable[[], bool], what: str) -> None:
        """The agent reports meanwhile, so that a machine that stops for too long makes its heartbeat late for a moment only."""

        def holds() -> bool:
            fleet.renew(east)
            return condition()

        until(holds, what, 60)

    with running(fleet, hub_timeout=4) as source:
        until(lambda: ready()[0] == "NotReportedYet", "the hub says that its agent is missing", 60)
        fleet.add_cluster("demo", 1)
        until(lambda: status(fleet, "demo").get("scheduling", {}).get("message") == "0 of 1 hub fit: 1 never reported", "it waits", 60)
        fleet.report_hub(east, "{ no JSON")
        until_while_reporting(lambda: "cannot be read" in ready()[1], "a report that is no report is a failed check")
        failed = HubReport((Check("dns", passed=False, message="No zone."), *REPORT.checks), REPORT.nodes, REPORT.templates)
        fleet.report_hub(east, failed)
        until_while_reporting(lambda: ready() == ("CheckFailed", "dns: No zone."), "the condition names the check")
        fleet.report_hub(east, REPORT)
        until_while_reporting(lambda: status(fleet, "demo").get("hub") == east, "the cluster is bound as soon as the hub is ready")
        shown = fleet.hub(east)
        assert shown["templates"] == [{"name": TEMPLATE, "title": "Small"}]
        assert (shown["nodes"], shown["versions"]) == ({"fc430": {"total": 10, "free": 10}}, {"kubernetes": "v1"})
        assert shown["clusters"] == 1  # reports leave reservations as they are
        until(lambda: ready()[0] == "AgentNotReporting", "the missing heartbeat is detected", 60)
        until_condition(fleet, "demo", "HubReporting", "HubNotReporting")
        until_while_reporting(lambda: ready()[0] == "ChecksPassed", "the hub is back")
        until_while_reporting(lambda: "AgentNotReporting" in {each["reason"] for each in source.of(east)}, "its loss is reported")
        until_while_reporting(lambda: source.types(east)[-1] == "hub_ready", "its return is reported")
        reported = source.types(east)
        assert reported == (["hub_ready", "hub_not_ready"] * len(reported))[: len(reported)], "each once"

        def condition_types() -> list[str]:
            return [each["type"] for each in status(fleet, "demo")["conditions"]]

        until_while_reporting(lambda: "HubReporting" not in condition_types(), "the condition is removed")


def test_secrets_of_a_tenant_are_copied_before_the_assignment_and_deleted_with_it(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    fleet.set_quota(hard={})

    def put(value: str) -> None:
        metadata = {"name": "pull-secret", "namespace": fleet.namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": value, "other": "private"}}
        fleet.home.apply(body, force=True)

    def copies() -> list[dict[str, str]]:
        return [each.get("data") or {} for each in fleet.home.list_all("v1", "Secret", hub_namespace(east))]

    with running(fleet, secrets_poll=1):
        reference = {"secretRef": {"name": "pull-secret", "key": "token"}}
        fleet.add_cluster("demo", templateParameters={"pull_secret": reference})
        until_condition(fleet, "demo", "SecretsAvailable", "SecretMissing")
        message = next(each["message"] for each in status(fleet, "demo")["conditions"] if each["type"] == "SecretsAvailable")
        assert "pull-secret" in message
        assert fleet.assignments() == []
        put("first")
        until(lambda: len(fleet.assignments()) == 1, "the assignment exists", 60)
        (first,) = copies()
        assert len(first) == 1  # the other key is not copied
        until_state(fleet, "demo", "Progressing")
        put("second")
        until(lambda: copies() not in ([first], []), "a changed Secret is copied again", 60)
        fleet.home.delete(fleet.cluster("demo"))
        until(lambda: fleet.home.find(API_VERSION, CLUSTER, "demo", fleet.namespace) is None, "the cluster is deleted", 60)
        assert copies() == []
