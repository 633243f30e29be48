"""Which actions are under way: one for each order, some orders in a run, a few runs at a time, and each until its lock shows its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.in_flight import (
    ABANDONED_SECONDS,
    RESYNC,
    InFlightRuns,
    PendingAction,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.rulebook_events import action_event
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import DURATION, SKEW, LockState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Action

NOW = datetime(2026, 1, 1, tzinfo=UTC)
START_TIMEOUT, PENDING_TIMEOUT = 30.0, 300.0
SECOND = timedelta(seconds=1)
EXPIRY = timedelta(seconds=DURATION) + SKEW  # from the last renewal of a lock


def key(number: int) -> Key:
    return Key("orders", f"order-{number}")


def pending(action: Action = "provision", reason: str = "SpecNotApplied", token: int = 7) -> PendingAction:
    return PendingAction(action, reason, "uid", 1, token)


def lock(token: int, holder: str = "", renewed: datetime = NOW) -> LockState:
    return LockState("orders", "order-1", holder, token, renewed=renewed if holder else None)


def in_flight_runs(batch_size: int = 3, max_in_flight: int = 2) -> InFlightRuns:
    return InFlightRuns(batch_size, max_in_flight, START_TIMEOUT, PENDING_TIMEOUT)


def started(wanted: InFlightRuns) -> list[tuple[str, list[Key]]]:
    runs = []
    while run := wanted.start(0):
        runs.append((run.action, list(run.orders)))
    return runs


def test_orders_that_need_the_same_go_into_one_run_up_to_its_size() -> None:
    wanted = in_flight_runs()
    for number in range(4):
        wanted.request(key(number), pending())
    assert started(wanted) == [("provision", [key(0), key(1), key(2)]), ("provision", [key(3)])]


def test_no_more_runs_than_allowed_are_in_flight_and_the_next_starts_when_one_is_over_for_all_its_orders() -> None:
    wanted = in_flight_runs(batch_size=2, max_in_flight=1)
    for number in range(4):
        wanted.request(key(number), pending())
    assert started(wanted) == [("provision", [key(0), key(1)])]
    wanted.complete(key(0))
    assert wanted.start(0) is None and wanted.runs == 1
    wanted.complete(key(1))
    assert started(wanted) == [("provision", [key(2), key(3)])]


def test_the_action_that_is_wanted_for_longest_is_first_and_a_resync_waits_for_all_others() -> None:
    wanted = in_flight_runs(max_in_flight=9)
    wanted.request(key(0), pending(reason=RESYNC))
    wanted.request(key(1), pending("delete"))
    wanted.request(key(2), pending())
    assert started(wanted) == [("delete", [key(1)]), ("provision", [key(2), key(0)])]


def test_namespaces_take_turns_and_none_has_all_the_slots() -> None:
    wanted = in_flight_runs(batch_size=2, max_in_flight=4)
    for number in range(8):
        wanted.request(key(number), pending())
    assert len(started(wanted)) == 3, "the fourth slot is for others"
    other = [Key("other", "a"), Key("other", "b")]
    for each in other:
        wanted.request(each, pending())
    assert started(wanted) == [("provision", other)]
    wanted.complete(key(0))
    wanted.complete(key(1))
    wanted.request(Key("third", "a"), pending())
    assert started(wanted) == [("provision", [Key("third", "a"), key(6)])], "the namespace with fewer runs is first"


def test_a_run_inside_clusters_is_for_one_namespace() -> None:
    """Their tenants may have them answer slowly."""
    wanted = in_flight_runs(max_in_flight=4)
    others = [Key("other", "a"), Key("other", "b")]
    for each in (key(0), *others, key(1)):
        wanted.request(each, pending("post_install"))
    assert started(wanted) == [("post_install", [key(0), key(1)]), ("post_install", others)]


def test_a_run_whose_orders_are_gone_before_it_locks_them_counts_for_its_namespace() -> None:
    """Else a tenant who creates and deletes orders, or pauses them, has more than the tenant's share of the slots."""
    wanted = in_flight_runs(batch_size=1, max_in_flight=4)
    for number in range(4):
        wanted.request(key(number), pending(token=7))
    assert len(started(wanted)) == 3
    assert wanted.abandon(key(0), 7, 0)
    assert wanted.start(ABANDONED_SECONDS - 1) is None
    other = Key("other", "a")
    wanted.request(other, pending())
    assert started(wanted) == [("provision", [other])]
    wanted.complete(other)
    assert wanted.start(ABANDONED_SECONDS) is not None


def test_a_run_whose_orders_are_gone_before_it_locks_them_counts_for_a_while() -> None:
    """Else a tenant who creates and deletes orders has any number of runs at a time."""
    wanted = in_flight_runs(max_in_flight=1)
    wanted.request(key(1), pending(token=7))
    assert started(wanted) == [("provision", [key(1)])]
    assert wanted.abandon(key(1), 7, 0)
    wanted.request(key(2), pending())
    assert wanted.start(ABANDONED_SECONDS - 1) is None
    assert wanted.start(ABANDONED_SECONDS) is not None
    assert wanted.abandon(key(2), 8, 100), "it has locked its order: when that is gone, it has ended"
    wanted.request(key(3), pending())
    assert wanted.start(100) is not None


