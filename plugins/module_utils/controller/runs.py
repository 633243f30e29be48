# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The runs of orders: whether an order needs one now, its start, and its end. It talks to no server.

`in_flight` has the rules of batches, slots and time limits, `retry` those of repetitions. Times come from the monotonic clock, and `now`
from the server's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from datetime import datetime, timedelta
from typing import Optional

from ..common.types import Object
from ..lock.lease import LockState
from ..orders.model import ClusterOrder
from ..orders.next_action import next_action
from ..orders.observe import ObservedState
from ..orders.outcome import Action, UnstartedRun
from .in_flight import ABANDONED_SECONDS, InFlightRun, InFlightRuns, PendingAction
from .metrics import Metrics
from .retry import SECOND_MORE, RetryPolicy
from .rulebook_events import action_event
from .settings import Settings
from .work_queue import Key, WorkQueue

log = logging.getLogger(f"{__package__}.controller")  # operators find the lines of runs by this name

BATCH_SECONDS = 0.05  # actions that become pending within this time go into one run
LOCKED_SECONDS = 60.0  # until an order is reconciled again whose lock is held, and does not say until when

Confirm = Callable[[Key, Action, bool], Optional[PendingAction]]  # noqa: UP045 - `|` is an operation for the pylint of ansible-test


class Runs:
    """One for a hub. `confirm` decides an action, or a resync, again on the hub's own state, in a thread of `pool`.

    `emit` hands the event of a run to the rules engine, and may take its time.
    """

    def __init__(
        self,
        settings: Settings,
        queue: WorkQueue,
        pool: Executor,
        confirm: Confirm,
        emit: Callable[[Object], Awaitable[None]],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._queue = queue
        self._pool = pool
        self._confirm = confirm
        self._emit = emit
        self._metrics = metrics
        pending_timeout = settings.pending_timeout or settings.start_timeout
        self._in_flight = InFlightRuns(settings.batch_size, settings.max_in_flight, settings.start_timeout, pending_timeout)
        self._retries = RetryPolicy(settings.resync)
        self._unstarted: dict[Key, UnstartedRun] = {}  # until the status of the order says so
        self._may_start = asyncio.Event()

    async def start_pending(self) -> None:
        """Start runs for pending actions when they may start, until cancelled."""
        while True:
            await self._may_start.wait()
            await asyncio.sleep(BATCH_SECONDS)
            while run := self._in_flight.start(time.monotonic()):
                await self._emit(action_event(run, self._settings.workflows))
                self._metrics.emitted(run.action)
                run.began = time.monotonic()
                log.info("%s of %s", run.action, ", ".join(map(str, run.orders)))
                for key in run.orders:
                    self._queue.add(key)  # to notice when it takes too long to begin
            self._may_start.clear()

    async def decide(self, key: Key, order: ClusterOrder, observed: ObservedState, lock: LockState | None, now: datetime) -> None:
        """Request the run that the order needs now; else reconcile it again when time alone may change that."""
        clock = time.monotonic()
        if self._in_flight.run_of(key):
            return
        if lock and not lock.is_free(now):
            self._in_flight.cancel(key)
            self._queue.add_after(key, _until_expiry(lock, now) or LOCKED_SECONDS)
            return
        action = next_action(order, observed, now)
        resync = action is None and self._retries.resync_is_due(key, order, clock)
        if action is None and not resync:
            self._retries.settled(key)
            self._in_flight.cancel(key)
            self._queue.add_after(key, self._retries.next_wake_up(key, order, now, clock))
            return
        action = action or "provision"
        if self._in_flight.is_pending(key, action, order.generation):
            return
        if delay := self._retries.delay(key, order, action, clock):
            self._queue.add_after(key, delay)
            return
        pending = await asyncio.get_running_loop().run_in_executor(self._pool, self._confirm, key, action, resync)
        if pending:
            self._in_flight.request(key, pending)
            self._may_start.set()
        else:
            self._in_flight.cancel(key)

    def cancel(self, key: Key) -> None:
        """Drop the pending action of the order. A run in flight goes on."""
        self._in_flight.cancel(key)

    def complete_if_ended(self, key: Key, order: ClusterOrder, lock: LockState | None, now: datetime) -> None:
        """Complete the order's run if it has ended; else reconcile again when it may have."""
        clock, run = time.monotonic(), self._in_flight.run_of(key)
        if run is None:
            return
        # A run that has yet to lock the order will skip it then.
        obsolete = order.management_state != "managed" or (order.is_deleting and run.action != "delete")
        if not obsolete and self._in_flight.is_late(key, lock, clock):
            until = now + timedelta(seconds=self._in_flight.gives_up_in(key, clock))
            self._unstarted[key] = UnstartedRun(run.orders[key].uid, run.id, run.action, self._settings.start_timeout, until)
            self._metrics.was_not_started(run.action)
            log.warning("no run locked %s for %s: check the output of the last run, and that it works on the same hub", key, run.action)
        if not self._in_flight.has_ended(key, lock, now, clock, obsolete):
            timeout = self._in_flight.next_check_in(key, clock) + SECOND_MORE
            self._queue.add_after(key, _until_expiry(lock, now) or timeout)
            return
        if obsolete:
            self._abandon(key, lock)
        else:
            self.complete(key)
        self._retries.run_ended(key, order, run.action, clock)

    def complete(self, key: Key) -> None:
        """The order's run has ended, or nothing can show its end: other orders wait for its slot."""
        self._has_completed(self._in_flight.complete(key))

    def unstarted(self, key: Key) -> UnstartedRun | None:
        """The run that has not locked the order in time, for its status."""
        return self._unstarted.get(key)

    def unstarted_is_reported(self, key: Key) -> None:
        """The status of the order was written with it."""
        self._unstarted.pop(key, None)

    def forget(self, key: Key, lock: LockState | None) -> None:
        """Drop what is kept for an order that no longer exists. `lock` is its last one."""
        self._retries.forget(key)
        self._in_flight.cancel(key)
        self._unstarted.pop(key, None)
        self._abandon(key, lock)

    def _abandon(self, key: Key, lock: LockState | None) -> None:
        run = self._in_flight.abandon(key, lock.token if lock else 0, time.monotonic())
        if run:
            asyncio.get_running_loop().call_later(ABANDONED_SECONDS, self._may_start.set)
        self._has_completed(run)

    def _has_completed(self, run: InFlightRun | None) -> None:
        if run:
            if run.began is not None:
                self._metrics.finished(run.action, time.monotonic() - run.began)
            self._may_start.set()

    # For the metrics

    @property
    def in_flight(self) -> int:
        return self._in_flight.runs

    def counts(self) -> dict[tuple[str, str], int]:
        """How many orders have a pending action or a run in flight, by state and action."""
        return self._in_flight.counts()


def _until_expiry(lock: LockState | None, now: datetime) -> float | None:
    """How long until a held lock is free, unless it is renewed: the renewal is an event."""
    free = lock.free_at() if lock and lock.holder else None
    return max(0.0, (free - now).total_seconds()) + SECOND_MORE if free else None
