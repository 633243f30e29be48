# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Get the state of protected workloads. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import read_lock
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import DRPC, RAMEN
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.summary import line, placement_info
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.modules import dr_placement_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.dr_action import DrAction


class ActionModule(DrAction):
    SPEC: ClassVar[Spec] = dr_placement_info.SPEC
    RULES: ClassVar[dict[str, Any]] = dr_placement_info.RULES

    def recover(self, kube: Kube, store: ObjectStore, parameters: dict[str, Any]) -> dict[str, Any]:
        found: dict[WorkloadRef, Object | None]
        if parameters["name"]:
            workload = WorkloadRef(parameters["namespace"], parameters["name"])
            found = {workload: kube.find(RAMEN, DRPC, workload.name, workload.namespace)}
        else:
            items = kube.list_all(RAMEN, DRPC, parameters["namespace"])
            found = {WorkloadRef(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}
        infos = [self._info(store, workload, found[workload]) for workload in sorted(found)]
        return {"changed": False, "placements": infos, "lines": [line(info) for info in infos]}

    def _info(self, store: ObjectStore, workload: WorkloadRef, drpc: Object | None) -> Object:
        lock = read_lock(DocumentStore(store, workload.identity()), workload)
        return placement_info(workload, lock, self.state(store, workload), drpc)
