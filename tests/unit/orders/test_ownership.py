"""Which namespace belongs to an order, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.ownership import NamespaceTaken, owns_namespace, require_own

from .order_samples import order


def namespace_of(item: ClusterOrder, **labels: str | None) -> dict[str, Any]:
    kept = {name: value for name, value in (item.labels | labels).items() if value is not None}
    return {"metadata": {"name": item.working_namespace, "labels": kept}}


def test_an_order_owns_the_namespace_with_its_labels() -> None:
    mine = order(uid="1")
    assert mine.labels == {
        "cloudkit.openshift.io/clusterorder": "demo",
        "cloudkit.openshift.io/clusterorder-namespace": "orders",
        "cloudkit.openshift.io/clusterorder-uid": "1",
    }
    assert owns_namespace(mine, namespace_of(mine))


@pytest.mark.parametrize("label", ["order_label", "order_namespace_label", "order_uid_label"])
@pytest.mark.parametrize("value", [None, "another"])
def test_an_order_does_not_own_a_namespace_with_other_labels(label: str, value: str | None) -> None:
    mine = order(uid="1")
    assert not owns_namespace(mine, namespace_of(mine, **{getattr(mine.names, label): value}))


def test_an_order_does_not_own_the_namespace_of_an_earlier_one_of_its_name() -> None:
    assert not owns_namespace(order(uid="2"), namespace_of(order(uid="1")))


def test_a_namespace_of_an_external_controller_has_the_orders_name_and_later_its_uid() -> None:
    first, second = (replace(order(uid=uid), names=Names(external_controller=True)) for uid in "12")
    only_name = dict.fromkeys((first.names.order_namespace_label, first.names.order_uid_label))
    assert owns_namespace(first, namespace_of(first, **only_name))
    stamped = namespace_of(first, **{first.names.order_namespace_label: None})
    assert owns_namespace(first, stamped)
    assert not owns_namespace(second, stamped)


def test_an_external_controller_gives_two_orders_the_same_namespace_and_one_of_them_owns_it() -> None:
    names = Names(external_controller=True)
    first, second = (replace(order(namespace=ns, name=name), names=names) for ns, name in (("a-b", "c"), ("a", "b-c")))
    assert first.working_namespace == second.working_namespace
    only_name = {first.names.order_namespace_label: None}
    assert owns_namespace(first, namespace_of(first, **only_name))
    assert not owns_namespace(second, namespace_of(first, **only_name))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        (order().working_namespace, {}),
        (order().working_namespace, {"osac.openshift.io/clusterorder": "demo"}),
        (order().working_namespace, order().labels | {"cloudkit.openshift.io/clusterorder-namespace": "other"}),
        ("other", order().labels),
    ],
)
def test_a_namespace_without_its_labels_or_with_another_name_is_not_the_orders(name: str, labels: dict[str, str]) -> None:
    assert owns_namespace(order(), {"metadata": {"name": order().working_namespace, "labels": order().labels}})
    assert not owns_namespace(order(), {"metadata": {"name": name, "labels": labels}})


def test_what_is_in_the_way_of_an_order_is_named() -> None:
    with pytest.raises(NamespaceTaken, match=r"belongs to an earlier ClusterOrder orders/demo with the uid 1\. Delete the namespace"):
        require_own(order(uid="2"), namespace_of(order(uid="1")))
    with pytest.raises(NamespaceTaken, match=r"does not belong to ClusterOrder orders/demo\."):
        require_own(order(), {"metadata": {"name": "x"}})
