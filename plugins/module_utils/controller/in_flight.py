# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pending actions and the in-flight runs: one for each order, some orders in a run, a few runs at a time. It talks to no server.

An action is in flight until the order's lock shows that its run has ended: another token than before, and no holder. A run that was
killed leaves a lock that expires. A run that has not locked the order after `start_timeout` seconds is reported, and given up after
`pending_timeout` seconds: until then it may be a job that waits in a queue, and a second one would only wait behind it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args

from ..lock.lease import LockState
from ..orders.outcome import Action
from .work_queue import Key

RESYNC = "Resync"
ABANDONED_SECONDS = 30.0  # in which a run starts, and ends because its orders are gone


@dataclass(frozen=True)
class PendingAction:
    """An action that an order needs, and the token that its lock had when that was decided."""

    action: Action
    reason: str
    uid: str
    generation: int
    token: int

    @property
    def is_resync(self) -> bool:
        """Whether nothing is known to be wrong: other actions go first."""
        return self.reason == RESYNC


@dataclass
class InFlightRun:
    """One event, and so one playbook run or job. `began` is when the rules engine took it; before that nothing is expected of it.

    `reported` are the orders that it should have locked by now.
    """

    action: Action
    orders: dict[Key, PendingAction]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    began: float | None = None
    reported: set[Key] = field(default_factory=set)


class InFlightRuns:
    """The pending actions and the runs. Times are of a monotonic clock that the caller passes in."""

    def __init__(self, batch_size: int, max_in_flight: int, start_timeout: float, pending_timeout: float) -> None:
        self._batch_size = batch_size
        self._max_in_flight = max_in_flight
        self._start_timeout = start_timeout
        self._pending_timeout = pending_timeout
        self._pending: dict[Key, PendingAction] = {}
        self._in_flight: dict[Key, InFlightRun] = {}
        self._runs: dict[str, set[Key]] = {}
        self._abandoned: list[tuple[float, str]] = []  # until when each run counts whose orders are gone, and for which namespace

    def request(self, key: Key, pending: PendingAction) -> None:
        """Replace the pending action of the order. Ignored while a run for the order is in flight."""
        if key in self._in_flight:
            return
        before = self._pending.get(key)
        if before and before.action != pending.action:
            del self._pending[key]  # another action queues at the end
        self._pending[key] = pending

    def cancel(self, key: Key) -> None:
        self._pending.pop(key, None)

    def is_pending(self, key: Key, action: Action, generation: int) -> bool:
        pending = self._pending.get(key)
        return pending is not None and (pending.action, pending.generation) == (action, generation)

    def start(self, clock: float) -> InFlightRun | None:
        """The next run: the action that is pending for longest, for as many orders as fit into one. None when none may start.

        Namespaces take turns, and from 4 slots on none has all of them: its runs may be slow on purpose.
        """
        self._abandoned = [(until, namespace) for until, namespace in self._abandoned if until > clock]
        if len(self._runs) + len(self._abandoned) >= self._max_in_flight:
            return None
        ordered = self._in_turn()
        if not ordered:
            return None
        first, action = ordered[0], self._pending[ordered[0]].action
        chosen = [key for key in ordered if self._pending[key].action == action]
        if action == "post_install":  # it talks to clusters, whose tenants may have them answer slowly: no other tenant waits for that
            chosen = [key for key in chosen if key.namespace == first.namespace]
        chosen = chosen[: self._batch_size]
        run = InFlightRun(action, {key: self._pending.pop(key) for key in chosen})
        self._runs[run.id] = set(chosen)
        self._in_flight |= dict.fromkeys(chosen, run)
        return run

    def _in_turn(self) -> list[Key]:
        """The orders whose actions may start now: resyncs last, namespaces with fewer runs first, then one of each namespace in turn."""
        runs = Counter(namespace for keys in self._runs.values() for namespace in {key.namespace for key in keys})
        runs.update(namespace for _until, namespace in self._abandoned)
        share = self._max_in_flight - self._max_in_flight // 4
        turns: Counter[str] = Counter()
        order: dict[Key, tuple[bool, int, int]] = {}
        for key, pending in self._pending.items():
            if runs[key.namespace] < share:
                order[key] = (pending.is_resync, runs[key.namespace], turns[key.namespace])
                turns[key.namespace] += 1
        return sorted(order, key=lambda key: order[key])  # stable: else first come, first served

    def run_of(self, key: Key) -> InFlightRun | None:
        return self._in_flight.get(key)

    def has_ended(self, key: Key, lock: LockState | None, now: datetime | None, clock: float, obsolete: bool = False) -> bool:
        """Whether the run has ended for the order, as far as its lock and the time show.

        An `obsolete` run skips the order if it has not begun to work on it.
        """
        run = self._in_flight[key]
        token, before = lock.token if lock else 0, run.orders[key].token
        # A lower token comes from a cache that lags: the earlier one was read from the hub.
        if token != before and not (lock and token < before):
            return lock is None or lock.is_free(now)
        return run.began is not None and (obsolete or clock > run.began + self._pending_timeout)

    def is_late(self, key: Key, lock: LockState | None, clock: float) -> bool:
        """Whether the run should have locked the order by now, and has not. True once for a run: the caller reports it."""
        run = self._in_flight[key]
        if run.began is None or key in run.reported or clock <= run.began + self._start_timeout:
            return False
        run.reported.add(key)
        return (lock.token if lock else 0) == run.orders[key].token

    def gives_up_in(self, key: Key, clock: float) -> float:
        """After how many seconds a run that does not lock the order counts as lost."""
        return self._remaining(key, clock, self._pending_timeout)

    def next_check_in(self, key: Key, clock: float) -> float:
        """After how many seconds time alone may show something of a run that has not locked the order."""
        timeout = self._pending_timeout if key in self._in_flight[key].reported else self._start_timeout
        return self._remaining(key, clock, timeout)

    def _remaining(self, key: Key, clock: float, timeout: float) -> float:
        began = self._in_flight[key].began
        return timeout if began is None else max(0.0, began + timeout - clock)

    def complete(self, key: Key) -> InFlightRun | None:
        """Mark the order's run as ended for this order. The run itself ends when it has ended for all its orders."""
        run = self._in_flight.pop(key, None)
        if run:
            left = self._runs[run.id]
            left.discard(key)
            if not left:
                del self._runs[run.id]
        return run

    def abandon(self, key: Key, token: int, clock: float) -> InFlightRun | None:
        """As `complete`, for an order that is gone, or that its run will skip. `token` is that of its lock.

        A run that has not locked it counts on for a while, also for the namespace: it is still starting. Else a tenant who creates and
        deletes orders would have any number of runs at a time.
        """
        run = self.complete(key)
        if run and run.id not in self._runs and token == run.orders[key].token:
            self._abandoned.append((clock + ABANDONED_SECONDS, key.namespace))
        return run

    # For the metrics

    @property
    def runs(self) -> int:
        return len(self._runs)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many orders have a pending action or a run in flight, by state and action."""
        found: dict[tuple[str, str], int] = {(state, action): 0 for state in ("pending", "in_flight") for action in get_args(Action)}
        for state, items in (("pending", self._pending.values()), ("in_flight", self._in_flight.values())):
            for action in _actions(items):
                found[state, action] += 1
        return found


def _actions(items: Iterable[PendingAction | InFlightRun]) -> list[str]:
    return [item.action for item in items]
