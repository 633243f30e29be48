# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Acquire or release the locks of orders. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec, connection
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import Renewer
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunProcess, run_identity
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, named
from ansible_collections.openfleet.clusters.plugins.modules import cluster_lock
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction

SHORTEST = 3


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_lock.SPEC
    _host = ""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._host = str((task_vars or {}).get("inventory_hostname", ""))
        return super().run(tmp, task_vars)

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            orders = sorted(named(parameters["name"], parameters["namespace"], parameters["orders"], None))
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}
        if not orders:
            return {"failed": True, "msg": "No order is named: give name and namespace, or orders."}
        if parameters["duration"] < SHORTEST:
            return {"failed": True, "msg": f"duration is {parameters['duration']}; a lock lasts {SHORTEST} seconds at least."}
        run = RunProcess.of_worker()
        holder = parameters["holder"] or run_identity(run.pid, self._host)
        if parameters["state"] == "released":
            return {"holder": holder} | self._release(kube, orders, holder, parameters["site_namespace"])
        changed, locks = self._acquire(kube, orders, holder, parameters, run)
        held = [lock.as_dict() for lock in locks]
        answer = {"changed": changed, "holder": holder, "locks": held}
        return answer | ({"lock": held[0], "token": held[0]["token"]} if len(held) == 1 else {})

    def _acquire(
        self, kube: Kube, orders: list[OrderName], holder: str, parameters: dict[str, Any], run: RunProcess
    ) -> tuple[bool, list[lease.Lock]]:
        site = parameters["site_namespace"]
        before = [lease.read(kube, *order, site=site) for order in orders]
        changed = any(state.holder != holder for state in before)
        duration, timeout = parameters["duration"], parameters["wait_timeout"]
        if self.check_mode:
            return changed, [lease.predict(state, holder, duration, kube.server_time(), timeout) for state in before]
        # A lock that a holder of this run's own making has already is renewed already; a holder that was given may be
        # of another run.
        if not changed and not parameters["holder"]:
            return changed, lease.acquire_all(kube, orders, holder, duration, timeout, site, run.require)
        with Renewer(connection(parameters), run) as renewer:
            return changed, lease.acquire_all(kube, orders, holder, duration, timeout, site, run.require, renewer.keep_all)

    def _release(self, kube: Kube, orders: list[OrderName], holder: str, site: str) -> dict[str, Any]:
        if self.check_mode:
            released = [order for order in orders if lease.read(kube, *order, site=site).holder == holder]
        else:
            released = [order for order in orders if lease.release_held(kube, *order, holder, site)]
        return {"changed": bool(released), "released": ["/".join(order) for order in released]}
