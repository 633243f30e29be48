# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is there for one order, and who made it. It talks to nobody."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..common.types import Object
from ..providers.model import AVAILABLE, UNKNOWN, ConditionState, NodeSet, ObservedCluster
from .model import ClusterOrder


@dataclass(frozen=True)
class ObservedState:
    """The cluster of an order and its working namespace."""

    cluster: ObservedCluster = field(default_factory=ObservedCluster)
    namespace_exists: bool = False


def provider_type(order: ClusterOrder) -> str:
    """The type of the provider that serves the order's cluster; empty while none does. It never changes afterwards."""
    return str(_kept(order).get("type") or "")


def recorded_cluster(order: ClusterOrder) -> ObservedCluster:
    """What is kept of the cluster on its order, for its provider to find it by."""
    return ObservedCluster.from_stored(_kept(order))


def _kept(order: ClusterOrder) -> Object:
    kept = order.status.get("provider")
    return kept if isinstance(kept, dict) else {}  # another controller may have something of this name, too


def unknown_cluster(order: ClusterOrder, error: Exception) -> ObservedCluster:
    """The cluster when its provider can't be asked: as it was last seen, all of it uncertain, and nothing of it gone."""
    known = recorded_cluster(order)
    nodes = (
        NodeSet("", item["resourceClass"], item["requested"], item["ready"], outdated=True) for item in order.status.get("nodeSets") or []
    )
    return ObservedCluster(
        internal_id=known.internal_id,
        external_id=known.external_id,
        status="unknown",
        status_details=str(error),
        additional_info=known.additional_info,
        cloud_provider=known.cloud_provider,
        region=known.region,
        multi_az=known.multi_az,
        node_sets=tuple(nodes),
        api_url=str(order.status.get("apiURL") or ""),
        console_url=str(order.status.get("consoleURL") or ""),
        installed=True,
        conditions={AVAILABLE: ConditionState(UNKNOWN, type(error).__name__, str(error))},
    )
