# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Request protection, a move, a test or the end of protection. Documented in the module of the same name."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar

from ansible.utils.display import Display
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.dr import drpc_requests
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.copies import RequestSpec
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DRPC, RAMEN
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.observe import accepted_request
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.readers import read_intent
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import would_do
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.summary import line, placement_info
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.modules import dr_request
from ansible_collections.openfleet.clusters.plugins.plugin_utils.dr_action import DrAction

POLL_SECONDS = 1.0
display = Display()


class ActionModule(DrAction):
    SPEC: ClassVar[Spec] = dr_request.SPEC
    RULES: ClassVar[dict[str, Any]] = dr_request.RULES

    def recover(self, kube: Kube, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        workload, request = WorkloadRef(parameters["namespace"], parameters["name"]), parameters["request"]
        drpc = self._find(kube, workload)
        if drpc is None and request not in (drpc_requests.PROTECT, drpc_requests.UNPROTECT):
            raise NotFound(f"This cluster has no DRPlacementControl {workload}: check the name, or protect the workload first.")
        if request == drpc_requests.UNPROTECT:
            change, changed = {}, drpc is not None and "deletionTimestamp" not in drpc["metadata"]
        elif drpc is None:
            change, changed = drpc_requests.new_drpc(workload.namespace, workload.name, parameters)["spec"], True
        else:
            document = self.state(store, workload)
            state = State.from_document(document)
            change = drpc_requests.spec_change(request, drpc, state, parameters)
            drpc_requests.check_effect(request, drpc, change, accepted_request(document.intent), state)
            changed = bool(change)
        result: dict[str, Any] = {"changed": changed, "spec": change, "diff": _diff(drpc, change)}
        if self.check_mode:
            result |= self._plan(kube, store, parameters, drpc, change)
        elif changed:
            self._change(kube, workload, drpc, parameters, change)
        if parameters["wait"] and not self.check_mode:
            result |= self._wait(kube, store, workload, parameters)
        return result | {"placement": self._info(kube, store, workload)}

    def _change(self, kube: Kube, workload: WorkloadRef, drpc: Object | None, parameters: dict[str, Any], change: Object) -> None:
        if parameters["request"] == drpc_requests.UNPROTECT:
            kube.delete(drpc or {})
        elif drpc is None:
            kube.create(drpc_requests.new_drpc(workload.namespace, workload.name, parameters), strict=True)
        else:
            # A CRD without dryRun would drop it: the test failover would be a failover.
            kube.patch(drpc, {"spec": change}, checked=False, strict=True)

    def _plan(self, kube: Kube, store: ObjectStore, parameters: dict[str, Any], drpc: Object | None, change: Object) -> Object:
        workload = WorkloadRef(parameters["namespace"], parameters["name"])
        if drpc is None:
            return {"plan": ["create the DRPlacementControl"] if parameters["request"] == drpc_requests.PROTECT else [], "blocked_by": []}
        deleting = parameters["request"] == drpc_requests.UNPROTECT
        copy = read_intent(drpc)
        planned = self.reconciler(kube, store, parameters).plan(
            workload, lambda intent: replace(intent, deleting=True) if deleting else drpc_requests.with_change(intent, copy, change)
        )
        if planned is None:
            return {"plan": [], "blocked_by": []}
        view, steps = planned
        passed, actions, blocked_by = would_do(steps)
        unread = [] if deleting or not change or view.state.is_deleted else drpc_requests.unread(view.recorded, copy)
        return {"plan": [*passed, *actions], "blocked_by": unread + blocked_by}

    def _wait(self, kube: Kube, store: ObjectStore, workload: WorkloadRef, parameters: dict[str, Any]) -> Object:
        """Poll until it is done, and show each change."""
        deadline, shown = time.monotonic() + parameters["wait_timeout"], ""
        while True:
            drpc, document = self._find(kube, workload), self.state(store, workload)
            current = line(self._info(kube, store, workload))
            if current != shown:
                display.display(current)
                shown = current
            if drpc is None:
                return (
                    {}
                    if parameters["request"] == drpc_requests.UNPROTECT
                    else {"failed": True, "msg": f"{workload} was deleted meanwhile."}
                )
            copy, accepted, state = read_intent(drpc), accepted_request(document.intent), State.from_document(document)
            if parameters["request"] != drpc_requests.UNPROTECT:
                if drpc_requests.is_done(parameters["request"], RequestSpec.of(copy), accepted, state):
                    return {}
                if why := drpc_requests.superseded(accepted, copy):
                    return {"failed": True, "msg": why}
            if time.monotonic() > deadline:
                return {"failed": True, "msg": f"Not done after {parameters['wait_timeout']:g} s: {current}"}
            time.sleep(POLL_SECONDS)

    def _info(self, kube: Kube, store: ObjectStore, workload: WorkloadRef) -> Object:
        lock = read_lock(DocumentStore(store, workload.identity()), workload)
        return placement_info(workload, lock, self.state(store, workload), self._find(kube, workload))

    @staticmethod
    def _find(kube: Kube, workload: WorkloadRef) -> Object | None:
        return kube.find(RAMEN, DRPC, workload.name, workload.namespace)


def _diff(drpc: Object | None, change: Object) -> Object:
    spec = (drpc or {}).get("spec") or {}
    return {"before": {name: spec.get(name) for name in change}, "after": change}
