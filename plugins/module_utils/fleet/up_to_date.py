# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a cluster is as a reconcile leaves it, by what is stored: where the answer to a write was lost, it may not be. Pure.

A reconcile trusts its cache, which lacks a write without an answer until the watch brings it. Nothing wakes the cluster then.
"""

from __future__ import annotations

from .assignments import is_assigned
from .kinds import FINALIZER
from .model import ClusterAssignment, FleetCluster, FleetQuota, Hub, nodes_by_class
from .quota import largest, settled_amounts
from .status import shows_report


def is_up_to_date(cluster: FleetCluster, assignment: ClusterAssignment | None, quota: FleetQuota | None, hub: Hub | None) -> bool:
    """Of a cluster that has a hub or is being deleted. Reservations that are too small are not compared: a sweep restores lost ones."""
    if cluster.is_deleting:
        is_asked = assignment is not None and "deletionTimestamp" in assignment.raw["metadata"]
        return is_asked or FINALIZER not in (cluster.raw["metadata"].get("finalizers") or ())
    if assignment is None or not is_assigned(cluster, assignment):
        return False
    return shows_report(cluster, assignment) and not _has_surplus(cluster, assignment, quota, hub)


def _has_surplus(cluster: FleetCluster, assignment: ClusterAssignment, quota: FleetQuota | None, hub: Hub | None) -> bool:
    """Whether more is reserved than the cluster needs after its hub reported."""
    amounts = settled_amounts(cluster, assignment)
    if amounts is None:
        return False
    counted = quota.reservations.get(cluster.uid) if quota else None
    reserved = hub.reservations.get(cluster.uid) if hub else None
    nodes = largest(cluster.nodes, nodes_by_class(assignment.reported))
    pairs = ((counted.amounts if counted else {}, amounts), (reserved.nodes if reserved else {}, nodes))
    return any(amount > needed.get(key, 0) for reserved, needed in pairs for key, amount in reserved.items())
