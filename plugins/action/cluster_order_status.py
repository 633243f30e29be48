# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bring the status of orders up to date with their clusters, of all in one task. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.fulfillment import Fulfillment
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, event_of, named
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.snapshot import Snapshot
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_status
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_status.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            chosen = named(parameters["name"], parameters["namespace"], parameters["orders"], event_of(self.variables))
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}
        names = Names(parameters["api_group"])
        hub = Snapshot(kube, names)
        orders = [order for order in hub.orders if not chosen or (order.namespace, order.name) in chosen]
        run = Fulfillment(kube, names, {}, check_mode=self.check_mode, external_controller=parameters["controller"] == "external")
        places = {order.namespace for order in orders}
        locks = {(lock.namespace, lock.order): lock for lock in lease.read_all(kube, *(places if len(places) == 1 else ()))}

        def sync(order: ClusterOrder) -> dict[str, Any]:
            lock = locks.get((order.namespace, order.name))
            after = order if order.management_state == "unmanaged" else run.sync(order, hub.world(order), lock)
            return {"namespace": order.namespace, "name": order.name, "phase": after.phase, "changed": after.status != order.status}

        results = kube.in_parallel(sync, orders)
        problems = [
            f"{order.namespace}/{order.name}: {result}"
            for order, result in zip(orders, results, strict=True)
            if isinstance(result, KubeError) and not isinstance(result, NotFound)  # an order that is gone meanwhile is up to date
        ]
        reports = [result for result in results if isinstance(result, dict)]
        answer = {"changed": any(entry["changed"] for entry in reports), "orders": reports}
        return answer | {"failed": True, "msg": " ".join(problems)} if problems else answer
