"""A bounded cache whose entries are used for some seconds."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

MOST_ENTRIES = 50000


class Expiring(Generic[Value]):
    """Values by key. The oldest is dropped for a new one when the cache is full."""

    def __init__(self, seconds: float, most: int = MOST_ENTRIES, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._entries: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        found = self._entries.get(key)
        if found is None:
            return None
        if found[0] <= self._clock():
            del self._entries[key]
            return None
        return found[1]

    def put(self, key: Hashable, value: Value, seconds: float | None = None) -> None:
        self._entries.pop(key, None)
        while len(self._entries) >= self._most:
            self._entries.popitem(last=False)
        self._entries[key] = (self._clock() + (self._seconds if seconds is None else seconds), value)

    def drop(self, key: Hashable) -> None:
        self._entries.pop(key, None)
