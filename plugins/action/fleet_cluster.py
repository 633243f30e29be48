# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create, update or delete a fleet cluster. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import CLUSTER
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.objects import FleetObjects, answer, given
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.modules import fleet_cluster
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = fleet_cluster.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        name, namespace = parameters["name"], parameters["namespace"]
        objects = FleetObjects(kube, CLUSTER, check_mode=self.check_mode)
        if parameters["state"] == "absent":
            return answer(CLUSTER, objects.absent(name, namespace))
        sets = parameters["node_sets"]
        spec = given(
            template=parameters["template"],
            templateParameters=parameters["template_parameters"],
            nodeSets=None if sets is None else {each["name"]: {"class": each["resource_class"], "size": each["size"]} for each in sets},
            placement=parameters["placement"],
            priority=parameters["priority"],
            expiresAt=parameters["expires_at"],
        )
        return answer(CLUSTER, objects.present(name, namespace, spec))
