# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Allocate entries of AddressPools to a cluster, or release them. Documented in the module of the same name."""

from __future__ import annotations

from typing import Any, ClassVar

from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import Spec
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.address_pools import (
    KIND,
    AddressPools,
    PoolChange,
    PoolRequest,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.modules import cluster_addresses
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    SPEC: ClassVar[Spec] = cluster_addresses.SPEC
    RULES: ClassVar[dict[str, Any]] = cluster_addresses.RULES

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        pools, disjoint_from = parameters["pools"], parameters["disjoint_from"]
        requests = [PoolRequest.of(pool["name"], pool["count"], disjoint_from) for pool in pools]
        with self.changing(subject, parameters) as provider:
            available = AddressPools(subject.ref.kube, subject.names.site_namespace, provider.writer, self.check_mode)
            if parameters["state"] == "present":
                changes = available.allocate(subject.owner, requests)
                return _result(changes) | {"addresses": {change.pool: list(change.after) for change in changes}}
            changes = available.release(subject.owner, [pool["name"] for pool in pools] or None)
            return _result(changes) | {"addresses": {change.pool: list(change.before) for change in changes}}


def _result(changes: list[PoolChange]) -> dict[str, Any]:
    changed = [change for change in changes if change.action != "unchanged"]
    objects = [{"kind": KIND, "name": change.pool, "action": change.action} for change in changes]
    return {"changed": bool(changed), "objects": objects, "diff": [change.diff for change in changed]}
