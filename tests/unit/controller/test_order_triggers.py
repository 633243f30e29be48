"""Which orders a change on the hub enqueues, and which changes concern none."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock, call

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.order_triggers import OrderTriggers
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key, WorkQueue
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import ORDER_ANNOTATION, lease_name
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

KEY, NAMES = Key("team", "demo"), Names()
WORKING = NAMES.working_namespace(*KEY)
EXTERNAL = Names(external_controller=True)


def order(version: str = "1", **metadata: Any) -> Object:
    return {"metadata": {"namespace": "team", "name": "demo", "resourceVersion": version, "generation": 1, **metadata}}


def namespace(name: str = WORKING, label: str = "") -> Object:
    return {"metadata": {"name": name, "labels": {NAMES.order_label: label} if label else None}}


def hosted_cluster(place: str = WORKING) -> Object:
    return {"metadata": {"namespace": place, "name": "demo"}}


def lease(name: str = "demo") -> Object:
    metadata = {"name": lease_name("team", name), "namespace": NAMES.site_namespace, "annotations": {ORDER_ANNOTATION: f"team/{name}"}}
    return {"kind": "Lease", "metadata": metadata | {"resourceVersion": "1"}}


class Hub:
    """Triggers whose cache has one order, which is followed."""

    def __init__(self, names: Names = NAMES) -> None:
        self.orders = {KEY: order()}
        self.queue = Mock(WorkQueue)
        self.queue.is_active.return_value = False
        self.triggers = OrderTriggers(names, self.queue, self.orders.get)
        self.triggers.follow(KEY)

    def added(self) -> list[Any]:
        """How the order was added to the queue since the last call."""
        added = [each for each in self.queue.mock_calls if each[0] != "is_active"]
        self.queue.reset_mock()
        return added


@pytest.mark.parametrize(
    ("kind", "before", "after", "added"),
    [
        ("lock", None, lease(), [call.add(KEY)]),
        ("lock", lease(), lease(), [call.add(KEY)]),
        ("lock", lease(), None, [call.add(KEY)]),
        ("lock", None, lease("deleted-order"), []),
        ("lock", None, {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}}, []),
        ("namespace", None, namespace(), [call.add_coalesced(KEY)]),
        ("namespace", namespace(), None, [call.add_coalesced(KEY)]),
        ("namespace", namespace(), namespace(), []),  # only whether it exists matters
        ("namespace", None, namespace("other"), []),
        ("cluster", None, hosted_cluster(), [call.add_coalesced(KEY)]),
        ("cluster", hosted_cluster(), hosted_cluster(), [call.add_coalesced(KEY)]),
        ("cluster", hosted_cluster(), None, [call.add_coalesced(KEY)]),
        ("cluster", None, hosted_cluster("other"), []),
    ],
)
def test_a_change_enqueues_the_orders_that_it_concerns(kind: str, before: Object | None, after: Object | None, added: list[Any]) -> None:
    hub = Hub()
    changed = getattr(hub.triggers, f"{kind}_changed")
    changed(before, after)
    assert hub.added() == added
    hub.triggers.forget(KEY)
    hub.orders.clear()
    changed(before, after)
    assert hub.added() == [], "the order is deleted"


def test_namespaces_of_an_external_controller_concern_the_order_of_their_label() -> None:
    hub = Hub(EXTERNAL)
    hub.triggers.namespace_changed(None, namespace("of-its-own", "demo"))
    assert hub.added() == [call.add_coalesced(KEY)]
    hub.triggers.cluster_changed(None, hosted_cluster("of-its-own"))
    assert hub.added() == [], "it is not known yet which namespaces may be the order's"
    hub.triggers.follow_namespaces(KEY, ["of-its-own"])
    hub.triggers.cluster_changed(None, hosted_cluster("of-its-own"))
    assert hub.added() == [call.add_coalesced(KEY)]


@pytest.mark.parametrize(
    ("is_active", "before", "after", "is_added"),
    [
        (False, None, order(), True),
        (False, order(), order("2"), True),
        (True, None, order(), True),
        (True, order(), order("2", generation=2), True),
        (True, order(), order("2", annotations={"a": "b"}), True),
        (True, order(), order("2"), False),  # a status, mostly of the reconcile's own write
    ],
)
def test_a_change_of_an_order_enqueues_it_unless_its_reconcile_may_have_caused_it(
    is_active: bool, before: Object | None, after: Object, is_added: bool
) -> None:
    hub = Hub()
    hub.queue.is_active.return_value = is_active
    hub.triggers.order_changed(KEY, before, after)
    assert hub.added() == ([call.add(KEY)] if is_added else [])


@pytest.mark.parametrize(
    ("version", "cached", "is_added"),
    [
        ("2", order("2"), False),  # its own write
        ("2", order("3"), True),  # another writer's, after it
        (None, order("2"), True),  # the reconcile has failed
        ("2", None, False),  # deleted meanwhile
    ],
)
def test_a_status_that_changed_during_a_reconcile_enqueues_the_order_once_if_another_writer_changed_it(
    version: str | None, cached: Object | None, is_added: bool
) -> None:
    hub = Hub()
    hub.triggers.reconciled(KEY, version)
    assert hub.added() == [], "nothing has changed"
    hub.queue.is_active.return_value = True
    hub.triggers.order_changed(KEY, order(), order("2"))
    hub.orders.clear()
    if cached:
        hub.orders[KEY] = cached
    for expected in ([call.add(KEY)] if is_added else [], []):
        hub.triggers.reconciled(KEY, version)
        assert hub.added() == expected
