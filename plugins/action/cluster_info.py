# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Get the state of a cluster with any provider. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster, shown
from ansible_collections.openfleet.clusters.plugins.modules import cluster_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_info.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_info.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        provider = subject.reader()
        cluster = provider.status(subject.recorded)
        result: dict[str, Any] = {"changed": False, "exists": cluster.exists, "cluster": shown(subject, cluster)}
        if parameters["dns"]:
            result["dns"] = provider.dns(cluster)
        if parameters["with_kubeconfig"]:
            found = provider.kubeconfig(cluster)
            # For the registered variable only: Ansible does not print the result.
            result |= {"cluster_kubeconfig": found.content, "kubeconfig_version": found.version, "_ansible_no_log": True}
        return result
