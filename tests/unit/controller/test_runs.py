"""The life of an order's run: requested when the order needs one, started when it may, and completed when its lock shows its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import runs as module
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.in_flight import ABANDONED_SECONDS, PendingAction
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.retry import IMMEDIATE_REPEATS, SECOND_MORE
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.runs import Runs
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key, WorkQueue
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import DURATION, SKEW, LockState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Action
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import HEALTHY, deleted, order, ready_order

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY, OTHER = Key("orders", "demo"), Key("orders", "other")
START_TIMEOUT, PENDING_TIMEOUT, RESYNC = 30, 300, 1000
EXPIRY = timedelta(seconds=DURATION) + SKEW
UNTIL_EXPIRY = EXPIRY.seconds + SECOND_MORE  # of a lock that was renewed just now
EXPIRED = NOW - EXPIRY - timedelta(seconds=1)  # when a lock that expired a second ago was renewed
MANUAL = order(annotations={Names().management_state_annotation: "manual"})
ABSENT = ObservedState()


def lock(token: int, holder: str = "", renewed: datetime = NOW) -> LockState:
    return LockState("orders", "demo", holder, token, renewed=renewed if holder else None)


@dataclass
class Engine:
    """Runs with a rules engine that takes every event, a clock that the test sets, and a hub that confirms every action but some."""

    clock: float = 100.0
    events: asyncio.Queue[Object] = field(default_factory=asyncio.Queue)
    asked: list[tuple[Key, Action, bool]] = field(default_factory=list)
    refused: set[Key] = field(default_factory=set)
    queue: Mock = field(default_factory=lambda: Mock(WorkQueue))
    metrics: Mock = field(default_factory=Mock)
    runs: Runs = field(init=False)

    def __post_init__(self) -> None:
        settings = Settings(max_in_flight=1, start_timeout=START_TIMEOUT, pending_timeout=PENDING_TIMEOUT, resync=RESYNC)
        self.runs = Runs(settings, self.queue, ThreadPoolExecutor(1), self._confirm, self.events.put, self.metrics)

    def _confirm(self, key: Key, action: Action, resync: bool) -> PendingAction | None:
        self.asked.append((key, action, resync))
        return None if key in self.refused else PendingAction(action, "SpecNotApplied", "u1", 1, 7)

    async def decide(self, of: ClusterOrder, observed: ObservedState = ABSENT, held: LockState | None = None, key: Key = KEY) -> None:
        await self.runs.decide(key, of, observed, held, NOW)

    def complete(self, held: LockState | None, of: ClusterOrder | None = None) -> None:
        self.runs.complete_if_ended(KEY, of or order(), held, NOW)

    def pending(self, state: str = "pending") -> dict[str, int]:
        return {action: count for (its_state, action), count in self.runs.counts().items() if count and its_state == state}

    async def until_started(self) -> Object:
        """The next event. The run has begun when its orders are enqueued, after the event was taken."""
        self.queue.add.reset_mock()
        async with asyncio.timeout(60):
            event = await self.events.get()
            while not self.queue.add.called:  # noqa: ASYNC110 - the queue has no event for this
                await asyncio.sleep(0)
        return event


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    engine = Engine()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: engine.clock))
    monkeypatch.setattr(module, "BATCH_SECONDS", 0)
    yield engine
    engine.runs._pool.shutdown()  # noqa: SLF001 - the controller's, which ends it


async def started(engine: Engine) -> asyncio.Task[None]:
    """A run is in flight for the order, whose lock has the token 7."""
    task = asyncio.create_task(engine.runs.start_pending())
    await engine.decide(order())
    await engine.until_started()
    engine.queue.reset_mock()
    return task


@pytest.mark.parametrize(
    ("of", "observed", "held", "asked", "wait"),
    [
        (order(), ABSENT, None, "provision", None),
        (order(), ABSENT, lock(7), "provision", None),
        (deleted(ready_order()), HEALTHY, None, "delete", None),
        (order(), ABSENT, lock(7, "run"), None, UNTIL_EXPIRY),  # the end of that run is an event
        (order(), ABSENT, lock(7, "run", EXPIRED), "provision", None),  # it was killed
        (MANUAL, ABSENT, None, None, RESYNC),
    ],
)
def test_a_run_is_requested_when_the_order_needs_one_and_its_lock_is_free(
    engine: Engine, of: ClusterOrder, observed: ObservedState, held: LockState | None, asked: Action | None, wait: float | None
) -> None:
    asyncio.run(engine.decide(of, observed, held))
    assert engine.asked == ([(KEY, asked, False)] if asked else [])
    assert engine.pending() == ({asked: 1} if asked else {})
    waits = [each.args[1] for each in engine.queue.add_after.call_args_list]
    assert len(waits) == (wait is not None) and all(0 < each <= (wait or 0) for each in waits)


def test_an_action_that_the_hub_does_not_confirm_is_no_longer_pending(engine: Engine) -> None:
    async def scenario() -> None:
        await engine.decide(order())
        await engine.decide(order())
        assert engine.asked == [(KEY, "provision", False)], "it is pending already"
        engine.refused.add(KEY)
        await engine.decide(deleted(ready_order()), HEALTHY)
        assert engine.asked[1:] == [(KEY, "delete", False)]
        assert engine.pending() == {}

    asyncio.run(scenario())


@pytest.mark.parametrize(("of", "observed", "held"), [(order(), ABSENT, lock(8, "another run")), (ready_order(), HEALTHY, None)])
def test_an_action_that_is_no_longer_needed_is_cancelled(
    engine: Engine, of: ClusterOrder, observed: ObservedState, held: LockState | None
) -> None:
    async def scenario() -> None:
        await engine.decide(order())
        await engine.decide(of, observed, held)
        assert engine.pending() == {}

    asyncio.run(scenario())


def test_a_settled_order_is_resynced_after_the_interval(engine: Engine) -> None:
    async def scenario() -> None:
        await engine.decide(ready_order(), HEALTHY)
        assert engine.asked == []
        engine.clock += RESYNC
        await engine.decide(ready_order(), HEALTHY)
        assert engine.asked == [(KEY, "provision", True)]

    asyncio.run(scenario())


def test_a_run_is_counted_and_its_orders_are_reconciled_when_the_rules_engine_has_its_event(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    async def scenario() -> None:
        await engine.decide(order())
        await engine.decide(order(), key=OTHER)
        task = asyncio.create_task(engine.runs.start_pending())
        event = await engine.until_started()
        assert [entry["name"] for entry in event["orders"]] == ["demo", "other"]
        engine.metrics.emitted.assert_called_once_with("provision")
        assert engine.queue.add.call_args_list == [call(KEY), call(OTHER)]
        assert (engine.runs.in_flight, engine.pending(), engine.pending("in_flight")) == (1, {}, {"provision": 2})
        await engine.decide(order())
        assert engine.pending() == {}, "its run is in flight"
        assert [record.message for record in caplog.records if record.name.endswith("controller.controller")] == [
            "provision of orders/demo, orders/other"
        ]
        task.cancel()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("held", "after", "of", "ends", "unstarted", "wait"),
    [
        (lock(7), 0, order(), False, False, START_TIMEOUT + SECOND_MORE),  # it has not begun
        (lock(7), START_TIMEOUT + 1, order(), False, True, PENDING_TIMEOUT - START_TIMEOUT - 1 + SECOND_MORE),  # it may be pending
        (lock(7), PENDING_TIMEOUT + 1, order(), True, True, None),  # it counts as lost
        (lock(8, "run"), 0, order(), False, False, UNTIL_EXPIRY),
        (lock(8, "run", EXPIRED), 0, order(), True, False, None),  # it was killed
        (lock(8), 0, order(), True, False, None),
        (None, 0, order(), True, False, None),  # the Lease was deleted
        (lock(7), START_TIMEOUT + 1, MANUAL, True, False, None),  # it will skip the order
        (lock(8, "run"), 0, MANUAL, False, False, UNTIL_EXPIRY),
    ],
)
def test_a_run_completes_when_the_lock_or_the_time_shows_its_end(
    engine: Engine, held: LockState | None, after: float, of: ClusterOrder, ends: bool, unstarted: bool, wait: float | None
) -> None:
    async def scenario() -> None:
        task = await started(engine)
        engine.clock += after
        engine.complete(held, of)
        assert engine.runs.in_flight == (not ends)
        assert engine.metrics.finished.call_args_list == ([call("provision", after)] if ends else [])
        assert engine.queue.add_after.call_args_list == ([call(KEY, wait)] if wait is not None else [])
        reported = engine.runs.unstarted(KEY)
        assert bool(reported) is unstarted is engine.metrics.was_not_started.called
        if reported:
            assert (reported.uid, reported.action, reported.seconds) == ("u1", "provision", START_TIMEOUT)
            assert reported.at == NOW + timedelta(seconds=max(0, PENDING_TIMEOUT - after))
        engine.runs.unstarted_is_reported(KEY)
        assert engine.runs.unstarted(KEY) is None
        task.cancel()

    asyncio.run(scenario())


def test_the_next_run_starts_when_one_completes(engine: Engine) -> None:
    async def scenario() -> None:
        task = await started(engine)
        await engine.decide(order(), key=OTHER)
        await asyncio.sleep(0.01)
        assert engine.events.empty(), "all slots are in use"
        engine.runs.complete(KEY)
        assert (await engine.until_started())["order"]["name"] == "other"
        task.cancel()

    asyncio.run(scenario())


def test_the_slot_of_a_deleted_order_is_used_again_after_a_while(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run is still starting. Nothing but time shows that it has ended."""
    monkeypatch.setattr(module, "ABANDONED_SECONDS", 0.05)

    async def scenario() -> None:
        task = await started(engine)
        await engine.decide(order(), key=OTHER)
        engine.runs.forget(KEY, lock(7))
        await asyncio.sleep(0.01)
        assert engine.events.empty() and engine.runs.in_flight == 0
        engine.clock += ABANDONED_SECONDS
        assert (await engine.until_started())["order"]["name"] == "other"
        task.cancel()

    asyncio.run(scenario())


