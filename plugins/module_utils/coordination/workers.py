# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Threads for blocking requests, and a log of their errors, for the tasks of one process.

It knows no lease and no document.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ..s3.errors import S3Error

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class Workers:
    """Two thread pools. Half of the threads serve leases only, so a renewal never waits behind a poll."""

    def __init__(self, connections: int) -> None:
        half = connections // 2
        self._leases = ThreadPoolExecutor(half, "lease")
        self._polls = ThreadPoolExecutor(connections - half, "poll")
        # Acquisitions may use half of the lease threads: a renewal must not wait behind a thousand of them.
        self.acquisitions = asyncio.Semaphore(max(1, half // 2))

    async def lease(self, work: Callable[..., Result], *arguments: Any) -> Result:
        return await _in_thread(self._leases, work, *arguments)

    async def poll(self, work: Callable[..., Result], *arguments: Any) -> Result:
        return await _in_thread(self._polls, work, *arguments)

    def shutdown(self) -> None:
        self._leases.shutdown()
        self._polls.shutdown()


class ErrorLog:
    """Logs each problem once, not once a retry, and logs when it is over."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}

    @contextlib.asynccontextmanager
    async def tolerate(self, subject: str) -> AsyncIterator[None]:
        """Log an S3Error instead of raising it: other workloads must not suffer, and the caller retries later."""
        try:
            yield
            if self._problems.pop(subject, None):
                log.warning("s3_coordination: %s: recovered", subject)
        except S3Error as error:
            self.add(subject, error)

    def add(self, subject: str, error: S3Error) -> None:
        if self._problems.get(subject) != type(error).__name__:
            self._problems[subject] = type(error).__name__
            log.error("s3_coordination: %s: %s", subject, error)


async def _in_thread(pool: ThreadPoolExecutor, work: Callable[..., Result], *arguments: Any) -> Result:
    """Run `work` in a thread. A thread cannot be interrupted, so a cancelled caller still waits for it."""
    future = asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait({future})
        future.exception()
        raise
