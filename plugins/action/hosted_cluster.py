# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make or remove the HyperShift cluster of an order, all its objects in one task. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils import hypershift
from ansible_collections.openfleet.clusters.plugins.module_utils.arguments import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.fenced import Change, FencedWriter, diff
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lease import Lock
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import ClusterOrder, NodeRequest
from ansible_collections.openfleet.clusters.plugins.modules import hosted_cluster
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = hosted_cluster.SPEC
    RULES: ClassVar[dict[str, Any]] = hosted_cluster.RULES

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        order = ClusterOrder.from_object(parameters["cluster_order"], parameters["api_group"])
        writer = FencedWriter(kube, Lock(**parameters["lock"]), order.names.lock_token_annotation, self.check_mode)
        if parameters["state"] == "absent":
            return self._answer(hypershift.remove(kube, writer, order.name, parameters["namespace"], order.labels))
        cluster = hypershift.HyperShiftCluster(
            name=order.name,
            namespace=parameters["namespace"],
            release_image=parameters["release_image"],
            pull_secret=parameters["pull_secret"],
            node_requests=[NodeRequest(str(item["resourceClass"]), int(item["numberOfNodes"])) for item in parameters["node_requests"]],
            labels=order.labels,
            class_label=order.names.resource_class_label,
            ssh_public_key=parameters["ssh_public_key"] or "",
            base_domain=parameters["base_domain"] or "",
            pod_network_cidr=parameters["pod_network_cidr"],
            service_network_cidr=parameters["service_network_cidr"],
            control_plane_availability=parameters["control_plane_availability"],
            platform=parameters["platform"],
            node_platform=parameters["node_platform"],
            configuration=parameters["configuration"],
            extra_secrets=parameters["extra_secrets"],
        )
        return self._answer(hypershift.apply(kube, writer, cluster))

    def _answer(self, changes: list[Change]) -> dict[str, Any]:
        done = [{"kind": change.item["kind"], "name": change.item["metadata"]["name"], "action": change.action} for change in changes]
        return {"changed": any(change.changed for change in changes), "objects": done, "diff": diff(changes)}
