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
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "cluster_order": {"type": "dict", "required": True},
        "namespace": {"type": "str", "required": True},
        "lock": {"type": "dict", "required": True},
        "node_requests": {"type": "list", "elements": "dict", "default": []},
        "release_image": {"type": "str"},
        "pull_secret": {"type": "str", "no_log": True},
        "ssh_public_key": {"type": "str", "no_log": False},
        "base_domain": {"type": "str"},
        "pod_network_cidr": {"type": "str", "default": "10.132.0.0/14"},
        "service_network_cidr": {"type": "str", "default": "172.31.0.0/16"},
        "control_plane_availability": {"type": "str", "choices": ["SingleReplica", "HighlyAvailable"], "default": "SingleReplica"},
        "platform": {"type": "dict", "default": {"type": "None"}},
        "node_platform": {"type": "dict", "default": {}},
        "configuration": {"type": "dict", "default": {}},
        "extra_secrets": {"type": "dict", "default": {}, "no_log": True},
    }
    RULES: ClassVar[dict[str, Any]] = {"required_if": [("state", "present", ("release_image", "pull_secret", "node_requests"))]}

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
