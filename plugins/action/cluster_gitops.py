# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Install Flux in a cluster and report what it reports. Documented in the module of the same name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.step import GitOpsOptions, GitOpsOwner, GitOpsStep
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.gitops_observer import profiles_of
from ansible_collections.openfleet.clusters.plugins.modules import cluster_gitops
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_gitops.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_gitops.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        options = GitOpsOptions.of(parameters)
        with self.changing(subject, parameters) as provider:
            step = GitOpsStep(provider, subject.recorded, _owner(subject), options)
            if parameters["state"] == "absent":
                part = step.remove()
                return self.result(provider) | {"part": part.as_dict()}
            part, conditions = step.apply()
            states = {kind: asdict(state) for kind, state in conditions.items()}
            return self.result(provider) | {"part": part.as_dict(), "conditions": states}


def _owner(subject: TaskCluster) -> GitOpsOwner:
    order, site = subject.order, subject.names.site_namespace
    if order is None:
        return GitOpsOwner(subject.ref.namespace, site)
    return GitOpsOwner(order.namespace, site, order.uid, profiles_of(order), order.is_deleting)
