# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes the status of orders: derived, compared, and stored in the form that the hub's CRD accepts, with Events. It decides nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ..common.types import Object
from ..kube.client import retry_on_conflict
from ..kube.errors import Conflict, Invalid
from ..lock.lease import Lock, LockState, verify
from .model import ClusterOrder
from .observe import ObservedState
from .osac import beside_controller, conditions_patch, for_foreign_crd, is_beside_controller, is_reduced
from .outcome import LostRun, Outcome, UnstartedRun
from .run import Run
from .status import derive_status
from .transitions import events_of


class StatusWriter:
    """Writes only what changed."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def sync(
        self,
        order: ClusterOrder,
        observed: ObservedState,
        lock: LockState | None = None,
        unstarted: UnstartedRun | None = None,
        report: Outcome | None = None,
    ) -> ClusterOrder:
        """Update the status to the observed state. It needs no lock, because it only reports what exists.

        A run that was killed reports nothing; the order's `lock`, which it did not release, shows it. Nor does one that is `unstarted`.
        `report` has parts of the infrastructure that were observed outside of the cluster.
        """
        lost = unstarted or LostRun.of(lock, self._run.kube.server_time())
        return self.write(order, report, observed=observed, lost=lost)

    def write(
        self,
        order: ClusterOrder,
        outcome: Outcome | None,
        *,
        lock: Lock | None = None,
        observed: ObservedState | None = None,
        lost: LostRun | UnstartedRun | None = None,
    ) -> ClusterOrder:
        """Update the status and return the order with it. With a `lock`, only its holder may write."""
        prepared = bool(lock and outcome and outcome.finished and outcome.step != "delete")

        def attempt() -> ClusterOrder:
            nonlocal order, observed, lost
            state = observed or self._run.observe(order, prepared=prepared)
            if prepared:
                state = self._run.observe_inside(order, state)
            status = derive_status(order, state, self._run.kube.server_time() or datetime.now(UTC), outcome, lost)
            if status == order.status:
                return order
            if self._run.check_mode:
                return replace(order, status=status)
            if lock:
                verify(self._run.kube, lock)
            try:
                written = self._store(order, status)
            except Conflict:
                # The other writer may be the next run, which holds the lock by now. What only the launcher knows is
                # reported still.
                order, observed = self._run.find(order.namespace, order.name) or order, None
                lost = lost if isinstance(lost, UnstartedRun) else None
                raise
            self._run.events.record(written, events_of(order.status, status, outcome))
            return ClusterOrder.from_object(written, self._run.names)

        return retry_on_conflict(attempt)

    def _store_beside(self, item: Object, shared: Object) -> Object:
        """Store our conditions. The other controller writes its own at the same time, which is no conflict: the patch changes only ours."""
        if patch := conditions_patch(item, shared):
            try:
                return self._run.kube.patch(item, patch, subresource="status", checked=False)
            except Invalid:
                # Ours, their order in the list or the spec have changed. The next line is then a Conflict, and else says what is
                # invalid.
                pass
        return self._run.kube.replace(item | {"status": shared}, subresource="status")

    def _store(self, order: ClusterOrder, status: Object) -> Object:
        """Store the status. Another controller's CRD rejects or drops fields it does not know, and then gets those it accepts."""
        stored, item, replace_object = order.raw.get("status") or {}, order.raw, self._run.kube.replace
        if self._run.names.external_controller or is_beside_controller(stored):
            shared = beside_controller(status, stored)
            return item if shared == stored else self._store_beside(item, shared)
        if not is_reduced(stored):
            try:
                item = replace_object(item | {"status": status}, subresource="status")
                if "observedGeneration" in item["status"]:
                    return item
            except Invalid:
                # If the fields were not the reason, the reduced status is rejected too, and that error is raised.
                item = order.raw
        reduced = for_foreign_crd(status, stored)
        return item if reduced == item.get("status") else replace_object(item | {"status": reduced}, subresource="status")
