# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Region and fence of clusters, from the DRClusters on the site's own API server."""

from __future__ import annotations

from dataclasses import dataclass

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import NotFound
from .kinds import DR_CLUSTER, RAMEN

FENCES = ("Fenced", "ManuallyFenced")


@dataclass(frozen=True)
class Fence:
    """`requested` is also true while a fence begins or ends: nothing may be placed there."""

    region: str = ""
    fenced: bool = False
    requested: bool = False


def read_fences(kube: Kube) -> dict[str, Fence]:
    """The fences by cluster. Without the CRD of DRCluster no cluster has one."""
    try:
        return {item["metadata"]["name"]: fence_of(item) for item in kube.list_all(RAMEN, DR_CLUSTER)}
    except NotFound:
        return {}


def fence_of(item: Object) -> Fence:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    condition: Object = next((entry for entry in status.get("conditions") or [] if entry.get("type") == "Fenced"), {})
    # A condition of an earlier generation describes a fence that may be gone.
    current = condition.get("observedGeneration") == item["metadata"].get("generation")
    is_true, requested = condition.get("status") == "True", spec.get("clusterFence") in FENCES
    return Fence(str(spec.get("region") or ""), is_true and current and requested, is_true or requested)
