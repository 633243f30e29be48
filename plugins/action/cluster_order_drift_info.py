# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compare files of orders with a hub and its clusters. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import FORGE, KUBERNETES, ORDERS, Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.drift import HubOrder, covered_namespaces, find_drift
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.forge.base import ForgeError
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import tenant as order_tenant
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_drift_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction
from ansible_collections.openfleet.clusters.plugins.plugin_utils.forge_action import forge_from


class ActionModule(ControllerAction):
    SHARED: ClassVar[Spec] = KUBERNETES | ORDERS | FORGE
    SPEC: ClassVar[Spec] = cluster_order_drift_info.SPEC
    ERRORS: ClassVar[tuple[type[Exception], ...]] = (ForgeError, KubeError)

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names, forge, folder, ref = Names.of(parameters), forge_from(parameters), parameters["path"], parameters["base_branch"]
        paths = [path for path in forge.files(folder, ref) if path.endswith((".yaml", ".yml"))]
        namespaces = set(parameters["namespaces"] or covered_namespaces(paths, folder))
        wanted = [path for path in paths if path.removeprefix(f"{folder}/").split("/")[0] in namespaces]
        files = {path: file.content for path in wanted if (file := forge.file(path, ref))}
        orders: list[HubOrder] = []
        warnings: list[str] = []
        for namespace in sorted(namespaces):
            found, problems = order_tenant.find_all(kube, names, None, namespace, "")
            orders += [HubOrder(order.raw, tuple(_of_cluster(order))) for order in found]
            warnings += [f"skipped an order: {problem}" for problem in problems]
        drift = [entry.as_dict() for entry in find_drift(files, folder, orders)]
        result = {"changed": False, "in_sync": all(entry["in_sync"] for entry in drift), "orders": drift}
        return result | ({"warnings": warnings} if warnings else {})


def _of_cluster(order: ClusterOrder) -> list[str]:
    """What the cluster lacks of its order, as the status reports it."""
    if order.is_deleting:
        return ["The order is being deleted."]
    lacks = [] if order.is_applied else ["The current spec of the order is not applied to the cluster yet."]
    open_conditions = [
        item for item in order.status.get("conditions", []) if item.get("type") != "Deleting" and item.get("status") != "True"
    ]
    return lacks + [f"{item['type']}: {item.get('message') or item.get('reason')}" for item in open_conditions]
