# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read the locks of orders. Documented in the module of the same name."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, named
from ansible_collections.openfleet.clusters.plugins.modules import cluster_lock_info
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_lock_info.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            # A namespace alone is allowed here: it asks for all locks in it.
            namespace = parameters["namespace"] if parameters["name"] else None
            chosen = named(parameters["name"], namespace, parameters["orders"], None)
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}

        def read(order: OrderName) -> lease.LockState:
            return lease.read(kube, *order, site=parameters["site_namespace"])

        states: list[lease.LockState] = []
        for result in kube.in_parallel(read, chosen) if chosen else lease.read_all(kube, parameters["site_namespace"]):
            if isinstance(result, Exception):
                raise result
            if chosen or parameters["namespace"] in (None, result.namespace):
                states.append(result)
        now = kube.server_time()
        return {"changed": False, "locks": [_shown(state, now) for state in states]}


def _shown(state: lease.LockState, now: datetime | None) -> dict[str, Any]:
    expires = state.expires()
    return {
        "namespace": state.namespace,
        "order": state.order,
        "free": state.is_free(now),
        "holder": state.holder,
        "token": state.token,
        "duration": state.duration,
        "acquired": state.acquired,
        "renewed": state.renewed.isoformat() if state.renewed else None,
        "expires": expires.isoformat() if expires else None,
    }
