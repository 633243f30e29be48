"""A reconcile that is killed between any two of its writes: the next one ends where it should, and nothing is counted twice or lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, hub_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import observe
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.reconcile import Reconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.sweep import sweep

from ..support import mortal
from ..support.fleet import Fleet, fleet_of

REFERENCE = {"secretRef": {"name": "pull-secret", "key": "token"}}


@pytest.fixture
def fleet(hub: Access, namespace: str) -> Iterator[Fleet]:
    with fleet_of(hub, namespace) as made:
        yield made


def reconcile(fleet: Fleet) -> None:
    home = mortal.connect({"kubeconfig": str(fleet.access.kubeconfig)})
    Reconciler(home, fleet.namespace).reconcile(observe(home, fleet.namespace))


def killed_at_each_write(fleet: Fleet, begin: Callable[[str], object], check: Callable[[str], None], rounds: int = 1) -> int:
    """Begin something with a new cluster, kill each reconcile at another write, repeat it once, and check. Returns how many kills."""
    for write in range(1, 50):
        name = f"demo-{write}"
        begin(name)

        def all_rounds() -> None:
            for _round in range(rounds):
                reconcile(fleet)

        died = mortal.dies_at(write, all_rounds)
        all_rounds()  # once: an engine that has reconciled a cluster does not do it again by itself
        check(name)
        if not died:
            return write - 1
    raise AssertionError("it writes for ever")


def matches(fleet: Fleet, clusters: int, nodes: int) -> None:
    """Reservations on the quota and the hub, and the sweep has nothing to repair."""
    (east,) = fleet.hubs
    used = fleet.quota()["used"]
    assert (used.get("clusters", 0), used.get("nodes", 0)) == (clusters, nodes)
    shown = fleet.hub(east)
    assert (shown.get("clusters", 0), sum(each["nodes"].get("fc430", 0) for each in shown["reservations"].values())) == (clusters, nodes)
    assert len(fleet.assignments()) == clusters
    found = sweep(fleet.home, fleet.namespace)
    assert (found.quotas.get(fleet.namespace), found.hubs.get(east)) == (None, None)


def copies(fleet: Fleet) -> list[Object]:
    return list(fleet.home.list_all("v1", "Secret", hub_namespace(fleet.hubs[0])))


def test_kill_at_any_write_of_a_placement_a_resize_and_a_deletion(fleet: Fleet) -> None:
    fleet.add_hub("east", clusters=100, nodes=1000)
    fleet.set_quota(hard={})
    metadata = {"name": "pull-secret", "namespace": fleet.namespace}
    fleet.home.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "made up"}})
    placed: list[str] = []

    def create(name: str) -> None:
        placed.append(name)
        fleet.add_cluster(name, 2, templateParameters={"pull_secret": REFERENCE})

    def is_placed(name: str) -> None:
        assert fleet.cluster(name)["status"]["hub"] == fleet.hubs[0]
        matches(fleet, len(placed), 2 * len(placed))
        assert len(copies(fleet)) == len(placed)

    # Finalizer, quota, capacity, binding, the copy of the Secret, the assignment.
    assert killed_at_each_write(fleet, create, is_placed) == 6

    sizes = dict.fromkeys(placed, 2)

    def grow(_name: str) -> None:
        """The oldest cluster that has its first size."""
        name = next(each for each, size in sizes.items() if size == 2)
        fleet.report(name, 2, state="Ready")
        reconcile(fleet)
        sizes[name] = 3
        fleet.resize(name, 3)

    # Quota, capacity, the assignment, the status.
    assert killed_at_each_write(fleet, grow, lambda _name: matches(fleet, len(sizes), sum(sizes.values()))) == 4

    def shrink(_name: str) -> None:
        name = next(each for each, size in sizes.items() if size == 3)
        fleet.report(name, 3, state="Ready")
        sizes[name] = 1
        fleet.resize(name, 1)
        reconcile(fleet)
        fleet.report(name, 1, state="Ready")

    # Quota, capacity, the status.
    assert killed_at_each_write(fleet, shrink, lambda _name: matches(fleet, len(sizes), sum(sizes.values()))) == 3

    deleted: list[str] = []

    def delete(_name: str) -> None:
        deleted.append(placed.pop())
        sizes.pop(deleted[-1])
        fleet.home.delete(fleet.cluster(deleted[-1]))

    def is_deleted(_name: str) -> None:
        assert fleet.home.find(API_VERSION, CLUSTER, deleted[-1], fleet.namespace) is None
        matches(fleet, len(sizes), sum(sizes.values()))
        assert sorted(each["spec"]["name"] for each in fleet.records()) == sorted(deleted)
        assert len(copies(fleet)) == len(placed)

    while len(placed) < 12:
        create(f"more-{len(placed)}")
        sizes[placed[-1]] = 2
    reconcile(fleet)
    # The assignment and the status; then the copy of the Secret, the record, capacity, quota and the finalizer.
    assert killed_at_each_write(fleet, delete, is_deleted, rounds=2) == 7
