# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cache of reads that reconciles share for a second: what many workloads have in common is not read again for each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

SECONDS = 1.0

Result = TypeVar("Result")


class ReadCache:
    """The last result of each read, for `seconds` after it began. Safe for concurrent use.

    An error is a result too: a server that fails is not read by every reconcile at once.
    """

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._mutex = threading.Lock()
        self._results: dict[Hashable, tuple[float, Future[Any]]] = {}

    def get(self, key: Hashable, read: Callable[[], Result]) -> Result:
        """The result of `read`, unless the cache has it or another thread gets it."""
        now = self._clock()
        with self._mutex:
            began, cached = self._results.get(key, (0.0, None))
            if cached is not None and now - began < self._seconds:
                known, pending = cached, False
            else:
                known, pending = Future(), True
                self._results[key] = (now, known)
        if pending:
            try:
                known.set_result(read())
            except BaseException as error:  # noqa: BLE001 - the threads that wait for the result raise it
                known.set_exception(error)
        result: Result = known.result()
        return result
