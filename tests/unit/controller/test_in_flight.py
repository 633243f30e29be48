"""Which actions are under way: one for each order, some orders in a run, a few runs at a time, and each until its lock shows its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.in_flight import (
    RESYNC,
    WITHOUT_LOCK_SECONDS,
    InFlightRuns,
    PendingAction,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LockState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status import Action

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = 30.0


def key(number: int) -> Key:
    return Key("orders", f"order-{number}")


def wish(action: Action = "provision", reason: str = "SpecNotCarriedOut", token: int = 7) -> PendingAction:
    return PendingAction(action, reason, "uid", 1, token)


def lock(token: int, holder: str = "", renewed: datetime = NOW) -> LockState:
    return LockState("orders", "order-1", holder, token, renewed=renewed if holder else None)


def flights(batch_size: int = 3, max_in_flight: int = 2) -> InFlightRuns:
    return InFlightRuns(batch_size, max_in_flight, PATIENCE)


def started(wanted: InFlightRuns) -> list[tuple[str, list[Key]]]:
    runs = []
    while run := wanted.start():
        runs.append((run.action, list(run.wishes)))
    return runs


def test_orders_that_need_the_same_go_into_one_run_up_to_its_size() -> None:
    wanted = flights()
    for number in range(4):
        wanted.want(key(number), wish())
    assert started(wanted) == [("provision", [key(0), key(1), key(2)]), ("provision", [key(3)])]


def test_no_more_runs_than_allowed_are_under_way_and_the_next_starts_when_one_is_over_for_all_its_orders() -> None:
    wanted = flights(batch_size=2, max_in_flight=1)
    for number in range(4):
        wanted.want(key(number), wish())
    assert started(wanted) == [("provision", [key(0), key(1)])]
    wanted.land(key(0))
    assert wanted.start() is None and wanted.runs == 1
    wanted.land(key(1))
    assert started(wanted) == [("provision", [key(2), key(3)])]


def test_the_action_that_is_wanted_for_longest_is_first_and_a_resync_waits_for_all_others() -> None:
    wanted = flights(max_in_flight=9)
    wanted.want(key(0), wish(reason=RESYNC))
    wanted.want(key(1), wish("delete"))
    wanted.want(key(2), wish())
    assert started(wanted) == [("delete", [key(1)]), ("provision", [key(2), key(0)])]


def test_a_wish_for_an_order_under_way_is_none_and_another_action_takes_the_place_of_the_first() -> None:
    wanted = flights()
    wanted.want(key(1), wish())
    wanted.want(key(1), wish("delete"))
    assert started(wanted) == [("delete", [key(1)])]
    wanted.want(key(1), wish())
    assert started(wanted) == []
    wanted.land(key(1))
    wanted.want(key(1), wish())
    wanted.withdraw(key(1))
    assert started(wanted) == []


@pytest.mark.parametrize(
    ("seen", "after", "is_over"),
    [
        (lock(7), 0, False),  # the run has not begun
        (lock(7), PATIENCE + 1, True),  # and never will
        (lock(8, "run"), 0, False),  # it is at work
        (lock(8, "run", NOW - timedelta(seconds=59)), PATIENCE + 1, False),  # it takes long, and renews its lock
        (lock(8, "run", NOW - timedelta(seconds=61)), 0, True),  # it was killed
        (lock(8), 0, True),  # it has ended
        (lock(9), 0, True),  # and another one after it
        (None, 0, True),  # somebody deleted the Lease
        (lock(6), 0, False),  # our copy is late: the hub had a higher token already
    ],
)
def test_a_run_is_over_when_the_lock_shows_it_or_it_never_began(seen: LockState | None, after: float, is_over: bool) -> None:
    wanted = flights()
    wanted.want(key(1), wish(token=7))
    run = wanted.start()
    assert run
    assert not wanted.is_over(key(1), lock(7), NOW, 1e9)  # the engine has not even taken it
    run.began = 100.0
    assert wanted.is_over(key(1), seen, NOW, 100.0 + after) is is_over


def test_a_run_that_nobody_wants_any_more_is_over_unless_it_has_begun() -> None:
    wanted = flights()
    wanted.want(key(1), wish(token=7))
    run = wanted.start()
    assert run
    run.began = 100.0
    assert wanted.is_over(key(1), lock(7), NOW, 100.0, unwanted=True)
    assert not wanted.is_over(key(1), lock(8, "run"), NOW, 100.0, unwanted=True)


def test_a_deletion_without_a_lock_is_given_up_soon() -> None:
    wanted = InFlightRuns(batch_size=1, max_in_flight=2, patience=600)
    wanted.want(key(1), wish("delete", token=0))
    wanted.want(key(2), wish(token=0))
    while run := wanted.start():
        run.began = 100.0
    assert wanted.gives_up_in(key(1), None, 100.0) == WITHOUT_LOCK_SECONDS
    assert wanted.is_over(key(1), None, NOW, 101.0 + WITHOUT_LOCK_SECONDS)
    assert not wanted.is_over(key(2), None, NOW, 101.0 + WITHOUT_LOCK_SECONDS)


def test_an_event_has_names_only() -> None:
    wanted = flights()
    wanted.want(key(1), wish())
    wanted.want(key(2), wish(reason="Retry"))
    run = wanted.start()
    assert run
    orders = [{"namespace": "orders", "name": f"order-{number}", "uid": "uid", "generation": 1} for number in (1, 2)]
    assert run.event() == {
        "action": "provision",
        "order": orders[0],
        "orders": orders,
        "reason": "SpecNotCarriedOut, Retry",
        "meta": {"endpoint": "create-hosted-cluster", "uuid": run.id, "launch": "job"},
    }
    assert run.event(["provision"])["meta"]["launch"] == "workflow"


def test_counts_tell_what_waits_and_what_is_under_way() -> None:
    wanted = flights(batch_size=1, max_in_flight=1)
    wanted.want(key(1), wish("delete"))
    wanted.want(key(2), wish("delete"))
    wanted.start()
    counts = wanted.counts()
    assert counts["wanted", "delete"] == counts["in_flight", "delete"] == 1
    assert sum(counts.values()) == 2
