# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A work queue whose keys are taken in batches, from several lanes. A key is in one batch at a time, and is retried alone.

What is written once for many keys, such as a reservation, costs less the more keys wait: the batches grow with the load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from .work_queue import FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS, Key


class BatchQueue:
    """`lane_of` says which lane a key belongs to, when it is added."""

    def __init__(self, lane_of: Callable[[Key], str], lanes: Collection[str]) -> None:
        self._lane_of = lane_of
        self._lanes: dict[str, dict[Key, None]] = {name: {} for name in lanes}
        self._filled = {name: asyncio.Event() for name in lanes}
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """How many keys wait or are in a batch."""
        return sum(map(len, self._lanes.values())) + len(self._active)

    def add(self, key: Key) -> None:
        if key in self._active:
            self._again.add(key)
        elif not any(key in lane for lane in self._lanes.values()):
            lane = self._lane_of(key)
            self._lanes[lane][key] = None
            self._filled[lane].set()

    def add_after(self, key: Key, seconds: float) -> None:
        """Add the key later; of several times the earliest counts."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is None or timer.when() > loop.time() + seconds:
            if timer:
                timer.cancel()
            self._timers[key] = loop.call_later(seconds, self._is_due, key)

    def forget(self, key: Key) -> None:
        """Drop what is kept for a key that no longer exists."""
        self._failures.pop(key, None)
        if timer := self._timers.pop(key, None):
            timer.cancel()

    async def take(self, lane: str, limit: int) -> list[Key]:
        """The next batch of a lane, in the order in which its keys were added. `done` ends it."""
        while not self._lanes[lane]:
            self._filled[lane].clear()
            await self._filled[lane].wait()
        waiting = self._lanes[lane]
        batch = list(waiting)[:limit]
        for key in batch:
            del waiting[key]
        self._active.update(batch)
        return batch

    def done(self, batch: Collection[Key], failed: Collection[Key] = ()) -> None:
        """Ends a batch. What failed is added again after a pause that grows."""
        for key in batch:
            self._active.discard(key)
            if key in failed:
                count = self._failures.get(key, 0)
                self._failures[key] = count + 1
                self.add_after(key, min(FIRST_RETRY_SECONDS * 2 ** min(count, 16), LAST_RETRY_SECONDS))
            else:
                self._failures.pop(key, None)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    def _is_due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)
