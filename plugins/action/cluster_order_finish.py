# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Finish the orders of a run: write their status and release their locks. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid, KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.finish import Finalization, RunResult
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.infrastructure import reports_from
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, Names, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Job, Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import NotSupported
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.modules import cluster_order_finish
from ansible_collections.openfleet.clusters.plugins.plugin_utils.controller_action import ControllerAction

INVALID_ORDER = {Invalid.__name__, NotSupported.__name__}


class ActionModule(ControllerAction):
    SPEC: ClassVar[Spec] = cluster_order_finish.SPEC

    def work(self, kube: Kube, parameters: dict[str, Any]) -> dict[str, Any]:
        names = Names.of(parameters)
        run = Run(kube, names, find_templates(AnsibleCollectionConfig.collection_paths), self.check_mode)

        def result(variables: dict[str, Any]) -> RunResult:
            order = ClusterOrder.from_object(variables["cluster_order"], names)
            return RunResult(order, Lock(**variables["cluster_lock"]), _outcome(parameters, order, variables))

        read = kube.in_parallel(result, parameters["orders"])
        results = [entry for entry in read if isinstance(entry, RunResult)]
        finished = Finalization(run).finish(results, parameters["wait_timeout"])
        problems = [str(entry) for entry in (*read, *finished) if isinstance(entry, KubeError)]
        if problems:
            return {"failed": True, "msg": " ".join(problems)}
        reports = [
            _report(before.order, after) for before, after in zip(results, finished, strict=True) if not isinstance(after, KubeError)
        ]
        answer = {"changed": any(entry["changed"] for entry in reports), "orders": reports}
        if unprepared := [order["message"] for order in parameters["skipped_orders"] if order["failed"]]:
            return answer | {"failed": True, "msg": " ".join(unprepared)}
        if parameters["failure"]:
            return answer | {"failed": True, "msg": f"{parameters['failure']['task']}: {parameters['failure']['error']}"}
        return answer


def _report(before: ClusterOrder, after: ClusterOrder | None) -> dict[str, Any]:
    return {
        "namespace": before.namespace,
        "name": before.name,
        "phase": after.phase if after else "Deleted",
        "changed": after is None or after.status != before.status,
    }


def _outcome(parameters: dict[str, Any], order: ClusterOrder, variables: dict[str, Any]) -> Outcome:
    requests = tuple(NodeRequest(item["resourceClass"], item["numberOfNodes"]) for item in variables["node_requests"])
    failure, job = parameters["failure"], variables.get("cluster_job")
    return Outcome(
        parameters["step"],
        config_version(order),
        accepted=True,
        finished=failure is None,
        template_applied=parameters["step"] == "post_install" or not variables["cluster_template_has_post_install"],
        node_requests=requests,
        failure=_failure(parameters["step"], **failure) if failure else None,
        job=Job.from_status(job) if job else None,
        infrastructure=reports_from(parameters["infrastructure"].get(f"{order.namespace}/{order.name}") or {}),
    )


def _failure(step: str, task: str, error: Any, reason: str | None) -> Failure:
    """An error that only a change of the order fixes is not retried; the site fixes all others, or they pass. A deletion always goes on."""
    return Failure(reason or "TaskFailed", str(error), task, retryable=step == "delete" or reason not in INVALID_ORDER)
