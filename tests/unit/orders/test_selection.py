"""Which orders a run is about: only what is named in full; half a name never comes to mean every order."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, event_of, named, uids

DEMO = OrderName("orders", "demo")


@pytest.mark.parametrize(
    ("name", "namespace", "orders", "event"),
    [
        ("demo", "orders", [], None),
        (None, None, ["orders/demo", {"namespace": "orders", "name": "demo"}], None),
        (None, None, [], {"order": {"namespace": "orders", "name": "demo"}}),
        (None, None, [], {"orders": [{"namespace": "orders", "name": "demo"}]}),
        (None, None, [], {"payload": {"metadata": {"namespace": "orders", "name": "demo"}, "spec": {"templateID": "other"}}}),
    ],
)
def test_an_order_is_found_in_every_usual_shape(name: str | None, namespace: str | None, orders: list[Any], event: Any) -> None:
    assert named(name, namespace, orders, event) == [DEMO]


def test_an_event_tells_which_order_of_that_name_it_is_about() -> None:
    metadata = {"namespace": "orders", "name": "demo", "uid": "x"}
    for event in ({"order": metadata}, {"orders": [metadata]}, {"payload": {"metadata": metadata}, "order": {**metadata, "uid": "y"}}):
        assert named(None, None, [], event) == [DEMO]
        assert uids(event) == {DEMO: "x"}
    for without in ({"order": {}}, {"payload": {"metadata": {}}}, {"payload": ["x"]}, {}, None):
        assert uids(without) == {}


@pytest.mark.parametrize("uid", ["x" * 1000, "\nskipped other/order: done", {"a": "b"}])
def test_a_forged_uid_is_that_of_no_order_and_bounded(uid: Any) -> None:
    (shown,) = uids({"payload": {"metadata": {"namespace": "orders", "name": "demo", "uid": uid}}}).values()
    assert len(shown) <= 64 and "\n" not in shown and shown != uid


def test_what_is_named_counts_more_than_the_event() -> None:
    assert named("demo", "orders", [], {"order": {"namespace": "a", "name": "b"}}) == [DEMO]


@pytest.mark.parametrize(
    ("name", "namespace"), [("demo", None), (None, "orders"), ("", "orders"), ("demo", ""), ("", ""), ("../x", "orders")]
)
def test_half_a_name_is_refused(name: str | None, namespace: str | None) -> None:
    with pytest.raises(NoSuchSelection, match="give both"):
        named(name, namespace, [], None)


@pytest.mark.parametrize(
    "event",
    [
        {"payload": {}},
        {"payload": {"metadata": {"name": "{{ x }}", "namespace": "a"}}},
        {"orders": [3]},
        {"order": "demo"},
        {"payload": "x"},
    ],
)
def test_an_event_that_names_no_possible_order_is_refused(event: Any) -> None:
    with pytest.raises(NoSuchSelection):
        named(None, None, [], event)


def test_the_event_is_taken_as_it_came() -> None:
    event = {"order": {"namespace": "orders", "name": "{{ 1 + 1 }}"}}
    assert event_of({"ansible_eda": {"event": event}}) is event
    assert event_of({}) is event_of({"ansible_eda": None}) is event_of({"ansible_eda": {}}) is None
    with pytest.raises(NoSuchSelection, match="ansible_eda"):
        event_of({"ansible_eda": "{{ hostile }}"})


def test_nothing_named_is_nothing_chosen() -> None:
    assert named(None, None, [], None) == named(None, None, [], {}) == []
