"""When an order gets another run: repeated runs back off, settled orders are resynced, failures keep the time on the order."""

from __future__ import annotations

from datetime import timedelta

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.retry import (
    IMMEDIATE_REPEATS,
    LONGEST_REPEAT_SECONDS,
    SECOND_MORE,
    RetryPolicy,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import START, changed, order, ready_order, with_status

KEY = Key("orders", "demo")
RESYNC = 1000.0


def ended(times: int, of: ClusterOrder, policy: RetryPolicy | None = None) -> RetryPolicy:
    policy = policy or RetryPolicy(RESYNC)
    for _run in range(times):
        policy.run_ended(KEY, of, "provision", 100.0)
    return policy


@pytest.mark.parametrize(
    ("runs", "delay"),
    [(0, 0), (1, 0), (IMMEDIATE_REPEATS - 1, 0), (IMMEDIATE_REPEATS, 1), (IMMEDIATE_REPEATS + 3, 8), (60, LONGEST_REPEAT_SECONDS)],
)
def test_runs_that_change_nothing_back_off(runs: int, delay: float) -> None:
    assert ended(runs, order()).delay(KEY, order(), "provision", 100.0) == delay


def test_the_delay_counts_from_the_end_of_the_last_run() -> None:
    policy = ended(IMMEDIATE_REPEATS + 3, order())
    assert policy.delay(KEY, order(), "provision", 105.0) == 3
    assert policy.delay(KEY, order(), "provision", 500.0) == 0


def test_another_spec_another_action_and_a_settled_order_begin_again() -> None:
    policy = ended(10, order())
    assert policy.delay(KEY, changed(order(), templateParameters="{}"), "provision", 100.0) == 0
    assert policy.delay(KEY, order(), "delete", 100.0) == 0
    policy.settled(KEY)
    assert policy.delay(KEY, order(), "provision", 100.0) == 0
    policy = ended(10, order())
    policy.run_ended(KEY, order(), "post_install", 100.0)
    assert policy.delay(KEY, order(), "post_install", 100.0) == 0


def failed_order() -> ClusterOrder:
    failure = Failure("Unreachable", "no answer", "Apply")
    return with_status(order(), ObservedState(), outcome=Outcome("provision", config_version(order()), failure=failure))


def test_a_failure_has_its_own_time_on_the_order() -> None:
    policy = ended(10, failed_order())
    assert policy.delay(KEY, failed_order(), "provision", 100.0) == 0
    due = policy.next_wake_up(KEY, failed_order(), START, 100.0)
    assert due == timedelta(seconds=30).total_seconds() + SECOND_MORE


def test_a_settled_order_is_resynced_within_the_interval_and_again_an_interval_after_its_run() -> None:
    policy = RetryPolicy(RESYNC)
    assert not policy.resync_is_due(KEY, ready_order(), 0.0)
    assert not policy.resync_is_due(KEY, ready_order(), RESYNC * 0.49)
    assert policy.resync_is_due(KEY, ready_order(), RESYNC)
    policy.run_ended(KEY, ready_order(), "provision", RESYNC)
    assert not policy.resync_is_due(KEY, ready_order(), 2 * RESYNC - 1)
    assert policy.next_wake_up(KEY, ready_order(), START, 2 * RESYNC - 10) == 10
    assert policy.resync_is_due(KEY, ready_order(), 2 * RESYNC)


def test_an_order_that_is_not_settled_is_not_resynced() -> None:
    for of in (order(), failed_order()):
        policy = RetryPolicy(RESYNC)
        policy.resync_is_due(KEY, of, 0.0)
        assert not policy.resync_is_due(KEY, of, 10 * RESYNC)
        assert policy.next_wake_up(KEY, order(), START, 10 * RESYNC) == RESYNC, "a time that has passed does not repeat at once"


def test_a_deleted_order_is_forgotten() -> None:
    policy = ended(10, order())
    policy.forget(KEY)
    assert policy.delay(KEY, order(), "provision", 100.0) == 0
