# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make, change or remove a cluster with any provider. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import (
    TaskCluster,
    create_or_update,
    shown,
    wait_until_gone,
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
        work = self._remove if parameters["state"] == "absent" else self._make
        return work(subject, parameters, parameters["wait_timeout"] if waits else None)

    def _make(self, subject: TaskCluster, parameters: dict[str, Any], timeout: int | None) -> dict[str, Any]:
        with self.changing(subject, parameters) as provider:
            spec = create_or_update(provider, subject.recorded, _request(parameters))
            answer = self.told_of(subject, provider, spec)
        if timeout is None:
            return answer
        try:
            return answer | {"cluster": shown(subject, wait_until_ready(subject.reader(), spec, timeout))}
        except KubeError as error:
            return answer | self.failure(error)

    def _remove(self, subject: TaskCluster, parameters: dict[str, Any], timeout: int | None) -> dict[str, Any]:
        with self.changing(subject, parameters) as provider:
            gone = provider.delete(subject.recorded)
            answer = self.told(provider)
        if timeout is None or gone:
            return answer | {"gone": gone}

        def again() -> bool:
            with self.changing(subject, parameters) as provider:
                return provider.delete(subject.recorded)

        try:
            wait_until_gone(again, subject.ref.name, timeout)
        except KubeError as error:
            return answer | {"gone": False} | self.failure(error)
        return answer | {"gone": True}


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
