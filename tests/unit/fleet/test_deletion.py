"""The record of a cluster has its node hours although the cache lacks the reservation on the hub."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.deletion import Deletion
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import FINALIZER, HUB, RECORD
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import FleetCluster, Hub
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import ObservedFleet
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota_store import QuotaStore
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import NotFound

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CLUSTER: Object = {
    "metadata": {"namespace": "team", "name": "demo", "uid": "1", "finalizers": [FINALIZER], "deletionTimestamp": format_time(NOW)},
    "spec": {"template": "small"},
    "status": {"hub": "east"},
}


def hub(reservations: Object) -> Object:
    return {"metadata": {"name": "east"}, "spec": {"capacity": {"clusters": 9}}, "status": {"reservations": reservations}}


RESERVED = hub({"1": {"namespace": "team", "name": "demo", "nodes": {"fc430": 2}, "since": format_time(NOW - timedelta(hours=3))}})


class Home:
    """Has the hub, or has it no more, and no assignment. Keeps what is created."""

    def __init__(self, stored: Object | None) -> None:
        self.hub = stored
        self.created: list[Object] = []

    def find(self, _api_version: str, kind: str, *_name: str) -> Object | None:
        return self.hub if kind == HUB else None

    def get(self, api_version: str, kind: str, *name: str) -> Object:
        if (found := self.find(api_version, kind, *name)) is None:
            raise NotFound(f"{kind} is not there")
        return found

    def create(self, item: Object) -> None:
        self.created.append(item)

    def patch(self, *_what: Any, **_how: Any) -> None:
        pass

    def in_parallel(self, work: Callable[[Any], Any], items: Any) -> list[Any]:
        return [work(each) for each in items]


@pytest.mark.parametrize(
    ("cached", "stored", "hours"),
    [(RESERVED, RESERVED, {"fc430": 6.0}), (hub({}), RESERVED, {"fc430": 6.0}), (hub({}), hub({}), None), (None, None, None)],
    ids=["cache-has-it", "cache-lacks-it", "it-was-released", "hub-left-the-fleet"],
)
def test_record_has_the_node_hours_of_the_reservation(cached: Object | None, stored: Object | None, hours: dict[str, float] | None) -> None:
    home = Home(stored)
    kube, cluster = cast(Kube, home), FleetCluster.from_object(CLUSTER)
    fleet = ObservedFleet((cluster,), {"east": Hub.from_object(cached)} if cached else {}, now=NOW)
    assert Deletion(kube, QuotaStore(kube)).advance([cluster], fleet, {}) == {"1": True}
    (record,) = home.created
    assert (record["kind"], record["spec"].get("nodeHours")) == (RECORD, hours)
