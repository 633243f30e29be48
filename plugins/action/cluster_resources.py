# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Apply or delete a set of objects in a cluster. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ResourceSet
from ansible_collections.openfleet.clusters.plugins.modules import cluster_resources
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_resources.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_resources.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        name = parameters["resource_set"]
        with self.changing(subject, parameters) as provider:
            cluster = provider.status(subject.recorded)
            if parameters["state"] == "present":
                provider.apply_resources(cluster, ResourceSet(name, parameters["resources"]))
                return self.result(provider)
            deleted = provider.remove_resources(cluster, name)
            return self.result(provider) | {"deleted": deleted}
