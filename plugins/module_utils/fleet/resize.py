# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Changes of a bound cluster: room first, then the assignment; what the hub no longer uses is released after it reported."""

from __future__ import annotations

from ..kube.client import Kube
from .hub_store import HubStore
from .model import FleetCluster, assignment_of, nodes_by_class
from .observe import ObservedFleet
from .placer import Placer
from .quota import largest, settled_amounts
from .quota_store import QuotaStore
from .swap import merge_patch


class Resize:
    """Keeps the assignments of bound clusters equal to their specs. Quota was reserved before."""

    def __init__(self, home: Kube, quotas: QuotaStore, placer: Placer) -> None:
        self._home = home
        self._quotas = quotas
        self._hubs = HubStore(home)
        self._placer = placer

    def apply(self, cluster: FleetCluster, fleet: ObservedFleet) -> str:
        """Bring the assignment to the spec. Returns what is in the way, if the hub lacks room."""
        assignment = fleet.assignments.get(cluster.uid)
        if assignment is None:
            self._placer.ensure_assignment(cluster)
            return ""
        present, wanted = assignment.raw["spec"], assignment_of(cluster, cluster.hub)["spec"]
        if present == wanted:
            self._settle(cluster, fleet)
            return ""
        _hub, lacking = self._hubs.reserve(cluster.hub, [cluster], fleet.now)
        if found := lacking.get(cluster.uid):
            return f"The hub {cluster.hub} cannot grow the cluster: {found}"
        self._home.patch(assignment.raw, {"spec": merge_patch(present, wanted)})
        return ""

    def _settle(self, cluster: FleetCluster, fleet: ObservedFleet) -> None:
        """Release what the hub reported as deleted."""
        assignment = fleet.assignments[cluster.uid]
        amounts = settled_amounts(cluster, assignment)
        if amounts is None:
            return
        quota, hub = fleet.quotas.get(cluster.namespace), fleet.hubs.get(cluster.hub)
        counted = quota.reservations.get(cluster.uid) if quota else None
        if counted and counted.amounts != amounts:
            self._quotas.reduce(cluster.namespace, cluster.uid, counted.amounts, amounts)
        nodes = largest(cluster.nodes, nodes_by_class(assignment.reported))
        room = hub.reservations.get(cluster.uid) if hub else None
        if room and room.nodes != nodes:
            self._hubs.reduce(cluster.hub, cluster.uid, room.nodes, nodes, fleet.now)
