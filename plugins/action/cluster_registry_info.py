# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read registries of clusters. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import KUBERNETES, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import registry_result
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.store import RegistryStore
from ansible_collections.openfleet.clusters.plugins.modules import cluster_registry_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES
    SPEC: ClassVar[Spec] = cluster_registry_info.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_registry_info.RULES

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        store = RegistryStore(kube, parameters["kind"])
        warnings: list[str] = []
        if parameters["name"]:
            registry = store.find(parameters["namespace"], parameters["name"])
            found = [registry] if registry else []
        else:
            found = store.list_valid(parameters["namespace"], warnings.append)
        registries = [registry_result(item) for item in sorted(found, key=lambda item: (item.namespace, item.name))]
        return {"changed": False, "registries": registries} | ({"warnings": warnings} if warnings else {})
