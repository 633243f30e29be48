# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reconcile DRPlacementControls. Documented in the module of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DRPC, RAMEN
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import Reconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.summary import diff_of, plan_info, result_info
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import BadOptions
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import quick_check
from ansible_collections.openfleet.clusters.plugins.modules import dr_placement
from ansible_collections.openfleet.clusters.plugins.plugin_utils.dr_action import DrAction

THREADS = 8


class ActionModule(DrAction):
    SPEC: ClassVar[Spec] = dr_placement.SPEC
    RULES: ClassVar[dict[str, Any]] = dr_placement.RULES

    def recover(self, kube: Kube, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        epochs = _epochs(parameters)
        workloads = sorted({*epochs, *_watched(kube, parameters)})
        if epochs and not self.check_mode:
            self.require_conditional_writes(quick_check, store, parameters)
        reconciler = self.reconciler(kube, store, parameters)

        def one(workload: WorkloadRef) -> tuple[Object, Object]:
            before = State.from_document(self.state(store, workload))
            try:
                after = self._one(reconciler, workload, epochs.get(workload), before)
            except self.ERRORS as error:
                # It ends on this workload; the others go on.
                after = _failed(workload, error)
            return {"phase": before.phase, "progression": before.progression, "home": before.home}, after

        with ThreadPoolExecutor(THREADS) as threads:
            done = list(threads.map(one, workloads))
        placements = [after for _before, after in done]
        result = {
            "changed": any(after["changed"] for after in placements),
            "placements": placements,
            "differences": reconciler.differences,
            "diff": [diff_of(before, after) for before, after in done if after["changed"]],
        }
        failures = [after for after in placements if after["ended"] == "Failed"]
        if failures:
            result |= {"failed": True, "msg": " ".join(f"{each['namespace']}/{each['name']}: {each['message']}" for each in failures)}
        return result

    def _one(self, reconciler: Reconciler, workload: WorkloadRef, epoch: int | None, before: State) -> Object:
        if self.check_mode:
            planned = reconciler.plan(workload) if epoch is not None else None
            return plan_info(workload, before, planned[1]) if planned else _unplanned(workload, before)
        return result_info(reconciler.lead(workload, epoch) if epoch is not None else reconciler.watch(workload))


def _epochs(parameters: Mapping[str, Any]) -> dict[WorkloadRef, int]:
    if parameters["epoch"] is not None:
        return {WorkloadRef(parameters["namespace"], parameters["name"]): parameters["epoch"]}
    found = {}
    for key, epoch in (parameters["epochs"] or {}).items():
        namespace, _slash, name = str(key).partition("/")
        if not str(epoch).isdecimal():
            raise BadOptions(f"epochs has {str(epoch)[:40]!r} for {key}: set the number of the epoch.")
        found[WorkloadRef(namespace, name)] = int(epoch)
    return found


def _watched(kube: Kube, parameters: Mapping[str, Any]) -> list[WorkloadRef]:
    if parameters["name"]:
        return [WorkloadRef(parameters["namespace"], parameters["name"])]
    return [WorkloadRef(item["metadata"]["namespace"], item["metadata"]["name"]) for item in kube.list_all(RAMEN, DRPC)]


def _unplanned(workload: WorkloadRef, state: State) -> Object:
    """Of a workload that is only watched, or that no cluster has."""
    return _blank(workload, "Planned", "") | {"phase": state.phase, "progression": state.progression, "home": state.home}


def _failed(workload: WorkloadRef, error: Exception) -> Object:
    return _blank(workload, "Failed", str(error))


def _blank(workload: WorkloadRef, ended: str, message: str) -> Object:
    texts = dict.fromkeys(("phase", "progression", "home"), "")
    lists: dict[str, list[Any]] = {name: [] for name in ("recorded", "actions", "waits", "problems")}
    return {**workload.identity(), "ended": ended, "message": message, "changed": False, "revision": 0, **texts, **lists}
