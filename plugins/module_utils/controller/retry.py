# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When an order gets another run: backoff for runs that change nothing, and the periodic resync of settled orders. No server is asked.

A failed run is not here: its backoff is on the order, in `status.failure`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime

from ..orders.infrastructure import parts_of, pending
from ..orders.model import ClusterOrder
from ..orders.outcome import Action
from .work_queue import Key

# A run that leaves the order needing the same action is repeated: a few times at once, then with exponential backoff.
IMMEDIATE_REPEATS, LONGEST_REPEAT_SECONDS = 3, 300.0
SECOND_MORE = 1.0  # timestamps in a status have no fractions, and the server's clock is known to a second


@dataclass(frozen=True)
class _LastRun:
    uid: str
    generation: int
    action: Action
    times: int
    ended: float

    def is_same(self, order: ClusterOrder, action: Action) -> bool:
        return (self.uid, self.generation, self.action) == (order.uid, order.generation, action)


class RetryPolicy:
    """The last run of each order, and when its next one is due. Times are of a monotonic clock that the caller passes in."""

    def __init__(self, resync_seconds: float) -> None:
        self._resync_seconds = resync_seconds
        self._last: dict[Key, _LastRun] = {}
        self._resync_at: dict[Key, float] = {}

    def run_ended(self, key: Key, order: ClusterOrder, action: Action, clock: float) -> None:
        before = self._last.get(key)
        times = before.times + 1 if before and before.is_same(order, action) else 1
        self._last[key] = _LastRun(order.uid, order.generation, action, times, clock)
        self._resync_at[key] = clock + self._resync_seconds

    def settled(self, key: Key) -> None:
        """The order needs nothing: the next run of any action is not a repetition."""
        self._last.pop(key, None)

    def delay(self, key: Key, order: ClusterOrder, action: Action, clock: float) -> float:
        """How many seconds to wait before the same action runs again."""
        last = self._last.get(key)
        if last is None or order.failure or not last.is_same(order, action) or last.times < IMMEDIATE_REPEATS:
            return 0.0
        backoff = min(2.0 ** (last.times - IMMEDIATE_REPEATS), LONGEST_REPEAT_SECONDS)
        return max(0.0, last.ended + backoff - clock)

    def resync_is_due(self, key: Key, order: ClusterOrder, clock: float) -> bool:
        """Whether a settled order is to be provisioned once more, which repairs drift that is not observed here."""
        # Spread over the interval, so that a source that has just begun does not resync all orders at once.
        first = clock + self._resync_seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        due = self._resync_at.setdefault(key, first)
        settled = order.is_applied and not order.is_deleting and not order.failure and order.management_state == "managed"
        return settled and clock >= due

    def next_wake_up(self, key: Key, order: ClusterOrder, now: datetime, clock: float) -> float:
        """In how many seconds time alone may bring an action for an order that needs none now."""
        waits = [self._resync_at[key] - clock]
        if order.failure and order.failure.retryable and order.failure.next_attempt:
            waits.append((order.failure.next_attempt - now).total_seconds() + SECOND_MORE)
        waits += [(part.next_attempt - now).total_seconds() + SECOND_MORE for part in pending(parts_of(order)) if part.next_attempt]
        # A time that has passed without an action, for example of an order that is managed by hand, does not repeat at
        # once.
        return min((wait for wait in waits if wait > 0), default=self._resync_seconds)

    def forget(self, key: Key) -> None:
        self._last.pop(key, None)
        self._resync_at.pop(key, None)
