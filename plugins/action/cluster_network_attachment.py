# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Attach the virtual machines of a cluster to a VLAN on the hub. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.errors import SiteMistake
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.network_attachments import (
    KIND,
    attachment_name,
    attachment_reference,
    network_attachment,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.modules import cluster_network_attachment
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_network_attachment.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_network_attachment.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        namespace, name = parameters["attachment_namespace"], attachment_name(subject.lock_namespace, subject.lock_name)
        reference = attachment_reference(name, namespace)
        with self.changing(subject, parameters) as provider:
            if parameters["state"] == "absent":
                provider.changes += provider.writer.delete([reference])
            else:
                owner = subject.ref.kube.find("v1", "Namespace", subject.ref.namespace)
                wanted = network_attachment(reference, parameters["bridge"], parameters["vlan"], subject.ref.labels, owner)
                try:
                    provider.changes += provider.writer.apply([wanted])
                except NotFound as error:
                    raise SiteMistake(f"The hub has no kind {KIND}, or no namespace {namespace}: {error}", ["bridge"]) from error
            return self.result(provider) | {"network": f"{namespace}/{name}"}
