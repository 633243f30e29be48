# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Move orders to a release in waves. Documented in the module of the same name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import read_site_settings
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import tenant as order_tenant
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, named
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.upgrade import Selection, Upgrade, Waves, stopped
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.upgrade_plan import Plan, Release
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_upgrade
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_upgrade.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names = Names.of(parameters)
        try:
            selection = _selection(parameters)
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}
        if parameters["canary"] < 0 or parameters["degraded_after"] < 0:
            return {"failed": True, "msg": "canary and degraded_after must not be negative."}
        upgrade = Upgrade(
            kube,
            names,
            find_templates(AnsibleCollectionConfig.collection_paths),
            read_site_settings(kube, names.site_namespace),
            selection,
            Release(parameters["parameter"], parameters["release"]),
            Waves(parameters["canary"], parameters["max_unavailable"], timedelta(seconds=parameters["degraded_after"])),
            self.check_mode,
        )
        plan = upgrade.advance(parameters["wait_timeout"])
        result = self._result(upgrade, plan)
        return result | self.failure(stopped(plan)) if plan.is_stopped else result

    def _result(self, upgrade: Upgrade, plan: Plan) -> dict[str, Any]:
        changed = bool(plan.next_wave) if self.check_mode else bool(upgrade.changes)
        warnings = {"warnings": [f"skipped an order: {problem}" for problem in upgrade.problems]} if upgrade.problems else {}
        orders = [
            {"namespace": found.order.namespace, "name": found.order.name, "state": found.state, "message": found.message}
            for found in plan.members
        ]
        return warnings | {
            "changed": changed,
            "complete": plan.is_complete,
            "orders": orders,
            "waves": [[found.name for found in wave] for wave in plan.waves],
            "report": plan.report(),
            "diff": [order_tenant.diff(change) for change in upgrade.changes],
        }


def _selection(parameters: dict[str, Any]) -> Selection:
    orders: set[OrderName] | None = None
    if parameters["orders"] is not None:
        orders = set(named(None, None, parameters["orders"], None))
        if not orders:
            raise NoSuchSelection("The list of orders is empty: name at least one, or select orders by template, label or phase.")
    elif not any(parameters[criterion] for criterion in ("templates", "label_selectors", "phases")):
        # Also one that is set to nothing, as a survey may set it, must not select every order of the hub.
        raise NoSuchSelection("Select the orders: by templates, label_selectors, phases or orders.")
    return Selection(
        templates=parameters["templates"],
        label_selector=",".join(parameters["label_selectors"] or ()),
        orders=orders,
        phases=tuple(parameters["phases"] or ("Ready",)),
    )
