# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The clusters of a ClusterRegistry, with the health of their last check. It sends no request to a cluster."""

from __future__ import annotations

from ...kube.client import Kube
from ...registry.model import ClusterRegistry
from ..dr_clusters import Fence, read_fences
from ..interfaces import Cluster

NOT_CHECKED = "NotChecked"


class DirectDirectory:
    """ClusterDirectory over a registry and the DRClusters beside it."""

    def __init__(self, kube: Kube, registry: ClusterRegistry) -> None:
        self._kube = kube
        self._registry = registry

    def clusters(self) -> list[Cluster]:
        fences = read_fences(self._kube)
        clusters = []
        for entry in self._registry.clusters:
            fence, health = fences.get(entry.name, Fence()), self._registry.health.get(entry.name)
            clusters.append(
                Cluster(
                    entry.name,
                    entry.region or fence.region,
                    healthy=health.healthy if health else None,
                    reason=health.reason if health else NOT_CHECKED,
                    fenced=fence.fenced,
                    fence_requested=fence.requested,
                )
            )
        return clusters
