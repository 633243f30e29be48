"""How often a user may send requests: a token bucket for each user, in the memory of one replica."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_USERS = 100_000


class RateLimit:
    """`take` returns 0 for a request that is allowed, and otherwise after how many seconds the next one is."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when they were counted

    def take(self, user: str) -> int:
        now = self._clock()
        tokens, counted = self._buckets.pop(user, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - counted) * self._per_second)
        allowed = tokens >= 1
        self._buckets[user] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > MOST_USERS:
            self._buckets.popitem(last=False)
        return 0 if allowed else max(1, math.ceil((1 - tokens) / self._per_second))
