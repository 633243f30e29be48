# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""List the clouds and regions of a provider. Documented in the module of the same name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.modules import cloud_provider_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cloud_provider_info.SPEC
    RULES: ClassVar[dict[str, Any]] = cloud_provider_info.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        provider = subject.reader()
        clouds = [parameters["cloud_provider"]] if parameters["cloud_provider"] else provider.cloud_providers()
        return {
            "changed": False,
            "cloud_providers": [{"id": cloud, "regions": [asdict(region) for region in provider.regions(cloud)]} for cloud in clouds],
        }
