# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Update the status of orders to the state of their clusters, all in one task. Documented in the module of the same name."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.gitops import used_by
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.gitops_observer import observe_gitops
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.lost_hosts import lost_hosts
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import OBSERVE_SECONDS, ListView
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, event_of, named
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status_writer import StatusWriter
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_status
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_status.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            chosen = named(parameters["name"], parameters["namespace"], parameters["orders"], event_of(self.variables))
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}
        names = Names.of(parameters)
        run = Run(kube, names, check_mode=self.check_mode)
        status, view = StatusWriter(run), ListView(kube, names)
        observed = dict(zip(map(_key, view.orders), view.observe_all(), strict=True))
        orders = [order for order in view.orders if not chosen or _key(order) in chosen]
        missing = _lost_hosts(kube, names, orders)
        ends = time.monotonic() + OBSERVE_SECONDS
        locks = {(lock.namespace, lock.order): lock for lock in lease.read_all(kube, names.site_namespace)}

        def sync(order: ClusterOrder) -> dict[str, Any]:
            state = observed[_key(order)]
            if isinstance(state, KubeError):
                raise state
            if used_by(order) and not order.is_deleting and time.monotonic() < ends:
                state = replace(state, gitops=observe_gitops(kube, order))
            unmanaged = order.management_state == "unmanaged"
            after = order if unmanaged else status.sync(order, state, locks.get(_key(order)), report=missing.get(order.uid))
            return {"namespace": order.namespace, "name": order.name, "phase": after.phase, "changed": after.status != order.status}

        results = kube.in_parallel(sync, orders)
        run.events.flush()
        problems = [
            f"{order.namespace}/{order.name}: {result}"
            for order, result in zip(orders, results, strict=True)
            if isinstance(result, KubeError) and not isinstance(result, NotFound)  # an order that was deleted meanwhile is current
        ]
        problems += [] if chosen else view.problems
        reports = [result for result in results if isinstance(result, dict)]
        answer = {"changed": any(entry["changed"] for entry in reports), "orders": reports}
        return answer | {"failed": True, "msg": " ".join(problems)} if problems else answer


def _lost_hosts(kube: Kube, names: Names, orders: list[ClusterOrder]) -> dict[str, Outcome]:
    try:
        return lost_hosts(kube, names, orders)
    except KubeError:  # reported by every run; the status of the orders is worth more
        return {}


def _key(order: ClusterOrder) -> OrderName:
    return OrderName(order.namespace, order.name)
