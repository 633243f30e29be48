"""Clusters of a fleet on a real API server: quota and capacity are reserved before, released after, repaired, and never exceeded."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gobuild import KUBERNETES, programs
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.assignments import Assignments
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.binder import Binder
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_store import HubStore
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    AGENT_FINALIZER,
    API_VERSION,
    CLUSTER,
    FINALIZER,
    HUB,
    QUOTA,
    QUOTA_NAME,
    hub_namespace,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import FleetCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import list_clusters, observe
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota import claim_of, settled_amounts
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota_store import QuotaStore
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.reconcile import Reconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.sweep import sweep
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import ServerError

from ..support.fleet import Fleet, fleet_of

NOW = datetime.now(UTC)
PAGE = (Path(__file__).resolve().parents[3] / "docs/fleet.md").read_text(encoding="utf-8")


@pytest.fixture
def fleet(hub: Access, namespace: str) -> Iterator[Fleet]:
    with fleet_of(hub, namespace) as made:
        yield made


def test_cluster_is_admitted_bound_and_assigned_once(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    fleet.set_quota(hard={"clusters": 1, "nodes": 3})
    created = fleet.add_cluster("demo", 3, templateParameters={"a": {"b": [1]}})
    result, explanation = fleet.reconcile()["demo"]
    assert (result, explanation) == ("scheduled", f"{east} has the best score, 170; 1 of 1 hub fit")
    uid = created["metadata"]["uid"]
    (assignment,) = fleet.assignments()
    assert assignment["metadata"]["name"] == uid
    assert assignment["spec"] == {"cluster": {"namespace": fleet.namespace, "name": "demo", "uid": uid}, **created["spec"]}
    amounts = {"clusters": 1, "clusters.ocp_4_17_small": 1, "nodes": 3, "nodes.fc430": 3}
    assert fleet.quota() == {"used": amounts, "reservations": {uid: {"name": "demo", "amounts": amounts}}}
    assert fleet.hub(east)["free"] == {"clusters": 9, "nodes": {"fc430": 7}}
    status = fleet.cluster("demo")["status"]
    assert (status["state"], status["hub"], status["nodes"]) == ("Progressing", east, "0/3")
    assert status["scheduling"] == {"message": explanation}
    assert fleet.condition("demo", "QuotaReserved")[:2] == ("True", "Reserved")
    assert fleet.condition("demo", "Scheduled") == ("True", "Bound", f"Bound to the hub {east}")

    fleet.report("demo", 3, state="Ready", version="4.17.1", apiURL="https://api.demo", conditions=[])
    assert fleet.reconcile()["demo"][0] == "bound"
    status = fleet.cluster("demo")["status"]
    assert (status["state"], status["version"], status["apiURL"], status["nodes"]) == ("Ready", "4.17.1", "https://api.demo", "3/3")
    before = [fleet.cluster("demo"), fleet.assignments(), fleet.hub(east), fleet.quota()]
    assert fleet.reconcile()["demo"][0] == "bound"
    assert [fleet.cluster("demo"), fleet.assignments(), fleet.hub(east), fleet.quota()] == before


def test_refused_cluster_says_the_numbers_and_blocks_no_smaller_one(fleet: Fleet) -> None:
    fleet.add_hub("east")
    fleet.set_quota(hard={"nodes": 4})
    # Clusters of the same second have no order of age.
    for priority, (name, nodes) in enumerate((("small", 1), ("large", 2), ("first", 3))):
        fleet.add_cluster(name, nodes, priority=priority)
    results = fleet.reconcile()
    assert [results[name][0] for name in ("first", "large", "small")] == ["scheduled", "refused", "scheduled"]
    message = "The quota is exceeded: nodes needs 2, 1 of 4 free"
    assert fleet.condition("large", "QuotaReserved") == ("False", "QuotaExceeded", message)
    assert fleet.condition("large", "Scheduled")[:2] == ("False", "WaitingForQuota")
    assert fleet.cluster("large")["status"]["state"] == "Pending"
    events = fleet.access.kubectl("get", "events", "-n", fleet.namespace, "-o", "jsonpath={.items[*].reason}").stdout.split()
    assert {"QuotaExceeded", "Scheduled"} <= set(events)


def test_tenant_without_a_quota_has_the_default_of_the_site(fleet: Fleet) -> None:
    fleet.add_hub("east")
    with fresh_namespace(fleet.access) as site:
        quotas = QuotaStore(fleet.home, site)
        claim = claim_of(FleetCluster.from_object(fleet.add_cluster("demo")))
        assert quotas.reserve(fleet.namespace, [claim])[claim.uid].reason == "NoQuota"
        fleet.set_quota(site, hard={"clusters": 0})
        assert quotas.reserve(fleet.namespace, [claim])[claim.uid].reason == "QuotaExceeded"
        fleet.set_quota(site, hard={"clusters": 1})
        assert not quotas.reserve(fleet.namespace, [claim])
        assert fleet.quota()["used"]["clusters"] == 1
        assert fleet.quota(site)["used"] == {}


def test_growth_is_reserved_before_and_shrinking_released_after_the_hub_reported(fleet: Fleet) -> None:
    east = fleet.add_hub("east", nodes=6)
    fleet.set_quota(hard={"nodes": 5})
    fleet.add_cluster("demo", 2)
    fleet.reconcile()
    fleet.report("demo", 2)

    def state() -> tuple[int, int, int]:
        (assignment,) = fleet.assignments()
        wanted = assignment["spec"]["nodeSets"]["workers"]["size"]
        return fleet.quota()["used"]["nodes"], fleet.hub(east)["free"]["nodes"]["fc430"], wanted

    fleet.resize("demo", 4)
    fleet.reconcile()
    assert state() == (4, 2, 4)
    fleet.resize("demo", 6)
    assert fleet.reconcile()["demo"] == ("refused", "The quota is exceeded: nodes needs 2, 1 of 5 free")
    assert state() == (4, 2, 4)
    fleet.resize("demo", 1)
    fleet.reconcile()
    assert state() == (4, 2, 1)
    fleet.report("demo", 3)
    fleet.reconcile()
    assert state() == (3, 3, 1)
    fleet.report("demo", 1)
    fleet.reconcile()
    assert state() == (1, 5, 1)


def test_cluster_that_waits_for_a_hub_releases_at_once_what_it_no_longer_asks_for(fleet: Fleet) -> None:
    fleet.set_quota(hard={"nodes": 5})
    fleet.add_cluster("demo", 4)
    fleet.add_cluster("other", 3, priority=-1)
    results = fleet.reconcile()
    assert (results["demo"][0], results["other"][0]) == ("waiting", "refused")
    fleet.resize("demo", 2)
    stale = observe(fleet.home, fleet.namespace)
    fleet.resize("demo", 3)
    outcomes = {each.cluster.name: each.result for each in Reconciler(fleet.home, fleet.namespace).reconcile(stale)}
    assert outcomes == {"demo": "waiting", "other": "refused"}
    assert fleet.quota()["used"]["nodes"] == 4  # the cluster was changed meanwhile
    fleet.resize("demo", 2)
    assert {name: result for name, (result, _message) in fleet.reconcile().items()} == {"demo": "waiting", "other": "waiting"}
    assert fleet.quota()["used"] == {"clusters": 2, "clusters.ocp_4_17_small": 2, "nodes": 5, "nodes.fc430": 5}
    before = fleet.quota()
    fleet.reconcile()
    assert fleet.quota() == before


def test_cluster_without_nodes_left_releases_them_once(fleet: Fleet) -> None:
    fleet.add_hub("east")
    fleet.set_quota(hard={"nodes": 5})
    fleet.add_cluster("demo", 4)
    fleet.reconcile()
    fleet.report("demo", 4)
    fleet.resize("demo", 0)
    fleet.reconcile()
    fleet.report("demo", 0)
    fleet.reconcile()
    (counted,) = fleet.quota()["reservations"].values()
    (cluster,) = list_clusters(fleet.home, fleet.namespace)
    settled = settled_amounts(cluster, observe(fleet.home, fleet.namespace).assignments[cluster.uid])
    assert (counted["amounts"], counted["amounts"]["nodes"]) == (settled, 0)


def test_status_is_written_although_another_client_changed_the_cluster_meanwhile(fleet: Fleet) -> None:
    fleet.set_quota(hard={})
    fleet.add_cluster("demo")
    fleet.reconcile()
    fleet.add_hub("east", schedulable=False)
    stale = observe(fleet.home, fleet.namespace)
    fleet.home.patch(fleet.cluster("demo"), {"metadata": {"labels": {"team": "one"}}})
    (outcome,) = Reconciler(fleet.home, fleet.namespace).reconcile(stale)
    assert (outcome.result, outcome.message) == ("waiting", "0 of 1 hub fit: 1 not schedulable")
    assert fleet.condition("demo", "Scheduled") == ("False", "Unschedulable", outcome.message)


def test_decision_about_a_cluster_that_another_process_bound_meanwhile_is_not_written(fleet: Fleet) -> None:
    fleet.set_quota(hard={})
    fleet.add_cluster("demo")
    fleet.reconcile()
    east = fleet.add_hub("east", schedulable=False)
    stale = observe(fleet.home, fleet.namespace)
    fleet.home.patch(fleet.home.get(API_VERSION, HUB, east), {"spec": {"schedulable": True}})
    assert fleet.reconcile()["demo"][0] == "scheduled"
    (outcome,) = Reconciler(fleet.home, fleet.namespace).reconcile(stale)
    assert outcome.result == "failed"  # so that it is tried again
    assert fleet.condition("demo", "Scheduled") == ("True", "Bound", f"Bound to the hub {east}")


def test_former_leader_leaves_no_assignment_for_a_cluster_that_is_being_deleted(fleet: Fleet) -> None:
    fleet.add_hub("east")
    fleet.set_quota(hard={})
    fleet.add_cluster("demo")
    fleet.reconcile()
    (stale,) = list_clusters(fleet.home, fleet.namespace)
    fleet.home.delete(fleet.cluster("demo"))
    assert fleet.reconcile()["demo"][0] == "deleting"
    Assignments(fleet.home).create(stale)
    assert fleet.assignments() == []
    assert fleet.reconcile()["demo"][0] == "deleted"


def test_growth_waits_for_capacity_on_the_hub_of_the_cluster(fleet: Fleet) -> None:
    east = fleet.add_hub("east", nodes=3)
    fleet.set_quota(hard={})
    fleet.add_cluster("demo", 2)
    fleet.reconcile()
    fleet.add_hub("west", nodes=100)
    fleet.report("demo", 2)
    fleet.resize("demo", 4)
    assert fleet.reconcile()["demo"] == ("waiting", f"The hub {east} cannot grow the cluster: with too few fc430 (best 3 of 4)")
    assert fleet.cluster("demo")["status"]["hub"] == east
    assert fleet.assignments()[0]["spec"]["nodeSets"]["workers"]["size"] == 2


def test_deleted_cluster_is_released_after_its_hub_has_deleted_it(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    fleet.set_quota(hard={})
    fleet.add_cluster("demo", 2)
    fleet.reconcile()
    (assignment,) = fleet.assignments()
    fleet.home.patch(assignment, {"metadata": {"finalizers": ["test.openfleet.io/hub"]}})
    fleet.report("demo", 2, state="Degraded")
    fleet.reconcile()
    fleet.home.delete(fleet.cluster("demo"))
    assert fleet.reconcile()["demo"][0] == "deleting"
    assert fleet.reconcile()["demo"][0] == "deleting"
    assert fleet.cluster("demo")["status"]["state"] == "Deleting"
    assert fleet.quota()["used"]["nodes"] == 2
    assert fleet.hub(east)["clusters"] == 1
    fleet.home.patch(fleet.assignments()[0], {"metadata": {"finalizers": None}})
    assert fleet.reconcile()["demo"][0] == "deleted"
    assert fleet.home.find(API_VERSION, CLUSTER, "demo", fleet.namespace) is None
    assert fleet.quota() == {"used": {}, "reservations": {}}
    assert (fleet.hub(east)["clusters"], fleet.hub(east)["free"]["nodes"]["fc430"]) == (0, 10)
    (record,) = fleet.records()
    assert record["metadata"]["name"] == assignment["metadata"]["name"]
    expected = {"name": "demo", "hub": east, "reason": "Deleted", "state": "Degraded"}
    assert {key: record["spec"][key] for key in expected} == expected
    assert record["spec"]["nodeHours"]["fc430"] >= 0


def test_clusters_of_a_lost_hub_are_deleted_by_the_commands_of_the_guide(fleet: Fleet) -> None:
    east, west = fleet.add_hub("east", clusters=1), fleet.add_hub("west", schedulable=False)
    fleet.set_quota(hard={})
    fleet.add_cluster("demo", 1)
    fleet.reconcile()
    fleet.home.patch(fleet.assignments()[0], {"metadata": {"finalizers": [AGENT_FINALIZER]}})
    fleet.home.patch(fleet.home.get(API_VERSION, HUB, west), {"spec": {"schedulable": True}})
    fleet.add_cluster("kept", 1)
    fleet.reconcile()
    fleet.home.delete(fleet.cluster("demo"))
    assert [fleet.reconcile()["demo"][0] for _repeated in range(2)] == ["deleting", "deleting"]

    def run(command: str) -> None:
        path = f"{programs(KUBERNETES)['kubectl'].parent}:{os.environ['PATH']}"
        environment = os.environ | {"KUBECONFIG": str(fleet.access.kubeconfig), "PATH": path}
        given = re.sub(r"\beast\b", east, command)
        subprocess.run(["bash", "-euo", "pipefail", "-c", given], env=environment, check=True, timeout=300)

    guide = PAGE.partition("\n### Give up a lost hub\n")[2].partition("\n## ")[0]
    end_the_wait, delete_the_hub = re.findall(r"```sh\n(.*?)```", guide, re.DOTALL)
    run(end_the_wait)
    assert {name: result for name, (result, _message) in fleet.reconcile().items()} == {"demo": "deleted", "kept": "bound"}
    (record,) = fleet.records()
    assert (record["spec"]["hub"], [*record["spec"]["nodeHours"]]) == (east, ["fc430"])
    assert fleet.hub(east)["clusters"] == 0
    assert [each["name"] for each in fleet.quota()["reservations"].values()] == ["kept"]
    run(delete_the_hub)
    assert fleet.home.find("v1", "Namespace", hub_namespace(east)) is None
    assert fleet.reconcile()["kept"][0] == "bound"


def test_cluster_that_was_never_bound_is_deleted_too(fleet: Fleet) -> None:
    fleet.set_quota(hard={})
    fleet.add_cluster("demo")
    assert fleet.reconcile()["demo"] == ("waiting", "0 of 0 hubs fit")
    assert fleet.condition("demo", "Scheduled") == ("False", "Unschedulable", "0 of 0 hubs fit")
    fleet.home.delete(fleet.cluster("demo"))
    assert fleet.reconcile()["demo"][0] == "deleted"
    assert fleet.quota()["reservations"] == {}


def test_clusters_of_a_namespace_that_is_deleted_go_with_it(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    fleet.set_quota(hard={})
    fleet.add_cluster("demo", 1)
    fleet.reconcile()
    fleet.home.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": fleet.namespace}})
    until(lambda: fleet.home.find(API_VERSION, QUOTA, QUOTA_NAME, fleet.namespace) is None, "the quota is deleted", 120)
    until(lambda: "deletionTimestamp" in fleet.cluster("demo")["metadata"], "the cluster is being deleted", 120)
    assert fleet.reconcile()["demo"][0] == "deleting"
    assert fleet.reconcile()["demo"] == ("deleted", "")
    assert fleet.hub(east)["clusters"] == 0
    until(lambda: fleet.home.find("v1", "Namespace", fleet.namespace) is None, "the namespace is deleted", 120)


def test_release_creates_no_quota(fleet: Fleet) -> None:
    QuotaStore(fleet.home, fleet.namespace).release(fleet.namespace, ["uid"])
    assert fleet.home.find(API_VERSION, QUOTA, QUOTA_NAME, fleet.namespace) is None


def test_end_of_a_cluster_is_announced_once_and_enforced(fleet: Fleet) -> None:
    fleet.set_quota(hard={}, maxLifetime="14d")
    fleet.add_cluster("short", expiresAt=format_time(NOW + timedelta(days=10)))
    fleet.add_cluster("long", expiresAt=format_time(NOW + timedelta(days=99)))

    def expiring(name: str) -> bool:
        return "Expiring" in [each["type"] for each in fleet.cluster(name)["status"]["conditions"]]

    assert {result for result, _message in fleet.reconcile(timedelta(days=8)).values()} == {"waiting"}
    assert (expiring("short"), expiring("long")) == (False, False)
    for _repeated in range(2):
        fleet.reconcile(timedelta(days=9, hours=1))
    assert (expiring("short"), expiring("long")) == (True, False)
    events = [each for each in fleet.home.list_all("v1", "Event", fleet.namespace) if each["reason"] == "Expired"]
    assert [(each["type"], each["count"], each["involvedObject"]["name"]) for each in events] == [("Warning", 1, "short")]
    results = fleet.reconcile(timedelta(days=10, hours=1))
    assert {name: result for name, (result, _message) in results.items()} == {"short": "expired", "long": "waiting"}
    assert results["short"][1].endswith(": its expiresAt")
    assert fleet.reconcile(timedelta(days=14, hours=1))["long"][1].endswith(": the maxLifetime of the quota")
    assert {result for result, _message in fleet.reconcile(timedelta(days=14, hours=2)).values()} == {"deleted"}
    assert fleet.quota()["reservations"] == {}
    # Both were asked to be deleted today, before their ends: only this test moves the time.
    assert {record["spec"]["name"] for record in fleet.records()} == {"short", "long"}


def test_denied_tenant_gets_nothing_new_and_loses_its_clusters_later(fleet: Fleet) -> None:
    fleet.set_quota(hard={})
    fleet.add_cluster("old", 1)
    fleet.reconcile()
    fleet.set_quota(hard={}, denied={"reason": "unpaid", "deleteAfter": format_time(NOW + timedelta(days=30))})
    fleet.add_cluster("new", 1)
    results = fleet.reconcile()
    assert results["new"] == ("refused", "The tenant gets no further clusters and nodes: unpaid")
    assert results["old"][0] == "waiting"
    fleet.resize("old", 2)
    assert fleet.reconcile()["old"][0] == "refused"
    results = fleet.reconcile(timedelta(days=31))
    assert {result for result, _message in results.values()} == {"denied"}
    assert results["old"][1].endswith(": the tenant is denied, unpaid")


# Interrupted runs


def test_run_that_was_killed_after_its_reservation_is_continued_on_the_same_hub(fleet: Fleet) -> None:
    hubs = [fleet.add_hub(name) for name in ("east", "west")]
    fleet.set_quota(hard={})
    fleet.add_cluster("demo", 1)
    (cluster,) = list_clusters(fleet.home, fleet.namespace)
    HubStore(fleet.home).reserve(hubs[0], [cluster], NOW)
    sweep(fleet.home, fleet.namespace)
    assert fleet.hub(hubs[0])["clusters"] == 1  # another process may be about to bind it
    fleet.reconcile()
    assert fleet.cluster("demo")["status"]["hub"] == hubs[0]


def test_run_that_was_killed_after_the_binding_is_completed(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    fleet.set_quota(hard={})
    fleet.add_cluster("demo", 1)
    fleet.reconcile()
    fleet.home.delete(fleet.assignments()[0])
    fleet.reconcile()
    assert [each["metadata"]["namespace"] for each in fleet.assignments()] == [hub_namespace(east)]


def test_assignment_gets_no_node_without_capacity_when_a_cluster_grows_while_it_is_bound(fleet: Fleet) -> None:
    fleet.set_quota(hard={"nodes": 3})
    uid = fleet.add_cluster("demo", 1)["metadata"]["uid"]
    assert fleet.reconcile()["demo"][0] == "waiting"  # no hub yet
    east = fleet.add_hub("east")
    observed = observe(fleet.home, fleet.namespace)
    fleet.resize("demo", 3)
    (outcome,) = Reconciler(fleet.home, fleet.namespace).reconcile(observed)
    assert (outcome.result, outcome.message) == ("failed", "The cluster was changed before it was bound")
    assert fleet.assignments() == [] and fleet.hub(east).get("reservations", {}) == {}
    assert fleet.reconcile()["demo"][0] == "scheduled"
    assert fleet.hub(east)["reservations"][uid]["nodes"] == {"fc430": 3}
    assert fleet.quota()["used"]["nodes"] == 3


def test_assignment_gets_no_node_without_capacity_when_a_cluster_grew_after_a_killed_run_had_bound_it(fleet: Fleet) -> None:
    east = fleet.add_hub("east", nodes=2)
    fleet.set_quota(hard={})
    uid = fleet.add_cluster("demo", 1)["metadata"]["uid"]
    fleet.reconcile()
    fleet.home.delete(fleet.assignments()[0])
    fleet.resize("demo", 3)
    assert fleet.reconcile()["demo"][0] == "waiting"
    assert fleet.assignments() == []
    fleet.resize("demo", 2)
    assert fleet.reconcile()["demo"][0] == "bound"
    assert fleet.hub(east)["reservations"][uid]["nodes"] == {"fc430": 2}


def test_of_two_processes_that_choose_different_hubs_one_binds(fleet: Fleet) -> None:
    east, west = fleet.add_hub("east"), fleet.add_hub("west", schedulable=False)
    fleet.set_quota(hard={})
    fleet.add_cluster("demo", 1)
    stale = observe(fleet.home, fleet.namespace)
    fleet.reconcile()
    only_west = {name: each for name, each in stale.hubs.items() if name == west}
    late = replace(stale, hubs={west: replace(only_west[west], schedulable=True)})
    (placed,) = Binder(fleet.home).bind(stale.clusters, late)
    assert placed.choice.hub == fleet.cluster("demo")["status"]["hub"] == east
    assert [each["metadata"]["namespace"] for each in fleet.assignments()] == [hub_namespace(east)]
    assert (fleet.hub(east)["clusters"], fleet.hub(west)["clusters"]) == (1, 0)


def test_trouble_with_one_tenant_or_one_hub_ends_there(fleet: Fleet) -> None:
    east, west = fleet.add_hub("east", clusters=100), fleet.add_hub("west")
    fleet.set_quota(hard={})
    fleet.add_cluster("demo")
    observed = observe(fleet.home, fleet.namespace)
    fleet.home.delete({"apiVersion": API_VERSION, "kind": HUB, "metadata": {"name": east}})
    missing = replace(observed.clusters[0], namespace="no-such-tenant", uid="other", raw=observed.clusters[0].raw | {"status": {}})
    missing.raw["metadata"] = missing.raw["metadata"] | {"finalizers": [FINALIZER]}
    outcomes = Reconciler(fleet.home, fleet.namespace).reconcile(replace(observed, clusters=(missing, *observed.clusters)))
    assert sorted((each.cluster.namespace, each.result) for each in outcomes) == [
        ("no-such-tenant", "failed"),
        (fleet.namespace, "scheduled"),
    ]
    assert fleet.cluster("demo")["status"]["hub"] == west


class NoHubWrites(Kube):
    """A connection on which the API server answers each write of a Hub with an error."""

    def patch(self, item: Object, changes: Any, **options: Any) -> Object:
        if item["kind"] == HUB:
            raise ServerError("patch Hub: the server is busy")
        return super().patch(item, changes, **options)


def test_hub_that_cannot_be_written_is_an_error_and_no_hub_that_does_not_fit(fleet: Fleet) -> None:
    fleet.add_hub("east")
    fleet.set_quota(hard={})
    fleet.add_cluster("demo")
    kube = NoHubWrites(target({"kubeconfig": str(fleet.access.kubeconfig)}))
    (outcome,) = Reconciler(kube, fleet.namespace).reconcile(observe(kube, fleet.namespace))
    assert (outcome.result, outcome.message) == ("failed", "patch Hub: the server is busy")
    assert "conditions" not in fleet.cluster("demo").get("status", {})
    assert fleet.reconcile()["demo"][0] == "scheduled"


def test_sweep_releases_what_no_cluster_has_and_restores_what_clusters_lost(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    fleet.set_quota(hard={"clusters": 2})
    metadata = {"name": "pull-secret", "namespace": fleet.namespace}
    fleet.home.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "made up"}})
    for name in ("gone", "kept"):
        fleet.add_cluster(name, 1, templateParameters={"pull_secret": {"secretRef": {"name": "pull-secret", "key": "token"}}})
    fleet.reconcile()
    gone, kept = (fleet.cluster(name)["metadata"]["uid"] for name in ("gone", "kept"))

    def swept() -> tuple[list[str], list[str], list[str]]:
        """What changed in the quota and on the hub, and the orphans there. Other tests may have left tenants that are being deleted."""
        found = sweep(fleet.home, fleet.namespace)
        return found.quotas.get(fleet.namespace, []), found.hubs.get(east, []), [each.uid for each in found.orphans if each.hub == east]

    def copies() -> set[str]:
        return {each["metadata"]["name"] for each in fleet.home.list_all("v1", "Secret", hub_namespace(east))}

    fleet.home.patch(fleet.cluster("gone"), {"metadata": {"finalizers": None}})
    fleet.home.delete(fleet.cluster("gone"))
    assert swept() == ([], [], [gone])  # the hub still has it
    assert gone in fleet.quota()["reservations"]
    assert copies() == {gone, kept}
    fleet.home.delete(next(each for each in fleet.assignments() if each["metadata"]["name"] == gone))
    assert swept() == ([gone], [gone], [])
    assert copies() == {kept}
    for kind, name, lost in ((QUOTA, "default", {"reservations": None, "used": {"clusters": 9}}), (HUB, east, {"reservations": None})):
        namespace = fleet.namespace if kind == QUOTA else None
        fleet.home.patch(fleet.home.get(API_VERSION, kind, name, namespace), {"status": lost}, subresource="status")
    fleet.set_quota(hard={"clusters": 0})
    assert swept() == ([kept], [kept], [])
    assert (fleet.quota()["used"]["clusters"], fleet.hub(east)["clusters"]) == (1, 1)
    assert swept() == ([], [], [])
