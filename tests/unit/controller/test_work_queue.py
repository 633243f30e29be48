"""The queue of the event source and of the HyperShift stand-in: each key once, never twice at a time, and again later after a failure."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import work_queue as workqueue
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key, WorkQueue, sentence

BLUE, GREEN, LAST = Key("clusters", "blue"), Key("clusters", "green"), Key("clusters", "last")
WORKERS = 4
TIMEOUT_SECONDS = 30


class Handler:
    """Notes what it is asked to handle. A key in `held` waits for its event, one in `failures` fails as often as it says."""

    def __init__(self) -> None:
        self.started: list[Key] = []
        self.at_once: Counter[Key] = Counter()
        self.most_at_once: Counter[Key] = Counter()
        self.held: dict[Key, asyncio.Event] = {}
        self.failures: Counter[Key] = Counter()
        self._changed = asyncio.Event()

    async def __call__(self, key: Key) -> None:
        self.started.append(key)
        self.at_once[key] += 1
        self.most_at_once[key] = max(self.at_once[key], self.most_at_once[key])
        self._changed.set()
        try:
            # A queue that gives the same key for ever must not keep the test from noticing.
            await asyncio.sleep(0)
            if key in self.held:
                await self.held[key].wait()
            if self.failures[key]:
                self.failures[key] -= 1
                raise RuntimeError("not yet")
        finally:
            self.at_once[key] -= 1
            self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_handled(self, key: Key, times: int) -> None:
        await self.until(lambda: self.started.count(key) == times and not self.at_once[key])
        await settle()


class ImpatientQueue(WorkQueue):
    """Notes each delay it is asked for, and does not wait for it."""

    def __init__(self, handler: Handler) -> None:
        super().__init__(handler)
        self.delays: list[float] = []

    def add_after(self, key: Key, seconds: float) -> None:
        self.delays.append(seconds)
        super().add_after(key, 0)


@contextlib.asynccontextmanager
async def working(queue: WorkQueue, workers: int = WORKERS) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(queue.work()) for _worker in range(workers)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in ended), f"a worker has ended by itself: {ended}"


async def settle() -> None:
    """Let every task that can go on do so."""
    for _turn in range(20):
        await asyncio.sleep(0)


def test_key_added_twice_is_handled_once() -> None:
    async def scenario() -> None:
        handler = Handler()
        queue = WorkQueue(handler)
        for key in (BLUE, BLUE, GREEN, BLUE):
            queue.add(key)
        queue.add(LAST)
        async with working(queue):
            await handler.until(lambda: LAST in handler.started)
            await settle()
        assert handler.started == [BLUE, GREEN, LAST]

    asyncio.run(scenario())


def test_handled_key_is_handled_again_when_added_again() -> None:
    async def scenario() -> None:
        handler = Handler()
        queue = WorkQueue(handler)
        async with working(queue):
            for count in (1, 2, 3):
                queue.add(BLUE)
                await handler.until_handled(BLUE, count)
        assert handler.started == [BLUE, BLUE, BLUE]

    asyncio.run(scenario())


def test_key_that_is_forgotten_is_not_handled_later() -> None:
    async def scenario() -> None:
        handler = Handler()
        queue = WorkQueue(handler)
        async with working(queue):
            queue.add_after(BLUE, 0.01)
            queue.add_after(GREEN, 0.02)
            queue.forget(BLUE)
            await handler.until_handled(GREEN, 1)
        assert handler.started == [GREEN]

    asyncio.run(scenario())


def test_key_is_never_handled_twice_at_a_time() -> None:
    async def scenario() -> None:
        handler = Handler()
        handler.held[BLUE] = asyncio.Event()
        queue = WorkQueue(handler)
        async with working(queue):
            queue.add(BLUE)
            await handler.until(lambda: handler.at_once[BLUE] == 1)
            queue.add(BLUE)
            # Another worker is free, as it takes the next key; and still it leaves the first one alone.
            queue.add(GREEN)
            await handler.until(lambda: GREEN in handler.started)
            await settle()
            assert handler.started == [BLUE, GREEN]
            handler.held[BLUE].set()
            await handler.until(lambda: handler.started.count(BLUE) == 2)
        assert handler.most_at_once[BLUE] == 1

    asyncio.run(scenario())


def test_key_added_while_it_is_handled_is_handled_once_more() -> None:
    async def scenario() -> None:
        handler = Handler()
        handler.held[BLUE] = asyncio.Event()
        queue = WorkQueue(handler)
        async with working(queue):
            queue.add(BLUE)
            await handler.until(lambda: handler.at_once[BLUE] == 1)
            for _time in range(3):
                queue.add(BLUE)
            handler.held[BLUE].set()
            await handler.until(lambda: handler.started.count(BLUE) == 2)
            queue.add(LAST)
            await handler.until(lambda: LAST in handler.started)
            await settle()
        assert handler.started == [BLUE, BLUE, LAST]

    asyncio.run(scenario())


def test_different_keys_are_handled_at_once() -> None:
    async def scenario() -> None:
        handler = Handler()
        keys = [Key("clusters", f"cluster-{number}") for number in range(WORKERS)]
        handler.held = {key: asyncio.Event() for key in keys}
        queue = WorkQueue(handler)
        async with working(queue):
            for key in keys:
                queue.add(key)
            await handler.until(lambda: handler.at_once.total() == WORKERS)

    asyncio.run(scenario())


def test_failing_key_comes_back_after_a_growing_delay_with_a_limit() -> None:
    async def scenario() -> None:
        handler = Handler()
        handler.failures[BLUE] = 12
        queue = ImpatientQueue(handler)
        async with working(queue):
            queue.add(BLUE)
            await handler.until_handled(BLUE, 13)
        growing = [delay for delay in queue.delays if delay < workqueue.LAST_RETRY_SECONDS]
        assert len(growing) > 2
        assert growing == sorted(set(growing))
        assert queue.delays == growing + [workqueue.LAST_RETRY_SECONDS] * (12 - len(growing))

    asyncio.run(scenario())


def test_success_makes_the_next_failure_a_first_one() -> None:
    async def scenario() -> None:
        handler = Handler()
        queue = ImpatientQueue(handler)
        async with working(queue):
            for count in (4, 8):
                handler.failures[BLUE] = 3
                queue.add(BLUE)
                await handler.until_handled(BLUE, count)
        assert queue.delays[:3] == queue.delays[3:]

    asyncio.run(scenario())


def test_failing_key_does_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workqueue, "FIRST_RETRY_SECONDS", 10 * TIMEOUT_SECONDS)
    monkeypatch.setattr(workqueue, "LAST_RETRY_SECONDS", 10 * TIMEOUT_SECONDS)

    async def scenario() -> None:
        handler = Handler()
        handler.failures[BLUE] = 1
        queue = WorkQueue(handler)
        async with working(queue, workers=1):
            queue.add(BLUE)
            queue.add(GREEN)
            await handler.until(lambda: GREEN in handler.started)
            # A change of the failed key itself is handled without its delay.
            queue.add(BLUE)
            await handler.until(lambda: handler.started.count(BLUE) == 2)
        assert handler.started == [BLUE, GREEN, BLUE]

    asyncio.run(scenario())


def test_failure_is_logged_in_one_line_with_the_key(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        handler = Handler()
        handler.failures[BLUE] = 1
        queue = ImpatientQueue(handler)
        async with working(queue):
            queue.add(BLUE)
            await handler.until(lambda: handler.started.count(BLUE) == 2)

    asyncio.run(scenario())
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("clusters/blue: not yet; retry in ")
    assert caplog.records[0].exc_info is None


def test_key_that_fails_for_hours_still_comes_back() -> None:
    async def scenario() -> None:
        handler = Handler()
        handler.failures[BLUE] = 1100
        queue = ImpatientQueue(handler)
        async with working(queue, workers=1):
            queue.add(BLUE)
            for _turn in range(20 * 1100):
                await asyncio.sleep(0)
        assert handler.started.count(BLUE) == 1101

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError("first line\nsecond line"), "first line"),
        (RuntimeError(), "RuntimeError()"),
    ],
)
def test_error_becomes_one_line(error: Exception, line: str) -> None:
    assert sentence(error) == line


async def _burst(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock)
    delays: list[float] = []

    class Queue(WorkQueue):
        def add_after(self, key: Key, seconds: float) -> None:
            assert key == BLUE
            delays.append(round(seconds, 3))

    queue = Queue(Handler())
    queue.add_coalesced(BLUE)
    assert (len(queue), delays) == (1, []), "the first change of a burst waits for nothing"
    for step in range(1, 5):
        clock = 100.0 + 0.02 * step
        queue.add_coalesced(BLUE)
        queue.add_coalesced(GREEN) if step == 1 else None
    window = workqueue.WINDOW_SECONDS
    assert delays == [round(window - 0.02 * step, 3) for step in range(1, 5)], "the others wait for the end of the window"
    assert len(queue) == 2, "another key has a window of its own"
    clock = 100.0 + window
    queue.add_coalesced(BLUE)
    assert len(delays) == 4, "after the window a change is a first one"


def test_the_first_change_of_a_burst_is_handled_at_once_and_the_others_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_burst(monkeypatch))


async def _twenty_changes() -> int:
    handler = Handler()
    queue = WorkQueue(handler)
    async with working(queue):
        for _change in range(20):
            queue.add_coalesced(BLUE)
            await asyncio.sleep(0)
        await handler.until_handled(BLUE, 2)
        for _change in range(20):
            queue.add_coalesced(BLUE)
        await handler.until_handled(BLUE, 3)
    return handler.started.count(BLUE)


def test_a_burst_is_handled_twice_and_nothing_of_it_is_lost() -> None:
    assert asyncio.run(_twenty_changes()) == 3


class SkippedTime(selectors.SelectSelector):
    """Instead of waiting it moves the time on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipped = SkippedTime()
        super().__init__(self._skipped)

    def time(self) -> float:
        return self._skipped.now


