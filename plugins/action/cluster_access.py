# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Apply groups, bindings of roles and an administrator's account in a cluster. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import cluster_parts
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.part_state import PartState
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster
from ansible_collections.openfleet.clusters.plugins.modules import cluster_access
from ansible_collections.openfleet.clusters.plugins.plugin_utils.part_action import PartAction


class ActionModule(PartAction):
    SPEC: ClassVar[Spec] = cluster_access.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_access.RULES

    def apply(self, provider: Provider, cluster: ObservedCluster, parameters: dict[str, Any]) -> tuple[PartState, dict[str, Any]]:
        part = cluster_parts.apply_access(provider, cluster, parameters["groups"], parameters["bindings"], parameters["admin_account"])
        return part, {}

    def remove(self, provider: Provider, cluster: ObservedCluster) -> bool:
        return cluster_parts.remove_access(provider, cluster)
