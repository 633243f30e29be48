# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which actions are asked for and which are under way: one for each order, some orders in a run, a few runs at a time. Talks to nobody.

An action is under way until the order's lock shows that its run has ended: another token than before, and nobody who holds it. A run that
was killed leaves a lock that runs out. One that never took the lock is given up after `patience` seconds. In a namespace that is being
deleted there is no lock, and a run to delete has nothing to show its end by: it is given up sooner, since deleting twice is deleting once.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from ..common.types import Object
from ..lock.lease import LockState
from ..orders.model import ClusterOrder
from ..orders.status import Action
from .work_queue import Key

# As an OSAC controller names them; a rulebook that knows webhooks by their endpoint knows our events, too.
ENDPOINTS = {"provision": "create-hosted-cluster", "delete": "delete-hosted-cluster", "post_install": "post-install"}
RESYNC = "Resync"
WITHOUT_LOCK_SECONDS = 30.0


@dataclass(frozen=True)
class PendingAction:
    """An action that an order needs, and the token that its lock had when that was found."""

    action: Action
    reason: str
    uid: str
    generation: int
    token: int

    @property
    def can_wait(self) -> bool:
        """Whether nothing is known to be wrong: others go first."""
        return self.reason == RESYNC


@dataclass
class Run:
    """One event, and so one playbook run or job. `began` is when the engine took it; before, nothing can be expected of it."""

    action: Action
    wishes: dict[Key, PendingAction]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    began: float | None = None

    def event(self, workflows: Collection[str] = ()) -> Object:
        """What the rulebook gets. Names only, all of them from the API server. Of an action in `workflows` it tells that it is one."""
        orders = [reference(key, wish.uid, wish.generation) for key, wish in self.wishes.items()]
        reasons = ", ".join(dict.fromkeys(wish.reason for wish in self.wishes.values()))
        launch = "workflow" if self.action in workflows else "job"
        meta = {"endpoint": ENDPOINTS[self.action], "uuid": self.id, "launch": launch}
        return {"action": self.action, "order": orders[0], "orders": orders, "reason": reasons, "meta": meta}


class InFlightRuns:
    """The wishes and the runs. Time is a monotonic clock's, given by whoever asks."""

    def __init__(self, batch_size: int, max_in_flight: int, patience: float) -> None:
        self._batch_size = batch_size
        self._max_in_flight = max_in_flight
        self._patience = patience
        self._wishes: dict[Key, PendingAction] = {}
        self._flying: dict[Key, Run] = {}
        self._runs: dict[str, set[Key]] = {}

    def want(self, key: Key, wish: PendingAction) -> None:
        """Ask for an action, instead of any other that is asked for. Nothing is asked for while one is under way."""
        if key in self._flying:
            return
        before = self._wishes.get(key)
        if before and before.action != wish.action:
            del self._wishes[key]  # it queues up anew
        self._wishes[key] = wish

    def withdraw(self, key: Key) -> None:
        self._wishes.pop(key, None)

    def is_wanted(self, key: Key, action: Action, generation: int) -> bool:
        wish = self._wishes.get(key)
        return wish is not None and (wish.action, wish.generation) == (action, generation)

    @property
    def can_start(self) -> bool:
        return bool(self._wishes) and len(self._runs) < self._max_in_flight

    def start(self) -> Run | None:
        """The next run: the action that is wanted for longest, for as many orders as fit into one. None when none may start."""
        if not self.can_start:
            return None
        ordered = sorted(self._wishes, key=lambda key: self._wishes[key].can_wait)  # stable: else first come, first served
        action = self._wishes[ordered[0]].action
        chosen = [key for key in ordered if self._wishes[key].action == action][: self._batch_size]
        run = Run(action, {key: self._wishes.pop(key) for key in chosen})
        self._runs[run.id] = set(chosen)
        self._flying |= dict.fromkeys(chosen, run)
        return run

    def flying(self, key: Key) -> Run | None:
        return self._flying.get(key)

    def is_over(self, key: Key, lock: LockState | None, now: datetime | None, clock: float, unwanted: bool = False) -> bool:
        """Whether what is under way for the order has ended, as far as its lock and the time tell.

        What is `unwanted` meanwhile will not begin if it has not begun.
        """
        run = self._flying[key]
        seen, known = lock.token if lock else 0, run.wishes[key].token
        # A lower token is of our copy, which is late: what was known when this was asked for came from the hub.
        if seen != known and not (lock and seen < known):
            return lock is None or lock.is_free(now)
        return run.began is not None and (unwanted or clock > run.began + self._patience_with(key, lock))

    def gives_up_in(self, key: Key, lock: LockState | None, clock: float) -> float:
        """How many seconds are left for the run to take the order's lock."""
        began, patience = self._flying[key].began, self._patience_with(key, lock)
        return patience if began is None else max(0.0, began + patience - clock)

    def was_not_taken_up(self, key: Key, lock: LockState | None) -> bool:
        """Whether a run should have taken the order's lock by its end, and has not."""
        return self._can_lock(key, lock) and (lock.token if lock else 0) == self._flying[key].wishes[key].token

    def _patience_with(self, key: Key, lock: LockState | None) -> float:
        return self._patience if self._can_lock(key, lock) else min(self._patience, WITHOUT_LOCK_SECONDS)

    def _can_lock(self, key: Key, lock: LockState | None) -> bool:
        run = self._flying[key]
        return lock is not None or run.action != "delete" or run.wishes[key].token > 0

    def land(self, key: Key) -> Run | None:
        """The order's run is over for it. The run itself is when it is for all its orders."""
        run = self._flying.pop(key, None)
        if run:
            left = self._runs[run.id]
            left.discard(key)
            if not left:
                del self._runs[run.id]
        return run

    # For the metrics

    @property
    def runs(self) -> int:
        return len(self._runs)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many orders wait for an action or are under way with one, by state and action."""
        found: dict[tuple[str, str], int] = {(state, action): 0 for state in ("wanted", "in_flight") for action in ENDPOINTS}
        for state, actions in (("wanted", _actions(self._wishes.values())), ("in_flight", _actions(self._flying.values()))):
            for action in actions:
                found[state, action] += 1
        return found


def reference(key: Key, uid: str, generation: int) -> Object:
    return {"namespace": key.namespace, "name": key.name, "uid": uid, "generation": generation}


def transition(kind: str, key: Key, order: ClusterOrder, reason: str, since: str) -> Object:
    """An event for a site's own rules. Its id is the same for the same transition, whoever tells of it."""
    named = reference(key, order.uid, order.generation)
    identity = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{order.uid} {kind} {since}"))
    return {"action": kind, "order": named, "orders": [named], "reason": reason, "meta": {"endpoint": kind, "uuid": identity}}


def _actions(items: Iterable[PendingAction | Run]) -> list[str]:
    return [item.action for item in items]