async def _handled(changes: list[float]) -> list[tuple[float, int]]:
    """When an object that changes at these times is handled, and after how many changes."""
    loop = asyncio.get_running_loop()
    seen = 0
    handled: list[tuple[float, int]] = []

    async def handle(_key: Key) -> None:
        handled.append((round(loop.time(), 2), seen))
        await asyncio.sleep(0.005)

    def change() -> None:
        nonlocal seen
        seen += 1
        queue.add_coalesced(BLUE)

    queue = WorkQueue(handle, longest_window=1.0)
    for at in changes:
        loop.call_at(at, change)
    async with working(queue):
        await asyncio.sleep(changes[-1] + 10)
    return handled


def handled(changes: list[float]) -> list[tuple[float, int]]:
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(_handled(changes))


@pytest.mark.parametrize("lasts", [0.05, 0.2, 0.3, 0.5, 0.74])
def test_a_burst_within_three_quarters_of_a_second_is_handled_three_times_at_most(lasts: float) -> None:
    times = handled([1 + lasts * number / 19 for number in range(20)])
    assert times[0] == (1.0, 1), "the first change is handled at once"
    assert times[-1][1] == 20, "the last one too"
    assert len(times) <= 3, times


def test_changes_that_are_no_burst_are_handled_at_once() -> None:
    assert handled([1.0, 1.3, 1.6]) == [(1.0, 1), (1.3, 2), (1.6, 3)]


def test_an_object_that_never_rests_is_handled_once_a_longest_window() -> None:
    times = handled([1 + 0.1 * number for number in range(100)])
    assert len(times) <= 13, times
    assert times[-1][1] == 100
