# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create, update or delete a cluster with any provider. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import (
    TaskCluster,
    create_or_update,
    shown,
    wait_until_deleted,
    wait_until_ready,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest
from ansible_collections.openfleet.clusters.plugins.modules import cluster
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        waits = parameters["wait"] and not self.check_mode
        work = self._delete if parameters["state"] == "absent" else self._apply
        return work(subject, parameters, parameters["wait_timeout"] if waits else None)

    def _apply(self, subject: TaskCluster, parameters: dict[str, Any], timeout: int | None) -> dict[str, Any]:
        with self.changing(subject, parameters) as provider:
            cluster = create_or_update(provider, subject.recorded, _request(parameters))
            result = self.result(provider) | {"cluster": shown(subject, cluster)}
        if timeout is None:
            return result
        try:
            return result | {"cluster": shown(subject, wait_until_ready(subject.reader(), cluster, timeout))}
        except KubeError as error:
            return result | self.failure(error)

    def _delete(self, subject: TaskCluster, parameters: dict[str, Any], timeout: int | None) -> dict[str, Any]:
        with self.changing(subject, parameters) as provider:
            deleted = provider.delete(subject.recorded)
            result = self.result(provider)
        if timeout is None or deleted:
            return result | {"deleted": deleted}

        def again() -> bool:
            with self.changing(subject, parameters) as provider:
                return provider.delete(subject.recorded)

        try:
            wait_until_deleted(again, subject.ref.name, timeout)
        except KubeError as error:
            return result | {"deleted": False} | self.failure(error)
        return result | {"deleted": True}


def _request(parameters: dict[str, Any]) -> ClusterRequest:
    return ClusterRequest(
        version=parameters["version"] or "",
        node_requests=[NodeRequest(item["resourceClass"], item["numberOfNodes"]) for item in parameters["node_requests"]],
        cloud_provider=parameters["cloud_provider"] or "",
        region=parameters["region"] or "",
        multi_az=parameters["multi_az"],
        settings=parameters["settings"],
        secrets=parameters["secrets"],
    )
