# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Set the number of nodes of a resource class in a cluster. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster, shown
from ansible_collections.openfleet.clusters.plugins.modules import cluster_node_set
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_node_set.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_node_set.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        if parameters["nodes"] < 0:
            return {"failed": True, "msg": f"nodes is {parameters['nodes']}: set the number of nodes, or 0 to remove the resource class."}
        with self.changing(subject, parameters) as provider:
            cluster = provider.scale(provider.status(subject.recorded), parameters["resource_class"], parameters["nodes"])
            return self.result(provider) | {"cluster": shown(subject, cluster)}
