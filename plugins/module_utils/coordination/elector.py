# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Leader election for one workload: contends for the lease, holds it, and emits events when a term begins and ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from ..s3.errors import S3Error
from ..s3.store import ObjectStore
from .events import Emit, state_fields
from .lease import TTL, Lease
from .state import State
from .term import begin_term
from .workers import ErrorLog, Workers

RETRY_SECONDS = 1.0
MIN_PAUSE_SECONDS = 0.05


class Elector:
    """One contender.

    It emits the end of its term on time, even while a renewal hangs, and releases the lease when it is cancelled.
    """

    def __init__(self, store: ObjectStore, lease: Lease, poll: float, workers: Workers, errors: ErrorLog, emit: Emit) -> None:
        self._store, self._lease, self._poll = store, lease, poll
        self._workers, self._errors, self._emit = workers, errors, emit
        self._subject = f"lock of {lease.workload}"

    async def run(self) -> None:
        try:
            while True:
                async with self._errors.tolerate(self._subject):
                    async with self._workers.acquisitions:
                        state = await self._workers.lease(self._acquire)
                    if state:
                        await self._lead(state)
                        continue
                await asyncio.sleep(max(MIN_PAUSE_SECONDS, min(self._poll, self._lease.expires_in())))
        finally:
            if self._lease.acting():
                self._event("leader_lost", self._lease.epoch, reason="this process no longer contends for the lease")
            with contextlib.suppress(S3Error):
                await self._workers.lease(self._lease.release)

    def _acquire(self) -> State | None:
        """Return the sealed state if this contender leads now."""
        if not self._lease.try_acquire():
            return None
        state = begin_term(self._store, self._lease)
        return state if self._lease.acting() else None

    async def _lead(self, state: State) -> None:
        self._event("leader_acquired", state.epoch, state=state_fields(state), revision=state.revision)
        reason = await self._renew()
        self._event("leader_lost", state.epoch, reason=reason)

    async def _renew(self) -> str:
        """Renew until the term is over. Return why it is over."""
        lease = self._lease
        pause = lease.renewal_in()
        while True:
            await asyncio.sleep(max(0.0, min(pause, lease.acting_seconds())))
            renewal = asyncio.ensure_future(self._workers.lease(lease.renew))
            # The term ends at its deadline, whatever the answer is.
            await asyncio.wait({renewal}, timeout=max(0.0, lease.acting_seconds()))
            if not renewal.done():
                renewal.add_done_callback(_consume)
                return "the store did not answer in time"
            try:
                if not renewal.result():
                    return "another holder acquired the lease, or the renewal came too late"
                pause = lease.renewal_in()
            except S3Error as error:
                self._errors.add(self._subject, error)
                if not lease.acting():
                    return f"the lease could not be renewed: {error}"
                pause = RETRY_SECONDS * lease.ttl / TTL

    def _event(self, kind: str, epoch: int, **details: Any) -> None:
        identity = self._lease.workload.identity()
        self._emit({"type": kind} | identity | {"epoch": epoch, "holder": self._lease.holder} | details)


def _consume(renewal: asyncio.Future[bool]) -> None:
    """Retrieve an unused result; asyncio logs exceptions that are never retrieved."""
    if not renewal.cancelled():
        renewal.exception()
