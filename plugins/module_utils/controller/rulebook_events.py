# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The events that the rulebook gets: one for each run to start, and one for each transition of an order. Names and reasons only."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from ..common.types import Object
from ..orders.model import DEGRADED, FAILED, READY, ClusterOrder
from .in_flight import InFlightRun
from .work_queue import Key

# As an OSAC controller names them, so that a rulebook that matches webhooks by endpoint matches these events too.
ENDPOINTS = {"provision": "create-hosted-cluster", "delete": "delete-hosted-cluster", "post_install": "post-install"}
TRANSITIONS = {READY: "ready", DEGRADED: "degraded", FAILED: "failed"}


def action_event(run: InFlightRun, workflows: Collection[str] = ()) -> Object:
    """The event that starts a run. `meta.launch` says whether its action is one of the `workflows`."""
    orders = [_reference(key, pending.uid, pending.generation) for key, pending in run.orders.items()]
    reasons = ", ".join(dict.fromkeys(pending.reason for pending in run.orders.values()))
    launch = "workflow" if run.action in workflows else "job"
    meta = {"endpoint": ENDPOINTS[run.action], "uuid": run.id, "launch": launch}
    return {"action": run.action, "order": orders[0], "orders": orders, "reason": reasons, "meta": meta}


def deletion_event(key: Key, order: ClusterOrder) -> Object:
    return _transition("deleted", key, order, "Deleted", "")


class Transitions:
    """The last reported phase of each order, and the events for changes of it that a site's own rules may act on."""

    def __init__(self) -> None:
        self._phases: dict[Key, str] = {}

    def record(self, key: Key, phase: str) -> None:
        """Record a phase without an event: what happened before this source began is not reported."""
        self._phases[key] = phase

    def event(self, key: Key, order: ClusterOrder) -> Object | None:
        """The event for the order's phase, if it is another one than before and one that is reported."""
        before, self._phases[key] = self._phases.get(key, ""), order.phase
        if order.phase == before or order.phase not in TRANSITIONS:
            return None
        times = [str(item.get("lastTransitionTime", "")) for item in order.status.get("conditions", [])]
        reason = (order.condition("ClusterAvailable") or {}).get("reason", "")
        failure = order.failure.reason if order.failure else ""
        return _transition(TRANSITIONS[order.phase], key, order, failure or reason, max(times, default=""))

    def forget(self, key: Key) -> None:
        self._phases.pop(key, None)


def _transition(kind: str, key: Key, order: ClusterOrder, reason: str, since: str) -> Object:
    """Its id is the same for the same transition, whichever source reports it."""
    reference = _reference(key, order.uid, order.generation)
    identity = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{order.uid} {kind} {since}"))
    return {"action": kind, "order": reference, "orders": [reference], "reason": reason, "meta": {"endpoint": kind, "uuid": identity}}


def _reference(key: Key, uid: str, generation: int) -> Object:
    return {"namespace": key.namespace, "name": key.name, "uid": uid, "generation": generation}
