# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Limit what a tenant of a fleet may use. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import QUOTA, QUOTA_NAME
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.objects import FleetObjects, answer, given
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.modules import fleet_quota
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = fleet_quota.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        objects = FleetObjects(kube, QUOTA, check_mode=self.check_mode)
        if parameters["state"] == "absent":
            return answer(QUOTA, objects.absent(QUOTA_NAME, parameters["namespace"]))
        spec = given(hard=parameters["hard"], maxLifetime=parameters["max_lifetime"])
        if parameters["denied"] is not None:
            denied = parameters["denied"]
            spec["denied"] = given(reason=denied["reason"], deleteAfter=denied["delete_after"]) or None
        return answer(QUOTA, objects.present(QUOTA_NAME, parameters["namespace"], spec))
