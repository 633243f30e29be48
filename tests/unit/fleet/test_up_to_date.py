"""What a lost answer to a write leaves: a sweep finds the cluster, and a reconcile that does not know of the write releases nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    ASSIGNMENT,
    CLUSTER,
    FINALIZER,
    HUB,
    QUOTA,
    RETRY,
    SECRETS_VERSION,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import ClusterAssignment, FleetCluster, FleetQuota, Hub
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import ObservedFleet
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota_store import QuotaStore
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.resize import Resize
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.status import HUB_REPORTING, derive_status
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.sweep import sweep
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ConditionState

NODES: Object = {"workers": {"class": "fc430", "size": 1, "ready": 1}}
COUNTED: Object = {"clusters": 1, "clusters.small": 1, "nodes": 1, "nodes.fc430": 1}
HEALTHY: Object = {"type": "Healthy", "status": "True", "reason": "Healthy", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}


class Home:
    """What a home cluster with one cluster on one hub has, each as a reconcile leaves it. Counts its writes."""

    def __init__(self) -> None:
        wanted = {"workers": {"class": "fc430", "size": 1}}
        report = {"state": "Ready", "nodeSets": NODES, "conditions": [HEALTHY]}
        self.cluster: Object | None = {
            "metadata": {"namespace": "team", "name": "demo", "uid": "1", "generation": 1, "finalizers": [FINALIZER]},
            "spec": {"template": "small", "nodeSets": wanted},
            "status": report | {"hub": "east", "conditions": [HEALTHY | {"type": "Scheduled"}, HEALTHY]},
        }
        self.assignment: Object | None = {
            "metadata": {"namespace": "hub-east", "name": "1", "uid": "a", "generation": 1},
            "spec": {"cluster": {"namespace": "team", "name": "demo", "uid": "1"}, "template": "small", "nodeSets": wanted},
            "status": report | {"observedGeneration": 1},
        }
        self.quota: Object = {"metadata": {"namespace": "team", "name": "default"}, "status": {}}
        self.hub: Object = {"metadata": {"name": "east"}, "spec": {"capacity": {"clusters": 9, "nodes": {"fc430": 9}}}, "status": {}}
        self.reserve(1, 1)
        self.writes = 0

    def reserve(self, counted: int, capacity: int) -> None:
        amounts = COUNTED | {"nodes": counted, "nodes.fc430": counted}
        self.quota["status"] = {"reservations": {"1": {"name": "demo", "amounts": amounts}}, "used": amounts}
        reservations = {"1": {"namespace": "team", "name": "demo", "nodes": {"fc430": capacity}}}
        free = {"clusters": 8, "nodes": {"fc430": 9 - capacity}}
        self.hub["status"] = {"reservations": reservations, "clusters": 1, "free": free}

    def list_all(self, _api_version: str, kind: str, *_namespace: Any) -> list[Object]:
        item = {CLUSTER: self.cluster, ASSIGNMENT: self.assignment, QUOTA: self.quota, HUB: self.hub}[kind]
        return [copy.deepcopy(item)] if item else []

    def find(self, api_version: str, kind: str, *_name: str) -> Object | None:
        return next(iter(self.list_all(api_version, kind)), None)

    get = find

    def patch(self, *_what: Any, **_how: Any) -> None:
        self.writes += 1

    def server_time(self) -> None:
        return None

    def in_parallel(self, work: Callable[[Any], Any], items: Any) -> list[Any]:
        return [work(each) for each in items]


def shrunk_but_reserved(home: Home) -> None:
    home.reserve(2, 1)


def shrunk_but_with_capacity(home: Home) -> None:
    home.reserve(1, 2)


def hub_has_not_answered(home: Home) -> None:
    home.reserve(2, 2)
    part(home.assignment)["metadata"]["generation"] = 2


def state_is_old(home: Home) -> None:
    part(home.cluster)["status"]["state"] = "Degraded"


def nodes_are_old(home: Home) -> None:
    part(home.cluster)["status"]["nodeSets"] = {"workers": {"class": "fc430", "size": 1, "ready": 0}}


def condition_is_old(home: Home) -> None:
    part(home.cluster)["status"]["conditions"][1] = HEALTHY | {"status": "False"}


def hub_knows_another_size(home: Home) -> None:
    part(home.assignment)["spec"]["nodeSets"] = {"workers": {"class": "fc430", "size": 2}}


def hub_knows_of_no_retry(home: Home) -> None:
    part(home.cluster)["metadata"]["annotations"] = {RETRY: "2026-01-02T03:04:05Z"}


def secrets_were_copied(home: Home) -> None:
    part(home.assignment)["metadata"]["annotations"] = {SECRETS_VERSION: "1"}


def hub_knows_nothing(home: Home) -> None:
    home.assignment = None


def waits_for_quota(home: Home) -> None:
    home.assignment = None
    home.quota["status"] = {"reservations": {}, "used": {}}
    home.hub["status"] = {"reservations": {}, "clusters": 0, "free": {"clusters": 9, "nodes": {"fc430": 9}}}
    del part(home.cluster)["status"]["hub"]


def deletion_did_not_begin_on_the_hub(home: Home) -> None:
    part(home.cluster)["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"


def hub_is_deleting_it(home: Home) -> None:
    deletion_did_not_begin_on_the_hub(home)
    part(home.assignment)["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"


def hub_has_deleted_it(home: Home) -> None:
    deletion_did_not_begin_on_the_hub(home)
    home.assignment = None


def hub_has_deleted_it_and_the_finalizer_is_removed(home: Home) -> None:
    hub_has_deleted_it(home)
    part(home.cluster)["metadata"]["finalizers"] = ["of.another/controller"]


def part(item: Object | None) -> Object:
    assert item is not None
    return item


CASES: list[tuple[Callable[[Home], object], bool]] = [
    (lambda _home: None, True),
    (shrunk_but_reserved, False),
    (shrunk_but_with_capacity, False),
    (hub_has_not_answered, True),
    (state_is_old, False),
    (nodes_are_old, False),
    (condition_is_old, False),
    (hub_knows_another_size, False),
    (hub_knows_of_no_retry, False),
    (secrets_were_copied, True),
    (hub_knows_nothing, False),
    (waits_for_quota, True),
    (deletion_did_not_begin_on_the_hub, False),
    (hub_is_deleting_it, True),
    (hub_has_deleted_it, False),
    (hub_has_deleted_it_and_the_finalizer_is_removed, True),
]


@pytest.mark.parametrize(
    ("change", "up_to_date"), CASES, ids=[change.__name__.replace("<lambda>", "nothing") for change, _up_to_date in CASES]
)
def test_sweep_finds_clusters_that_are_not_as_a_reconcile_leaves_them(change: Callable[[Home], object], up_to_date: bool) -> None:
    home = Home()
    change(home)
    found = sweep(cast(Kube, home))
    assert found.outdated == (frozenset() if up_to_date else {("team", "demo")})
    assert (found.quotas, found.hubs, found.errors, home.writes) == ({}, {}, (), 0)


REPORTS: list[Object] = [
    {},
    {"conditions": []},
    {"nodeSets": NODES, "observedGeneration": 1},
    {"state": "Failed", "failure": {"message": "no host"}, "conditions": [HEALTHY, HEALTHY | {"type": "Scheduled"}]},
    {"state": "Ready", "apiURL": "https://a", "consoleURL": "https://b", "version": "4.17.1", "nodeSets": NODES, "conditions": [HEALTHY]},
]


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("before", [{"hub": "east"}, {"hub": "east", "state": "Pending"}, {"hub": "east", **REPORTS[-1]}])
def test_cluster_whose_status_was_written_is_up_to_date(before: Object, report: Object) -> None:
    """Else each sweep would have it reconciled again."""
    home = Home()
    part(home.cluster)["status"], part(home.assignment)["status"] = before, report
    cluster, assignment = FleetCluster.from_object(part(home.cluster)), ClusterAssignment.from_object(part(home.assignment))
    transient = {HUB_REPORTING: ConditionState("False", "HubNotReporting")}
    part(home.cluster)["status"] = derive_status(cluster, datetime.now(UTC), assignment=assignment, transient=transient)
    assert sweep(cast(Kube, home)).outdated == frozenset()


@pytest.mark.parametrize(("generation", "writes"), [(1, 2), (2, 0)], ids=["hub-knows-this-size", "growth-was-assigned-without-an-answer"])
def test_nothing_is_released_while_the_assignment_may_have_grown(generation: int, writes: int) -> None:
    """The tenant grew the cluster and took it back; the reconcile observes the assignment as it was before."""
    home = Home()
    home.reserve(2, 2)
    cluster, assignment = FleetCluster.from_object(part(home.cluster)), ClusterAssignment.from_object(copy.deepcopy(part(home.assignment)))
    fleet = ObservedFleet(
        (cluster,), {"east": Hub.from_object(home.hub)}, {"team": FleetQuota.from_object(home.quota)}, {cluster.uid: assignment}
    )
    part(home.assignment)["metadata"]["generation"] = generation
    resize = Resize(cast(Kube, home), QuotaStore(cast(Kube, home)))
    assert resize.apply(cluster, fleet) == ""
    assert home.writes == writes
