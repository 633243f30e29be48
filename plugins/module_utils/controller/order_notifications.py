# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reports the transitions and deletions of orders to the rules engine, one after another. No worker waits for the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..common.types import Object
from ..orders.model import ClusterOrder
from .metrics import Metrics
from .rulebook_events import Transitions, deletion_event
from .work_queue import Key


class OrderNotifications:
    """`emit` hands an event to the rules engine, and may take its time."""

    def __init__(self, emit: Callable[[Object], Awaitable[None]], metrics: Metrics) -> None:
        self._emit = emit
        self._metrics = metrics
        self._transitions = Transitions()
        self._queue: asyncio.Queue[Object] = asyncio.Queue()

    async def send(self) -> None:
        """Hand over the events until cancelled."""
        while True:
            event = await self._queue.get()
            await self._emit(event)
            self._metrics.emitted(event["action"])

    def listed(self, key: Key, order: ClusterOrder) -> None:
        """The order's phase is from before this source began, and is not reported."""
        self._transitions.record(key, order.phase)

    def reconciled(self, key: Key, order: ClusterOrder) -> None:
        """Report the order's phase if it is a new one."""
        if event := self._transitions.event(key, order):
            self._queue.put_nowait(event)

    def deleted(self, key: Key, order: ClusterOrder) -> None:
        self._queue.put_nowait(deletion_event(key, order))

    def forget(self, key: Key) -> None:
        self._transitions.forget(key)
