# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Install operators in a cluster. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure import cluster_parts
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_operators import operators_state
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.part_state import PartState
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster
from ansible_collections.openfleet.clusters.plugins.modules import cluster_operators
from ansible_collections.openfleet.clusters.plugins.plugin_utils.part_action import PartAction


class ActionModule(PartAction):
    SPEC: ClassVar[Spec] = cluster_operators.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_operators.RULES

    def apply(self, provider: Provider, cluster: ObservedCluster, parameters: dict[str, Any]) -> tuple[PartState, dict[str, Any]]:
        states = cluster_parts.apply_operators(provider, cluster, parameters["operators"])
        return operators_state(states), {"operators": [state.as_dict() for state in states]}

    def remove(self, provider: Provider, cluster: ObservedCluster) -> bool:
        return cluster_parts.remove_operators(provider, cluster)
