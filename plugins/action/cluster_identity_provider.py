# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Add, update or remove an identity provider of a cluster. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.secret_references import referenced
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import IdentityProvider, ObservedCluster
from ansible_collections.openfleet.clusters.plugins.modules import cluster_identity_provider
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_identity_provider.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_identity_provider.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        name = parameters["identity_provider"]
        if parameters["state"] == "absent":
            return self.change(subject, parameters, lambda provider, cluster: _remove(provider, cluster, name))
        namespace = subject.order.namespace if subject.order else subject.ref.namespace
        secrets = parameters["secrets"] | referenced(subject.ref.kube, namespace, parameters["secret_refs"])
        wanted = IdentityProvider(name, parameters["type"], parameters["settings"], secrets)
        return self.change(subject, parameters, lambda provider, cluster: provider.add_identity_provider(cluster, wanted))


def _remove(provider: Provider, cluster: ObservedCluster, name: str) -> None:
    # A cluster that does not exist has none.
    if cluster.exists:
        provider.remove_identity_provider(cluster, name)
