# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks the providers whose clusters cannot be watched, so that no worker ever waits for a server that a tenant has named.

Namespaces take turns, and each has some slots only. So a tenant with many clusters that hang waits for itself: orders whose clusters are
watched are not delayed at all, and the others by one answer at most for as many namespaces that hang as have all the slots together.
Used in the event loop's thread only.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable

from .informer import in_thread
from .work_queue import Key, sentence

log = logging.getLogger(__name__)

POLLERS = 16
POLLERS_A_NAMESPACE = 2
FRESH_SECONDS = 5.0  # how long an answer is used: any webhook may cause a reconcile, and must not cause a request each time


class Poller:
    """`answered` is called with the key of each order whose provider was asked."""

    def __init__(self, answered: Callable[[Key], None]) -> None:
        self._answered = answered
        self._tasks: asyncio.TaskGroup | None = None
        self._waiting: dict[str, dict[Key, Callable[[], None]]] = {}  # by namespace; the first one is the next
        self._active: set[Key] = set()
        self._busy: Counter[str] = Counter()
        self._unused: set[Key] = set()
        self._asked: dict[Key, float] = {}

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Ask in these tasks."""
        self._tasks = tasks

    def use(self, key: Key) -> bool:
        """Whether the provider was asked since the last use, or just before."""
        is_new = key in self._unused
        self._unused.discard(key)
        return is_new or time.monotonic() - self._asked.get(key, float("-inf")) <= FRESH_SECONDS

    def request(self, key: Key, ask: Callable[[], None]) -> None:
        """Ask for this order when it is its turn; once, however often it is requested until then."""
        if key not in self._active:
            self._waiting.setdefault(key.namespace, {})[key] = ask
            self._next()

    def forget(self, key: Key) -> None:
        """Drop what is kept for an order that no longer exists."""
        self._unused.discard(key)
        self._asked.pop(key, None)
        if waiting := self._waiting.get(key.namespace):
            waiting.pop(key, None)
            if not waiting:
                del self._waiting[key.namespace]

    def _next(self) -> None:
        if self._tasks is None:
            raise AssertionError("the poller is started before it is asked")
        while len(self._active) < POLLERS:
            namespace = next((name for name in self._waiting if self._busy[name] < POLLERS_A_NAMESPACE), None)
            if namespace is None:
                return
            waiting = self._waiting.pop(namespace)
            key = next(iter(waiting))
            ask = waiting.pop(key)
            if waiting:
                self._waiting[namespace] = waiting  # behind the others
            self._active.add(key)
            self._busy[namespace] += 1
            self._tasks.create_task(self._ask(key, ask))

    async def _ask(self, key: Key, ask: Callable[[], None]) -> None:
        try:
            await in_thread(ask)
        except Exception as error:  # noqa: BLE001 - of any kind: it ends on this order
            log.warning("%s: its provider was not asked: %s", key, sentence(error))
        self._active.discard(key)
        self._busy -= Counter([key.namespace])
        self._asked[key] = time.monotonic()
        self._unused.add(key)
        self._answered(key)
        self._next()
