"""The queue of a fleet: batches in order, one key in one batch at a time, retries alone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.controller import batch_queue
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.batch_queue import BatchQueue
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key

A, B, C = (Key("team", name) for name in "abc")


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def queue() -> BatchQueue:
    return BatchQueue(lambda key: "slow" if key == C else "quick", ("slow", "quick"))


def test_batch_has_the_keys_of_its_lane_in_their_order_and_no_more_than_its_limit() -> None:
    async def scenario() -> None:
        keys = queue()
        for key in (B, C, A, B):
            keys.add(key)
        assert await keys.take("quick", 1) == [B]
        assert await keys.take("quick", 9) == [A]
        assert await keys.take("slow", 9) == [C]
        assert len(keys) == 3

    run(scenario())


def test_key_that_changes_during_its_batch_is_in_the_next_one_and_not_in_two() -> None:
    async def scenario() -> None:
        keys = queue()
        keys.add(A)
        batch = await keys.take("quick", 9)
        keys.add(A)
        keys.add(B)
        assert await keys.take("quick", 9) == [B]
        keys.done(batch)
        assert await keys.take("quick", 9) == [A]

    run(scenario())


def test_what_fails_is_tried_again_later_and_the_rest_is_done() -> None:
    async def scenario() -> None:
        keys = queue()
        for key in (A, B):
            keys.add(key)
        keys.done(await keys.take("quick", 9), {B})
        assert len(keys) == 0
        assert await keys.take("quick", 9) == [B]

    run(scenario())


def test_pause_before_a_retry_grows_and_ends_with_a_success(monkeypatch: Any) -> None:
    pauses: list[float] = []

    async def scenario() -> None:
        keys = queue()
        monkeypatch.setattr(keys, "add_after", lambda _key, seconds: pauses.append(seconds))
        for failed in ({A}, {A}, set[Key](), {A}):
            keys.add(A)
            keys.done(await keys.take("quick", 9), failed)

    run(scenario())
    first = batch_queue.FIRST_RETRY_SECONDS
    assert pauses == [first, 2 * first, first]


def test_forgotten_key_does_not_come_back() -> None:
    async def scenario() -> None:
        keys = queue()
        keys.add_after(A, 0.01)
        keys.add_after(B, 0.02)
        keys.forget(A)
        assert await keys.take("quick", 9) == [B]

    run(scenario())
