# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Claim and release bare-metal hosts for a cluster. Documented in the module of the same name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.agent_hosts import (
    AgentInventory,
    AgentLabels,
    NoInventory,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.claim_record import ClaimRecord
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.host_claims import HostClaims, Inventory, shown
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.listed_hosts import ListedInventory, listed_host
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import label_value
from ansible_collections.openfleet.clusters.plugins.modules import cluster_hosts
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_hosts.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_hosts.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        wanted: dict[str, int] = {}
        for request in parameters["node_requests"]:
            if request["numberOfNodes"] < 0:
                return {"failed": True, "msg": f"numberOfNodes of the class {request['resourceClass']} is negative: set 0 or more."}
            wanted[request["resourceClass"]] = wanted.get(request["resourceClass"], 0) + request["numberOfNodes"]
        with self.changing(subject, parameters) as provider:
            inventory = self._inventory(subject, parameters, provider.writer, wanted)
            record = ClaimRecord(subject.ref.kube, subject.names.site_namespace, inventory.name)
            claims = HostClaims(record, inventory, subject.owner, provider.writer, self.check_mode)
            result = claims.absent() if parameters["state"] == "absent" else claims.present(wanted)
        selectors = {name: inventory.selector(name) for name in result.after} if isinstance(inventory, AgentInventory) else {}
        return {
            **shown(result),
            "changed": bool(inventory.changes) or result.before != result.after,
            "node_platforms": {name: {"agent": {"agentLabelSelector": selector}} for name, selector in selectors.items()},
        }

    def _inventory(self, subject: TaskCluster, parameters: dict[str, Any], writer: FencedWriter, wanted: Mapping[str, int]) -> Inventory:
        if parameters["inventory"]:
            return ListedInventory(parameters["inventory"], [listed_host(item) for item in parameters["hosts"]])
        if not parameters["agent_namespace"]:
            raise NoInventory
        labels = AgentLabels(subject.names.group, parameters["failure_domain_label"])
        return AgentInventory(
            subject.ref.kube,
            parameters["agent_namespace"],
            label_value(subject.owner.key),
            subject.ref.name,
            labels,
            _class_labels(parameters["classes"], wanted, labels.resource_class),
            dict(subject.ref.labels),
            writer,
            parameters["require_clean"],
            self.check_mode,
        )


def _class_labels(classes: Mapping[str, Any], wanted: Iterable[str], label: str) -> dict[str, dict[str, str]]:
    """The labels of the hosts of each class: those of the site's settings, or the name of the class."""
    if not classes:
        return {name: {label: name} for name in wanted}
    of_hosts = {name: settings or {} for name, settings in classes.items() if (settings or {}).get("kind", "agent") == "agent"}
    return {name: settings.get("labels") or {label: name} for name, settings in of_hosts.items()}
