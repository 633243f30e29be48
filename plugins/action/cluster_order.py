# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create, update or delete an order, as its tenant. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import tenant as order_tenant
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        return self._delete(kube, parameters) if parameters["state"] == "absent" else self._apply(kube, parameters)

    def _apply(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names = Names.of(parameters)
        wanted = order_tenant.DesiredOrder(
            parameters["namespace"],
            parameters["name"],
            parameters["template_id"],
            parameters["template_parameters"],
            parameters["node_requests"],
            _strings(parameters["labels"]),
            _strings(parameters["annotations"]),
        )
        change = order_tenant.apply(kube, names, wanted, force=parameters["force"], check_mode=self.check_mode)
        order = ClusterOrder.from_object(change.item, names)
        result = {"changed": change.changed, "order": order_tenant.shown(order)}
        if change.changed:
            result["diff"] = order_tenant.diff(change)
        if parameters["wait"] and not self.check_mode:
            try:
                order = order_tenant.wait_until_ready(kube, names, order.namespace, order.name, parameters["wait_timeout"])
            except KubeError as error:
                return result | self.failure(error)
        return result | {"order": order_tenant.shown(order)}

    def _delete(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names, namespace, name = Names.of(parameters), parameters["namespace"], parameters["name"]
        change = order_tenant.delete(kube, names, namespace, name, check_mode=self.check_mode)
        if change is None:
            return {"changed": False}
        result: dict[str, Any] = {"changed": change.changed}
        if change.changed:
            result["diff"] = order_tenant.diff(change)
        if parameters["wait"] and not self.check_mode:
            uid = change.item["metadata"]["uid"]
            try:
                order_tenant.wait_until_deleted(kube, names, namespace, name, uid, parameters["wait_timeout"])
            except KubeError as error:
                return result | self.failure(error)
        return result


def _strings(values: dict[str, Any] | None) -> dict[str, str] | None:
    """Values of labels and annotations are strings, also if YAML parses a number."""
    return None if values is None else {str(name): str(value) for name, value in values.items()}
