# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read clusters of a fleet. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import CLUSTER
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.objects import FleetObjects, result_of
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.modules import fleet_cluster_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = fleet_cluster_info.SPEC
    RULES: ClassVar[dict[str, Any]] = fleet_cluster_info.RULES

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        items = FleetObjects(kube, CLUSTER).read(parameters["name"] or "", parameters["namespace"])
        return {"changed": False, "fleet_clusters": [result_of(item) for item in items]}
