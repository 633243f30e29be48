# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A queue of keys to reconcile: each key once, never by two workers at a time, retried after a failure, coalesced in a burst."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 10.0
WINDOW_SECONDS = 0.25


class Key(NamedTuple):
    """The name of an object to reconcile; everything else is read when its turn comes."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class Window:
    """Until when further changes of a burst wait, and whether some do."""

    until: float
    seconds: float = WINDOW_SECONDS
    is_burst: bool = False


class WorkQueue:
    """While a burst goes on, each window is twice as long as the one before it, up to `longest_window` seconds."""

    def __init__(self, handle: Callable[[Key], Awaitable[None]], longest_window: float = WINDOW_SECONDS) -> None:
        self._handle = handle
        self._longest_window = longest_window
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._windows: dict[Key, Window] = {}

    def __len__(self) -> int:
        """How many keys wait for a worker or are with one."""
        return len(self._queued) + len(self._active)

    def is_active(self, key: Key) -> bool:
        """Whether a worker has the key."""
        return key in self._active

    def add(self, key: Key) -> None:
        if key in self._active:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.put_nowait(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Add the key later; of several times the earliest counts."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is None or timer.when() > loop.time() + seconds:
            if timer:
                timer.cancel()
            self._timers[key] = loop.call_later(seconds, self._is_due, key)

    def add_coalesced(self, key: Key) -> None:
        """Add the key for a change that may be one of a burst: the first at once, the others together at the end of a window."""
        now, window = asyncio.get_running_loop().time(), self._windows.get(key)
        if window and now < window.until:
            window.is_burst = True
            self.add_after(key, window.until - now)
        else:
            self._windows[key] = Window(now + WINDOW_SECONDS)
            self.add(key)

    def forget(self, key: Key) -> None:
        """Drop what is kept for a key that no longer exists."""
        self._windows.pop(key, None)
        self._failures.pop(key, None)
        if timer := self._timers.pop(key, None):
            timer.cancel()

    def _is_due(self, key: Key) -> None:
        self._timers.pop(key, None)
        window = self._windows.get(key)
        if window and window.is_burst:
            seconds = min(2 * window.seconds, self._longest_window)
            self._windows[key] = Window(asyncio.get_running_loop().time() + seconds, seconds)
        self.add(key)

    async def work(self) -> None:
        """Take keys until cancelled; run as many of these at once as keys may be reconciled at once."""
        while True:
            key = await self._ready.get()
            self._queued.discard(key)
            self._active.add(key)
            try:
                await self._handle(key)
                self._failures.pop(key, None)
            except Exception as error:  # noqa: BLE001 - the failure of one key, of any kind, does not affect the others
                count = self._failures.get(key, 0)
                self._failures[key] = count + 1
                delay = min(FIRST_RETRY_SECONDS * 2 ** min(count, 16), LAST_RETRY_SECONDS)
                log.warning("%s: %s; retry in %.1f s", key, sentence(error), delay)
                self.add_after(key, delay)
            finally:
                self._active.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)


def sentence(error: Exception) -> str:
    """The first line of an error, for the log."""
    return (str(error) or repr(error)).strip().partition("\n")[0]
