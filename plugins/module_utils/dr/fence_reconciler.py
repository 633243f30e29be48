# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fences clusters as the DRClusters of this cluster ask for, and writes their status. What to do is decided in `fencing`.

The result of a NetworkFence has no generation, so the one of the last state is removed before the state changes.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict, NotFound
from .fencing import FencePlan, fence_name, network_fence, plan_fence
from .kinds import CSI_ADDONS, DR_CLUSTER, NETWORK_FENCE, RAMEN
from .machine.conditions import merged
from .model import ConditionState


class FenceReconciler:
    """For the cluster with the name `own`."""

    def __init__(self, kube: Kube, own: str) -> None:
        self._kube = kube
        self._own = own

    def reconcile(self, name: str) -> bool:
        """Do what can be done now. False if something is waited for, or has changed meanwhile."""
        try:
            return self._reconcile(name)
        except Conflict:
            return False

    def _reconcile(self, name: str) -> bool:
        cluster = self._kube.find(RAMEN, DR_CLUSTER, name)
        if cluster is None:
            return True
        fence = self._kube.find(CSI_ADDONS, NETWORK_FENCE, fence_name(name))
        plan = plan_fence(cluster, fence, is_own=name == self._own)
        # Before it is done: a fence that ends is no longer reported as one that is complete.
        self._show(cluster, plan)
        if plan.write:
            self._write(network_fence(cluster, plan.write), fence)
        elif plan.delete and fence:
            self._kube.delete(fence, checked=True)
        return plan.complete

    def _write(self, wanted: Object, existing: Object | None) -> None:
        if existing is None:
            try:
                self._kube.create(wanted)
            except NotFound as error:
                raise NotFound(f"{error} Install csi-addons on this cluster, or set ManuallyFenced.") from error
            return
        if "deletionTimestamp" in existing["metadata"]:
            return
        if (existing.get("status") or {}).get("result"):
            existing = self._kube.patch(existing, {"status": {"result": None, "message": None}}, subresource="status")
        self._kube.patch(existing, {"spec": {"fenceState": wanted["spec"]["fenceState"]}})

    def _show(self, cluster: Object, plan: FencePlan) -> None:
        before, generation = cluster.get("status") or {}, cluster["metadata"].get("generation", 0)
        known = list(before.get("conditions") or [])
        wanted: dict[str, ConditionState] = {"Fenced": plan.fenced, "Clean": plan.clean}
        now = self._kube.server_time() or datetime.now(UTC)
        # In place: other writers have conditions of their own.
        conditions = list(
            ({item["type"]: item for item in known} | {item["type"]: item for item in merged(known, wanted, generation, now)}).values()
        )
        if (before.get("phase"), known) != (plan.phase, conditions):
            self._kube.patch(cluster, {"status": {"phase": plan.phase, "conditions": conditions}}, subresource="status")
