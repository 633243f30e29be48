"""Many clients and several processes at once, on a real API server: quota and capacity are never exceeded, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.hub_store import HubStore
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    API_VERSION,
    ASSIGNMENT,
    CLUSTER,
    HUB,
    QUOTA,
    hub_namespace,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import FleetCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import list_clusters
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota import claim_of
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota_store import QuotaStore
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target

from ..support.fleet import Fleet, fleet_of
from ..support.fleet_source import FleetProcess

KILL_AT = 10  # reservations
CONTENDERS, LIMIT = 8, 5


@pytest.fixture
def fleet(hub: Access, namespace: str) -> Iterator[Fleet]:
    with fleet_of(hub, namespace) as made:
        yield made


class Simultaneous(Kube):
    """A connection whose first write is sent only when all contenders have read. `is_conditional` False takes the condition away."""

    def __init__(self, access: Access, all_have_read: threading.Barrier, *, is_conditional: bool) -> None:
        super().__init__(target({"kubeconfig": str(access.kubeconfig)}))
        self._all_have_read: threading.Barrier | None = all_have_read
        self._is_conditional = is_conditional

    def patch(self, item: Object, changes: Any, **options: Any) -> Object:
        if self._all_have_read:
            self._all_have_read.wait(60)
            self._all_have_read = None
        return super().patch(item, changes, **options | ({} if self._is_conditional else {"checked": False}))


@pytest.mark.soak
@pytest.mark.parametrize("limited", ["quota", "hub"])
def test_reservations_of_processes_that_read_the_same_state_exceed_nothing(fleet: Fleet, limited: str) -> None:
    """And would exceed it if the writes were not conditional: the contention is real."""
    east = fleet.add_hub("east", clusters=LIMIT)
    fleet.set_quota(hard={"clusters": LIMIT})
    clusters = [FleetCluster.from_object(fleet.add_cluster(f"demo-{number}")) for number in range(CONTENDERS)]

    def reserve_on_quota(kube: Kube, cluster: FleetCluster) -> None:
        QuotaStore(kube, fleet.namespace).reserve(fleet.namespace, [claim_of(cluster)])

    def reserve_on_hub(kube: Kube, cluster: FleetCluster) -> None:
        HubStore(kube).reserve(east, [cluster], datetime.now(UTC))

    reserve: Callable[[Kube, FleetCluster], None] = {"quota": reserve_on_quota, "hub": reserve_on_hub}[limited]

    def contend(*, is_conditional: bool) -> int:
        all_have_read = threading.Barrier(CONTENDERS)

        def attempt(cluster: FleetCluster) -> None:
            reserve(Simultaneous(fleet.access, all_have_read, is_conditional=is_conditional), cluster)

        with ThreadPoolExecutor(CONTENDERS) as threads:
            list(threads.map(attempt, clusters))
        return len(fleet.quota()["reservations"] if limited == "quota" else fleet.hub(east)["reservations"])

    assert contend(is_conditional=True) == LIMIT
    QuotaStore(fleet.home, fleet.namespace).release(fleet.namespace, [each.uid for each in clusters])
    HubStore(fleet.home).release(east, [each.uid for each in clusters])
    assert contend(is_conditional=False) == CONTENDERS


class Watch:
    """The largest number of reservations that an object ever had, as a watch sees every write."""

    def __init__(self, access: Access, kind: str, name: str, namespace: str | None) -> None:
        self.most = 0
        self.reached = threading.Event()
        self._home = Kube.connect({"kubeconfig": str(access.kubeconfig)})
        self._item = self._home.get(API_VERSION, kind, name, namespace)
        since = self._home.list_all(API_VERSION, kind, namespace).resource_version
        self._events = self._home.watch(API_VERSION, kind, namespace, since=since, seconds=600)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def complete(self) -> int:
        """Ends when the watch has seen all writes up to now: a last one marks the end."""
        self._home.patch(self._item, {"metadata": {"labels": {"watched": "completely"}}}, checked=False)
        self._thread.join(300)
        assert not self._thread.is_alive()
        return self.most

    def _run(self) -> None:
        for event in self._events:
            if event.object["metadata"].get("uid") == self._item["metadata"]["uid"]:
                self.most = max(self.most, len((event.object.get("status") or {}).get("reservations") or {}))
                if self.most >= KILL_AT:
                    self.reached.set()
                if "watched" in event.object["metadata"].get("labels", {}):
                    return


@pytest.mark.soak
@pytest.mark.parametrize("limited", ["quota", "hubs", "nodes"])
def test_200_creates_at_once_with_two_engines_and_a_kill_admit_exactly_50(fleet: Fleet, limited: str) -> None:
    """Of the hubs, the capacity for clusters or for nodes is limited; each cluster has one node."""
    sizes = (500, 500) if limited == "quota" else (20, 30)
    capacities = [(500, size) if limited == "nodes" else (size, 500) for size in sizes]
    hubs = [fleet.add_hub(f"hub{number}", clusters, nodes) for number, (clusters, nodes) in enumerate(capacities)]
    fleet.set_quota(hard={"clusters": 50 if limited == "quota" else 500})
    watches = {"default": Watch(fleet.access, QUOTA, "default", fleet.namespace)}
    watches |= {name: Watch(fleet.access, HUB, name, None) for name in hubs}
    first, second = FleetProcess(fleet), FleetProcess(fleet)
    try:
        first.start().until_leads()
        second.start()
        with ThreadPoolExecutor(16) as clients:
            creations = [clients.submit(fleet.add_cluster, f"demo-{number}", 1) for number in range(200)]
            assert watches["default"].reached.wait(300)
            first.kill()
            for each in creations:
                each.result()

        def decided() -> bool:
            found = [each["status"] for each in fleet.home.list_all(API_VERSION, CLUSTER, fleet.namespace) if each.get("status")]
            return len(found) == 200 and sum("hub" in each for each in found) == 50

        until(decided, "each cluster is bound or waits")
        bound = {each.uid: each.hub for each in list_clusters(fleet.home, fleet.namespace) if each.hub}

        def assigned() -> dict[str, str]:
            return {item["metadata"]["name"]: item["metadata"]["namespace"] for item in fleet.home.list_all(API_VERSION, ASSIGNMENT)}

        until(lambda: set(bound) <= set(assigned()), "each bound cluster is assigned")
        until(second.leads, "the second engine has taken over")
    finally:
        first.kill()
        second.kill()
    clusters = list_clusters(fleet.home, fleet.namespace)
    assert len(bound) == 50
    limits = {"default": 50 if limited == "quota" else 500, **dict(zip(hubs, sizes, strict=True))}
    most = {name: watch.complete() for name, watch in watches.items()}
    assert all(most[name] <= limit for name, limit in limits.items()), most
    assert max(most.values()) == (50 if limited == "quota" else 200)
    assert {uid: assigned().get(uid) for uid in bound} == {uid: hub_namespace(hub) for uid, hub in bound.items()}
    reservations = {uid: name for name in hubs for uid in fleet.hub(name)["reservations"]}
    assert reservations == bound
    assert set(fleet.quota()["reservations"]) == (set(bound) if limited == "quota" else {each.uid for each in clusters})
    assert fleet.quota()["used"]["clusters"] == len(fleet.quota()["reservations"])
    waiting = next(each for each in clusters if not each.hub)
    kind, message = {
        "quota": ("QuotaReserved", "The quota is exceeded: clusters needs 1, 0 of 50 free"),
        "hubs": ("Scheduled", "0 of 2 hubs fit: 2 full"),
        "nodes": ("Scheduled", "0 of 2 hubs fit: 2 with too few fc430 (best 0 of 1)"),
    }[limited]
    assert fleet.condition(waiting.name, kind)[2] == message
