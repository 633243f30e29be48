"""The events of transitions: once for each phase that is reported, the same id from every source."""

from __future__ import annotations

from ansible_collections.openfleet.clusters.plugins.module_utils.controller.rulebook_events import Transitions, deletion_event
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import node_pool, observed_with, order, ready_order, with_status

KEY = Key("orders", "demo")


def test_a_phase_is_reported_once_with_its_reason() -> None:
    transitions, ready = Transitions(), ready_order()
    event = transitions.event(KEY, ready)
    assert event is not None
    reference = {"namespace": "orders", "name": "demo", "uid": "u1", "generation": 1}
    assert (event["action"], event["order"], event["orders"], event["reason"]) == ("ready", reference, [reference], "Available")
    assert transitions.event(KEY, ready) is None
    degraded = with_status(ready, observed_with(node_pool(2)))
    event = transitions.event(KEY, degraded)
    assert event is not None and (event["action"], event["reason"]) == ("degraded", "NodesNotReady")
    assert (transitions.event(KEY, ready) or {})["action"] == "ready"


def test_a_phase_from_before_the_source_began_and_one_in_between_are_not_reported() -> None:
    transitions = Transitions()
    transitions.record(KEY, "Ready")
    assert transitions.event(KEY, ready_order()) is None
    assert transitions.event(KEY, with_status(order(), observed_with(node_pool(1)))) is None


def test_two_sources_give_the_same_transition_the_same_id_and_another_one_another() -> None:
    first, second = (Transitions().event(KEY, ready_order()) or {} for _source in range(2))
    assert first["meta"]["uuid"] == second["meta"]["uuid"] != deletion_event(KEY, ready_order())["meta"]["uuid"]


def test_an_order_that_was_forgotten_is_reported_again() -> None:
    transitions = Transitions()
    transitions.event(KEY, ready_order())
    transitions.forget(KEY)
    assert transitions.event(KEY, ready_order()) is not None