def test_a_request_for_an_order_in_flight_is_ignored_and_another_action_replaces_the_first() -> None:
    wanted = in_flight_runs()
    wanted.request(key(1), pending())
    wanted.request(key(1), pending("delete"))
    assert started(wanted) == [("delete", [key(1)])]
    wanted.request(key(1), pending())
    assert started(wanted) == []
    wanted.complete(key(1))
    wanted.request(key(1), pending())
    wanted.cancel(key(1))
    assert started(wanted) == []


@pytest.mark.parametrize(
    ("observed", "after", "has_ended"),
    [
        (lock(7), 0, False),  # the run has not begun
        (lock(7), START_TIMEOUT + 1, False),  # it may be pending in a queue
        (lock(7), PENDING_TIMEOUT + 1, True),  # and never will begin
        (lock(8, "run"), 0, False),  # it is at work
        (lock(8, "run", NOW - EXPIRY + SKEW + SECOND), PENDING_TIMEOUT + 1, False),  # it takes long, and renews its lock
        (lock(8, "run", NOW - EXPIRY + SECOND), 0, False),  # it has expired, as far as one clock shows
        (lock(8, "run", NOW - EXPIRY - SECOND), 0, True),  # it was killed
        (lock(8), 0, True),  # it has ended
        (lock(9), 0, True),  # and another one after it
        (None, 0, True),  # the Lease was deleted
        (lock(6), 0, False),  # our copy is late: the hub had a higher token already
    ],
)
def test_a_run_is_over_when_the_lock_shows_it_or_it_never_began(observed: LockState | None, after: float, has_ended: bool) -> None:
    wanted = in_flight_runs()
    wanted.request(key(1), pending(token=7))
    run = wanted.start(0)
    assert run
    assert not wanted.has_ended(key(1), lock(7), NOW, 1e9)  # the engine has not even taken it
    run.began = 100.0
    assert wanted.has_ended(key(1), observed, NOW, 100.0 + after) is has_ended


def test_a_run_that_is_obsolete_is_over_unless_it_has_begun() -> None:
    wanted = in_flight_runs()
    wanted.request(key(1), pending(token=7))
    run = wanted.start(0)
    assert run
    run.began = 100.0
    assert wanted.has_ended(key(1), lock(7), NOW, 100.0, obsolete=True)
    assert not wanted.has_ended(key(1), lock(8, "run"), NOW, 100.0, obsolete=True)


@pytest.mark.parametrize(
    ("observed", "after", "is_late"),
    [
        (lock(7), START_TIMEOUT, False),
        (lock(7), START_TIMEOUT + 1, True),
        (lock(8, "run"), START_TIMEOUT + 1, False),
        (lock(8), START_TIMEOUT + 1, False),
    ],
)
def test_a_run_that_has_not_locked_the_order_in_time_is_late_once(observed: LockState, after: float, is_late: bool) -> None:
    wanted = in_flight_runs()
    wanted.request(key(1), pending(token=7))
    run = wanted.start(0)
    assert run
    assert not wanted.is_late(key(1), lock(7), 1e9)  # the engine has not even taken it
    run.began = 100.0
    assert wanted.next_check_in(key(1), 100.0) == START_TIMEOUT
    assert wanted.is_late(key(1), observed, 100.0 + after) is is_late
    if is_late:
        assert not wanted.is_late(key(1), observed, 101.0 + after)
        assert wanted.next_check_in(key(1), 100.0 + after) == wanted.gives_up_in(key(1), 100.0 + after) == PENDING_TIMEOUT - after


def test_a_run_that_is_late_keeps_its_place_until_it_counts_as_lost() -> None:
    wanted = in_flight_runs(batch_size=1, max_in_flight=1)
    wanted.request(key(1), pending(token=7))
    run = wanted.start(0)
    assert run
    run.began = 100.0
    assert wanted.is_late(key(1), lock(7), 101.0 + START_TIMEOUT)
    wanted.request(key(1), pending(token=7))
    wanted.request(key(2), pending(token=7))
    assert started(wanted) == []
    assert wanted.has_ended(key(1), lock(7), NOW, 101.0 + PENDING_TIMEOUT)
    wanted.complete(key(1))
    assert started(wanted) == [("provision", [key(2)])]


def test_an_event_has_names_only() -> None:
    wanted = in_flight_runs()
    wanted.request(key(1), pending())
    wanted.request(key(2), pending(reason="Retry"))
    run = wanted.start(0)
    assert run
    orders = [{"namespace": "orders", "name": f"order-{number}", "uid": "uid", "generation": 1} for number in (1, 2)]
    assert action_event(run) == {
        "action": "provision",
        "order": orders[0],
        "orders": orders,
        "reason": "SpecNotApplied, Retry",
        "meta": {"endpoint": "create-hosted-cluster", "uuid": run.id, "launch": "job"},
    }
    assert action_event(run, ["provision"])["meta"]["launch"] == "workflow"


def test_counts_tell_what_waits_and_what_is_in_flight() -> None:
    wanted = in_flight_runs(batch_size=1, max_in_flight=1)
    wanted.request(key(1), pending("delete"))
    wanted.request(key(2), pending("delete"))
    wanted.start(0)
    counts = wanted.counts()
    assert counts["pending", "delete"] == counts["in_flight", "delete"] == 1
    assert sum(counts.values()) == 2
