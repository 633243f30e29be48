# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Look at a cluster, whatever its provider. Documented in the module of the same name."""

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
        spec = provider.status(subject.recorded)
        answer: dict[str, Any] = {"changed": False, "exists": spec.exists, "cluster": shown(subject, spec)}
        if parameters["dns"]:
            answer["dns"] = provider.dns(spec)
        if parameters["with_kubeconfig"]:
            found = provider.kubeconfig(spec)
            # Kept in a registered variable, and never printed.
            answer |= {"cluster_kubeconfig": found.content, "kubeconfig_version": found.version, "_ansible_no_log": True}
        return answer
