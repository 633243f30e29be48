# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Brings the assignment of a bound cluster to its spec: capacity is reserved before the hub gets it, and released after it reported.

What a cluster without a hub gives up is released at once: no assignment has it.
"""

from __future__ import annotations

from ..kube.client import Kube
from .assignments import Assignments
from .hub_store import HubStore
from .kinds import API_VERSION, ASSIGNMENT, CLUSTER, hub_namespace
from .model import ClusterAssignment, FleetCluster, nodes_by_class
from .observe import ObservedFleet
from .quota import claim_of, largest, settled_amounts
from .quota_store import QuotaStore


class Resize:
    """Keeps the assignments of bound clusters equal to their specs. Quota was reserved before."""

    def __init__(self, home: Kube, quotas: QuotaStore) -> None:
        self._home = home
        self._quotas = quotas
        self._hubs = HubStore(home)
        self._assignments = Assignments(home)

    def needs_quota(self, cluster: FleetCluster, fleet: ObservedFleet) -> bool:
        """Whether quota has to be reserved before `apply`: not where the assignment has the whole spec, after a reservation."""
        assignment = fleet.assignments.get(cluster.uid)
        if assignment is None or self._assignments.pending(cluster, assignment, fleet):
            return True
        quota = fleet.quotas.get(cluster.namespace)
        reserved = quota.reservations.get(cluster.uid) if quota else None
        return reserved is None or largest(reserved.amounts, claim_of(cluster, assignment).amounts) != largest(reserved.amounts, {})

    def apply(self, cluster: FleetCluster, fleet: ObservedFleet) -> str:
        """Bring the assignment to the spec. Returns what is in the way, if the hub lacks capacity."""
        assignment = fleet.assignments.get(cluster.uid)
        changes = self._assignments.pending(cluster, assignment, fleet) if assignment else {}
        # A cluster may have changed since the run that bound it and was killed before it created the assignment.
        if assignment is None or "nodeSets" in changes.get("spec", {}):
            _hub, lacking = self._hubs.reserve(cluster.hub, [cluster], fleet.now)
            if found := lacking.get(cluster.uid):
                return f"The hub {cluster.hub} cannot grow the cluster: {found}"
        if assignment is None:
            self._assignments.create(cluster)
        elif changes:
            self._assignments.update(cluster, assignment, fleet)
        else:
            self._settle(cluster, fleet)
        return ""

    def has_surplus(self, cluster: FleetCluster, fleet: ObservedFleet) -> bool:
        """Whether a cluster without a hub has reserved more quota than it asks for."""
        quota, wanted = fleet.quotas.get(cluster.namespace), claim_of(cluster).amounts
        counted = quota.reservations.get(cluster.uid) if quota else None
        return counted is not None and any(amount > wanted.get(key, 0) for key, amount in counted.amounts.items())

    def release_surplus(self, cluster: FleetCluster, fleet: ObservedFleet) -> None:
        """Release it, unless the cluster has been changed or bound since."""
        if self._is_current(cluster):
            counted = fleet.quotas[cluster.namespace].reservations[cluster.uid]
            self._quotas.reduce(cluster.namespace, cluster.uid, counted.amounts, claim_of(cluster).amounts)

    def _settle(self, cluster: FleetCluster, fleet: ObservedFleet) -> None:
        """Release what the hub reported as deleted."""
        assignment = fleet.assignments[cluster.uid]
        amounts = settled_amounts(cluster, assignment)
        if amounts is None:
            return
        quota, hub = fleet.quotas.get(cluster.namespace), fleet.hubs.get(cluster.hub)
        counted = quota.reservations.get(cluster.uid) if quota else None
        nodes = largest(cluster.nodes, nodes_by_class(assignment.reported))
        reserved = hub.reservations.get(cluster.uid) if hub else None
        has_less, has_less_reserved = counted and counted.amounts != amounts, reserved and reserved.nodes != nodes
        if not (has_less or has_less_reserved) or not self._is_current(cluster) or not self._is_latest(assignment):
            return
        if counted and has_less:
            self._quotas.reduce(cluster.namespace, cluster.uid, counted.amounts, amounts)
        if reserved and has_less_reserved:
            self._hubs.reduce(cluster.hub, cluster.uid, reserved.nodes, nodes, fleet.now)

    def _is_current(self, cluster: FleetCluster) -> bool:
        """Whether spec and hub are still the observed ones. The reservations were observed before, so they are not of a later spec."""
        item = self._home.find(API_VERSION, CLUSTER, cluster.name, cluster.namespace)
        if item is None or (item.get("status") or {}).get("hub", "") != cluster.hub:
            return False
        return all(item["metadata"][key] == cluster.raw["metadata"][key] for key in ("uid", "generation"))

    def _is_latest(self, assignment: ClusterAssignment) -> bool:
        """Whether the API server has no newer one: the answer to a growth may have been lost, and a cache lacks that growth."""
        item = self._home.find(API_VERSION, ASSIGNMENT, assignment.uid, hub_namespace(assignment.hub))
        return item is not None and all(item["metadata"][key] == assignment.raw["metadata"][key] for key in ("uid", "generation"))
