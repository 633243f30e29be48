# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Observes Flux in the clusters of orders that use GitOps: from time to time, and when a cluster asks for it. It writes nothing.

Threads of a poller of its own do this, so that neither workers nor other providers wait for a cluster. A cluster that does not answer is
asked less and less often. Used in the event loop's thread only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..gitops.conditions import is_unreachable
from ..kube.client import Kube
from ..orders.gitops import used_by
from ..orders.gitops_observer import observe_gitops
from ..orders.model import ClusterOrder
from ..orders.observe import provider_type
from ..providers.model import TRUE, ConditionState
from .key_index import KeyIndex
from .poller import FRESH_SECONDS, Poller
from .work_queue import Key

PENDING_SECONDS = 10.0  # between two observations while something is not True
LAST_SECONDS = 600.0  # between two of a cluster that has not answered for long


@dataclass(frozen=True)
class Answer:
    """What was observed for the order with this uid."""

    uid: str
    states: Mapping[str, ConditionState]


class GitOpsWatch:
    """`enqueue` is called with the key of each order that was observed, and of one that should be. `seconds` are between two
    observations of a cluster where everything is True."""

    def __init__(self, kube: Kube, enqueue: Callable[[Key], None], seconds: float) -> None:
        self._kube = kube
        self._enqueue = enqueue
        self._seconds = seconds
        self._poller = Poller(self._answered)
        self._by_uid = KeyIndex()
        self._answers: dict[Key, Answer] = {}
        self._asked: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._notified: set[Key] = set()
        self._asking: set[Key] = set()

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Observe in these tasks."""
        self._poller.start(tasks)

    def follow(self, key: Key, order: ClusterOrder) -> float | None:
        """Observe the order's cluster if it is time to. Returns the seconds until it is; None where nothing is to be observed."""
        used = used_by(order)
        if not used or order.is_deleting or not provider_type(order):
            self.forget(key)
            return None
        self._by_uid.put(key, [order.uid])
        if key in self._asking:
            return None  # its answer enqueues the order
        left = self._asked.get(key, float("-inf")) + self._pause(key, order, used) - time.monotonic()
        if left > 0:
            return left
        self._notified.discard(key)
        self._asking.add(key)
        self._poller.request(key, lambda: self._ask(key, order))
        return None

    def answer(self, key: Key, order: ClusterOrder) -> Mapping[str, ConditionState] | None:
        """What was observed since it was last used."""
        answer = self._answers.get(key)
        return answer.states if answer and answer.uid == order.uid else None

    def has_used(self, key: Key) -> None:
        """The status has it: what a run reports from now on is newer."""
        self._answers.pop(key, None)

    def notify(self, uid: str) -> None:
        """The cluster of the order with this uid asks to be observed."""
        for key in self._by_uid.get(uid):
            self._notified.add(key)
            self._enqueue(key)

    def forget(self, key: Key) -> None:
        """Drop what is kept for an order that no longer exists, or no longer uses GitOps."""
        self._by_uid.forget(key)
        self._poller.forget(key)
        self._notified.discard(key)
        self._asking.discard(key)
        for known in (self._answers, self._asked, self._failures):
            known.pop(key, None)

    def _pause(self, key: Key, order: ClusterOrder, used: tuple[str, ...]) -> float:
        if key in self._notified:
            return FRESH_SECONDS  # a cluster may ask as often as it likes
        if failures := self._failures.get(key):
            return min(PENDING_SECONDS * 2.0 ** min(failures, 16), LAST_SECONDS)
        settled = all((order.condition(kind) or {}).get("status") == TRUE for kind in used)
        return self._seconds if settled else min(PENDING_SECONDS, self._seconds)

    def _ask(self, key: Key, order: ClusterOrder) -> None:
        self._answers[key] = Answer(order.uid, observe_gitops(self._kube, order))

    def _answered(self, key: Key) -> None:
        if key not in self._asking:
            self._answers.pop(key, None)  # forgotten meanwhile
            return
        self._asking.discard(key)
        self._asked[key] = time.monotonic()
        answer = self._answers.get(key)
        if answer is None or is_unreachable(answer.states):
            self._failures[key] = self._failures.get(key, 0) + 1
        else:
            self._failures.pop(key, None)
        self._enqueue(key)
