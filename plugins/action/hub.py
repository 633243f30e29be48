# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Add a hub to a fleet, change or remove it. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import HUB
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.objects import FleetObjects, answer, given
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.modules import hub
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = hub.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        objects = FleetObjects(kube, HUB, check_mode=self.check_mode)
        if parameters["state"] == "absent":
            return answer(HUB, objects.absent(parameters["name"], None))
        labels = parameters["labels"]
        spec = given(
            schedulable=parameters["schedulable"],
            region=parameters["region"],
            taints=parameters["taints"],
            tenantSelector=parameters["tenant_selector"],
            capacity=parameters["capacity"],
        )
        return answer(HUB, objects.present(parameters["name"], None, spec, labels))
