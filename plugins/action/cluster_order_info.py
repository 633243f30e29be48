# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read orders. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import tenant as order_tenant
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.orphans import read_orphans
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.pending import next_actions
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_info.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_order_info.RULES

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names, phases = Names.of(parameters), parameters["phases"]
        selectors = ",".join(parameters["label_selectors"])
        found, problems = order_tenant.find_all(kube, names, parameters["name"], parameters["namespace"], selectors)
        orders = [order for order in found if phases is None or order.phase in phases]
        shown = [order_tenant.shown(order) for order in orders]
        actions = next_actions(kube, names, orders)
        if actions is not None:
            known = [{} if isinstance(action, KubeError) else {"next_action": action} for action in actions]
            shown = [order | action for order, action in zip(shown, known, strict=True)]
        warnings = {"warnings": [f"skipped an order: {problem}" for problem in problems]} if problems else {}
        shown.sort(key=lambda order: (order["metadata"]["namespace"], order["metadata"]["name"]))
        orphans = {"orphans": [orphan.shown() for orphan in read_orphans(kube, names)]} if parameters["orphans"] else {}
        return warnings | orphans | {"changed": False, "orders": shown}
