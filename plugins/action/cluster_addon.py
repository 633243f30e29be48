# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Install an add-on of a cluster's provider. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_parts import NOT_YET, not_yet
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.part_state import PartState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import Addon
from ansible_collections.openfleet.clusters.plugins.modules import cluster_addon
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_addon.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_addon.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        addon = Addon(parameters["addon"], {str(key): str(value) for key, value in parameters["parameters"].items()})
        with self.changing(subject, parameters) as provider:
            cluster = provider.status(subject.recorded)
            try:
                ready = provider.install_addon(cluster, addon)
                part = PartState(ready, *(("AddonReady",) if ready else ("Installing", f"The add-on {addon.id} is being installed")))
            except NOT_YET as error:
                part = not_yet(error)
            return self.result(provider) | {"part": part.as_dict()}
