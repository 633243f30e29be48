# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Get the node settings for classes of virtual machines. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.vm_classes import node_platforms
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.plugins.modules import vm_class_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.base_action import BaseAction


class ActionModule(BaseAction):
    SPEC: ClassVar[Spec] = vm_class_info.SPEC
    RULES: ClassVar[dict[str, Any]] = vm_class_info.RULES
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (KubeError,)

    def run_action(self, parameters: dict[str, Any]) -> dict[str, Any]:
        requests = [NodeRequest(item["resourceClass"], item["numberOfNodes"]) for item in parameters["node_requests"]]
        platforms, needed = node_platforms(parameters["classes"], requests, parameters["limits"])
        return {"changed": False, "node_platforms": platforms, "needed": needed}
