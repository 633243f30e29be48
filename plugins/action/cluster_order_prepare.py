# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Take up the orders of a run, all in one task. Documented in the module of the same name."""

from __future__ import annotations

import os
import secrets
from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec, connection
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import start
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.fulfillment import ENTRIES, Fulfillment, LeftAlone, TakenUp
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names, working_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, event_of, named, uids
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.snapshot import Snapshot
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status import Job
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_prepare
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction
from ansible_collections.openfleet.clusters.plugins.plugin_utils.role_check import RoleCheck


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_prepare.SPEC

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        limit = str((task_vars or {}).get("ansible_limit") or "all")
        if not {"all", "*", "cluster_orders"}.intersection(limit.replace(":", ",").split(",")):
            # Their templates would be skipped in silence, and the run would end as if all had gone well.
            return {"failed": True, "msg": f"The limit {limit} leaves out the hosts that orders become; give none, or add cluster_orders."}
        return super().run(tmp, task_vars)

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names, step = Names(parameters["api_group"]), parameters["step"]
        try:
            event = event_of(self.variables)
            chosen, expected = named(parameters["name"], parameters["namespace"], parameters["orders"], event), uids(event)
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}
        if not chosen:
            chosen = [OrderName(order.namespace, order.name) for order in Snapshot(kube, names).needing(step)]
        job = parameters["job_id"] or f"local-{os.getppid()}"
        job_url = parameters["job_url"] or _url_on_platform(parameters["job_id"])
        templates = find_templates(AnsibleCollectionConfig.collection_paths)
        roles = RoleCheck(self._loader)
        external = parameters["controller"] == "external"
        hooks = _hooks(parameters["hooks"], ENTRIES[step])
        run = Fulfillment(kube, names, templates, Job(job, job_url), self.check_mode, roles.problem, hooks, external)
        identity = f"{job}-{secrets.token_hex(4)}"

        patience = parameters["wait_timeout"]

        def take_up(order: OrderName) -> TakenUp | LeftAlone:
            holder, uid = f"{order.name}-{identity}", expected.get(order, "")
            result = run.take_up(order.namespace, order.name, step, holder, patience, uid)
            if patience and isinstance(result, TakenUp):
                self._renew([result], parameters)  # its lock would run out while others are waited for
            return result

        taken: list[TakenUp] = []
        left: list[LeftAlone] = []
        for order, result in zip(chosen, kube.in_parallel(take_up, chosen), strict=True):
            if isinstance(result, TakenUp):
                taken.append(result)
            elif isinstance(result, KubeError):
                left.append(LeftAlone(order.namespace, order.name, type(result).__name__, str(result), failed=True))
            else:
                left.append(result)
        if not patience:
            self._renew(taken, parameters)
        changed = any(change.changed for order in taken for change in order.changes)
        return {
            "changed": changed,
            "orders": [_variables(order) for order in taken],
            "left_alone": [vars(order) for order in left],
            # The parameters of a template hold secrets.
            "_ansible_no_log": bool(taken),
        }

    def _renew(self, taken: list[TakenUp], parameters: dict[str, Any]) -> None:
        locks = [order.lock for order in taken if order.lock.has_lease]
        if locks and not self.check_mode:
            # The parent of this worker is the run itself.
            start(connection(parameters), locks, os.getppid())


def _url_on_platform(job_id: str | None) -> str:
    """Where Automation Platform, which tells its address to each job, shows this one."""
    platform = os.environ.get("AWX_HOST", "").rstrip("/")
    return f"{platform}/#/jobs/{job_id}/details" if platform and job_id else ""


def _hooks(hooks: dict[str, Any], entry: str) -> list[str]:
    """The roles around this entry point of a template."""
    given = [hooks.get(f"{when}_{entry}") or [] for when in ("pre", "post")]
    return [str(role) for roles in given for role in (roles if isinstance(roles, list) else [roles])]


def _variables(taken: TakenUp) -> dict[str, Any]:
    """What a template is given, as variables of the order's own host."""
    order = taken.order
    return {
        "cluster_order": order.raw,
        "cluster_working_namespace": working_namespace(order.namespace, order.name),
        "cluster_template_role": taken.checked.role,
        "cluster_provider": taken.provider,
        "cluster_template_has_post_install": taken.has_post_install,
        "cluster_kubeconfig": taken.kubeconfig,
        "template_parameters": taken.checked.parameters,
        "node_requests": [
            {"resourceClass": item.resource_class, "numberOfNodes": item.number_of_nodes} for item in taken.checked.node_requests
        ],
        "cluster_lock": taken.lock.as_dict(),
        "cluster_job": taken.job.to_status() if taken.job else None,
    }
