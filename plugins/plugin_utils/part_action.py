# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The base of actions for one part of a cluster's infrastructure: applies or removes it, and returns whether it is ready."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_parts import NOT_YET, not_yet
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.part_state import PartState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.cluster import TaskCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster
from ansible_collections.openfleet.clusters.plugins.plugin_utils.cluster_action import ClusterAction


class PartAction(ClusterAction):
    """A part that the cluster cannot have yet is no failure: the result says so, and a later run applies it."""

    @abstractmethod
    def apply(self, provider: Provider, cluster: ObservedCluster, parameters: dict[str, Any]) -> tuple[PartState, dict[str, Any]]:
        """Apply the part. Returns its state, and more for the result."""

    @abstractmethod
    def remove(self, provider: Provider, cluster: ObservedCluster) -> bool:
        """Remove the part; True once nothing of it is left."""

    def work_on(self, subject: TaskCluster, parameters: dict[str, Any]) -> dict[str, Any]:
        with self.changing(subject, parameters) as provider:
            cluster, more = provider.status(subject.recorded), {}
            try:
                if parameters["state"] == "absent":
                    part = self._removed(provider, cluster)
                else:
                    part, more = self.apply(provider, cluster, parameters)
            except NOT_YET as error:
                part = not_yet(error)
            return self.result(provider) | more | {"part": part.as_dict()}

    def _removed(self, provider: Provider, cluster: ObservedCluster) -> PartState:
        # Without a cluster there is nothing in it.
        if not cluster.exists or self.remove(provider, cluster):
            return PartState(True, "Removed")
        return PartState(False, "Removing", "Some objects still exist in the cluster")
