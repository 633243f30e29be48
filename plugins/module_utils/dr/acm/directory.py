# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The managed clusters of a hub, with the availability that their agents report."""

from __future__ import annotations

from ...common.types import Object
from ...kube.client import Kube
from ..dr_clusters import Fence, read_fences
from ..interfaces import Cluster
from ..kinds import MANAGED_CLUSTER, VERSIONS
from .views import AVAILABLE, condition

REGION_CLAIM = "region.open-cluster-management.io"
NOT_REPORTED = "NotReported"


class AcmDirectory:
    """ClusterDirectory on a hub."""

    def __init__(self, hub: Kube) -> None:
        self._hub = hub

    def clusters(self) -> list[Cluster]:
        fences = read_fences(self._hub)
        items = self._hub.list_all(VERSIONS[MANAGED_CLUSTER], MANAGED_CLUSTER)
        return [_cluster(item, fences.get(item["metadata"]["name"], Fence())) for item in items]


def _cluster(item: Object, fence: Fence) -> Cluster:
    claims = {claim.get("name"): claim.get("value") for claim in (item.get("status") or {}).get("clusterClaims") or []}
    available = condition(item, AVAILABLE)
    return Cluster(
        item["metadata"]["name"],
        fence.region or str(claims.get(REGION_CLAIM) or ""),
        # The hub sets Unknown when an agent stops reporting.
        healthy=available.get("status") == "True" if available else None,
        reason=str(available.get("reason") or NOT_REPORTED),
        fenced=fence.fenced,
        fence_requested=fence.requested,
    )
