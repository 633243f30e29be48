# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Calls that end in time, whatever the SDK waits for: its time-outs are for one read each, and the system's resolver has none.

A call runs in a thread, which is abandoned at the deadline: it may still succeed, as a request whose answer was lost. The number of such
threads is limited.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class Late(Exception):
    """The call has not ended in time."""


class Deadline:
    """`seconds` for each call, and as many calls at a time as `calls`, abandoned ones included."""

    def __init__(self, seconds: float, calls: int) -> None:
        self._seconds = seconds
        self._calls = threading.BoundedSemaphore(calls)

    def call(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, or its exception; Late at the deadline."""
        ends = time.monotonic() + self._seconds
        if not self._calls.acquire(timeout=self._seconds):
            raise Late("earlier requests hang")
        results: queue.SimpleQueue[tuple[Result | None, Exception | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                results.put((work(), None))
            except Exception as error:  # noqa: BLE001 - the caller gets it
                results.put((None, error))
            finally:
                self._calls.release()

        threading.Thread(target=run, daemon=True, name="s3").start()
        try:
            result, error = results.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            raise Late(f"no answer within {self._seconds:g} s") from None
        if error is not None:
            raise error
        return result  # type: ignore[return-value]
