# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lock, validate and prepare the orders of a run, all in one task. Documented in the module of the same name."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import ORDERS, Spec, connection
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import SiteSettings, read_site_settings
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.renewer import Renewer, RenewerFailed
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.run_process import RunProcess
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Job
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.pending import orders_needing
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.prepare import (
    ENTRIES,
    Preparation,
    PreparedOrder,
    Roles,
    SkippedOrder,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import NoSuchSelection, OrderName, event_of, named, uids
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_prepare
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction
from ansible_collections.openfleet.clusters.plugins.plugin_utils.preload import preload
from ansible_collections.openfleet.clusters.plugins.plugin_utils.role_check import RoleCheck

preload()  # here, as this is the first task of a run, and its file is loaded by Ansible's own process


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_prepare.SPEC

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        limit = str((task_vars or {}).get("ansible_limit") or "all")
        if not {"all", "*", "cluster_orders"}.intersection(limit.replace(":", ",").split(",")):
            # Their templates would be skipped without a message, and the run would end as a success.
            return {"failed": True, "msg": f"The limit {limit} leaves out the hosts that orders become; give none, or add cluster_orders."}
        return super().run(tmp, task_vars)

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names, step = Names.of(parameters), parameters["step"]
        try:
            event = event_of(self.variables)
            chosen, expected = named(parameters["name"], parameters["namespace"], parameters["orders"], None), uids(event)
            by_event = not chosen
            chosen = chosen or named(None, None, [], event)
        except NoSuchSelection as error:
            return {"failed": True, "msg": str(error)}
        if not chosen:
            needing = orders_needing(kube, names, step)
            chosen = [OrderName(order.namespace, order.name) for order in needing]
        process = RunProcess.of_worker()
        # Before a lock is taken: a run that cannot renew its locks takes none. The process starts while the first
        # orders are prepared.
        with contextlib.ExitStack() as stack:
            renewer: Renewer | None = None
            if chosen and not self.check_mode:
                renewer = stack.enter_context(Renewer(connection(parameters), process, parameters["run_timeout"], ends_run=True))
            prepared, skipped = self._prepare(kube, parameters, chosen, expected, process, renewer, by_event=by_event)
        for order in skipped:
            self._display.display(f"skipped {order.namespace}/{order.name}: {order.message}")
        return {
            "changed": any(change.changed for order in prepared for change in order.changes),
            "orders": [_variables(order, parameters) for order in prepared],
            "skipped_orders": [vars(order) for order in skipped],
            # The parameters of a template hold secrets.
            "_ansible_no_log": bool(prepared),
        }

    def _prepare(
        self,
        kube: Kube,
        parameters: dict[str, Any],
        chosen: list[OrderName],
        expected: dict[OrderName, str],
        process: RunProcess,
        renewer: Renewer | None,
        *,
        by_event: bool,
    ) -> tuple[list[PreparedOrder], list[SkippedOrder]]:
        step, job = parameters["step"], parameters["job_id"] or f"local-{process.pid}"
        run = Run(kube, Names.of(parameters), find_templates(AnsibleCollectionConfig.collection_paths), self.check_mode)
        hooks = parameters["hooks"]
        roles = Roles(_hooks(hooks, ENTRIES[step]), RoleCheck(self._loader).problem, bool(_hooks(hooks, ENTRIES["post_install"])))
        job_url = parameters["job_url"] or _url_on_platform(parameters["job_id"])
        preparation = Preparation(run, step, Job(job, job_url), roles, renewer, _site_settings(run, step) if chosen else None)
        identity = f"{job}-{secrets.token_hex(4)}"

        def prepare(order: OrderName) -> PreparedOrder | SkippedOrder:
            holder, uid = f"{order.name}-{identity}", expected.get(order, "")
            return preparation.prepare(order.namespace, order.name, holder, parameters["wait_timeout"], uid, by_event=by_event)

        prepared: list[PreparedOrder] = []
        skipped: list[SkippedOrder] = []
        for order, result in zip(chosen, kube.in_parallel(prepare, chosen), strict=True):
            if isinstance(result, PreparedOrder):
                prepared.append(result)
            elif isinstance(result, KubeError):
                skipped.append(SkippedOrder(order.namespace, order.name, type(result).__name__, str(result), failed=True))
            else:
                skipped.append(result)
        try:
            if renewer:
                renewer.confirm()
        except RenewerFailed as error:
            skipped += [preparation.reject(order.order, order.lock, error) for order in prepared]
            prepared = []
        run.events.flush()
        return prepared, skipped


def _site_settings(run: Run, step: str) -> SiteSettings | KubeError:
    try:
        return read_site_settings(run.kube, run.names.site_namespace, secrets=step != "delete")
    except KubeError as error:
        return error


def _url_on_platform(job_id: str | None) -> str:
    """The page of this job on Automation Platform, which passes its address to each job."""
    platform = os.environ.get("AWX_HOST", "").rstrip("/")
    return f"{platform}/#/jobs/{job_id}/details" if platform and job_id else ""


def _hooks(hooks: dict[str, Any], entry: str) -> list[str]:
    """The roles around this entry point of a template."""
    given = [hooks.get(f"{when}_{entry}") or [] for when in ("pre", "post")]
    return [str(role) for roles in given for role in (roles if isinstance(roles, list) else [roles])]


def _variables(prepared: PreparedOrder, parameters: dict[str, Any]) -> dict[str, Any]:
    """The variables that a template gets, on the order's own host."""
    order = prepared.order
    # Ansible walks through every value of a variable with each task; no task reads `managedFields`, which has most of
    # them.
    metadata = {name: value for name, value in order.raw["metadata"].items() if name != "managedFields"}
    return {
        "cluster_host": f"{order.namespace}/{order.name}",
        "cluster_order": order.raw | {"metadata": metadata},
        "cluster_working_namespace": order.working_namespace,
        "cluster_template_role": prepared.checked.role,
        "cluster_provider": prepared.provider,
        "cluster_template_has_post_install": prepared.has_post_install,
        "cluster_kubeconfig": prepared.kubeconfig,
        "template_parameters": prepared.checked.parameters,
        "node_requests": [
            {"resourceClass": item.resource_class, "numberOfNodes": item.number_of_nodes} for item in prepared.checked.node_requests
        ],
        "cluster_site": prepared.site.as_variable(),
        "cluster_lock": prepared.lock.as_dict(),
        "cluster_arguments": {name: parameters[name] for name in ORDERS} | {"provider": prepared.provider, "lock": prepared.lock.as_dict()},
        "cluster_job": prepared.job.to_status() if prepared.job else None,
    }