def test_runs_that_change_nothing_back_off_until_the_order_is_forgotten(engine: Engine) -> None:
    async def scenario() -> None:
        task = await started(engine)
        for token in range(8, 8 + IMMEDIATE_REPEATS):
            engine.complete(lock(token))
            engine.queue.reset_mock()
            await engine.decide(order())
            if not engine.queue.add_after.called:
                await engine.until_started()
        assert engine.queue.add_after.call_args_list == [call(KEY, 1.0)]
        assert len(engine.asked) == IMMEDIATE_REPEATS and engine.runs.in_flight == 0
        engine.runs.forget(KEY, None)
        await engine.decide(order())
        assert len(engine.asked) == IMMEDIATE_REPEATS + 1
        task.cancel()

    asyncio.run(scenario())


def test_an_order_that_was_forgotten_has_no_action_and_no_report_left(engine: Engine) -> None:
    async def scenario() -> None:
        task = await started(engine)
        engine.clock += START_TIMEOUT + 1
        engine.complete(lock(7))
        await engine.decide(order(), key=OTHER)
        for key in (KEY, OTHER):
            engine.runs.forget(key, None)
        assert engine.runs.unstarted(KEY) is None and engine.pending() == engine.pending("in_flight") == {}
        task.cancel()

    asyncio.run(scenario())
