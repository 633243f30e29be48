# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The assignment of a bound cluster, and the copy of its Secrets: created once, and brought to what the cluster is. It reserves nothing."""

from __future__ import annotations

from ..common.clock import boottime
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict
from .compare_and_swap import merge_patch
from .kinds import ADOPT_ORDER, API_VERSION, CLUSTER, RETRY, SECRETS_VERSION
from .model import ClusterAssignment, FleetCluster, assignment_of
from .observe import ObservedFleet
from .secret_copies import SecretCopies, has_references, version_of
from .transient_conditions import lacks_secrets

MOMENTS = 5.0  # seconds; the Lease of a leader lasts three times as long
CARRIED = (RETRY, ADOPT_ORDER, SECRETS_VERSION)  # annotations that belong to the home


def changes_of(cluster: FleetCluster, assignment: ClusterAssignment, secrets_version: str) -> Object:
    """The merge patch that brings the assignment to the cluster; empty where it is."""
    wanted = assignment_of(cluster, cluster.hub, secrets_version)
    annotations = assignment.raw["metadata"].get("annotations") or {}
    own = {name: annotations[name] for name in CARRIED if name in annotations}
    changes = merge_patch({"spec": assignment.raw["spec"]}, {"spec": wanted["spec"]})
    if noted := merge_patch(own, wanted["metadata"].get("annotations") or {}):
        changes["metadata"] = {"annotations": noted}
    return changes


def is_assigned(cluster: FleetCluster, assignment: ClusterAssignment) -> bool:
    """Whether the assignment has the whole spec of the cluster, apart from its Secrets."""
    return not changes_of(cluster, assignment, _version_on(assignment))


class Assignments:
    """The assignments of one home cluster."""

    def __init__(self, home: Kube) -> None:
        self._home = home
        self._copies = SecretCopies(home)

    def create(self, cluster: FleetCluster, bound: float | None = None) -> None:
        """Create the assignment of a bound cluster, unless it exists. A cluster whose deletion began meanwhile must not be created.

        `bound` is when this process bound the cluster, by the clock since boot. Within moments of that no other process can have become
        the leader and completed a deletion, so the cluster need not be read.
        """
        version = self._copies.write(cluster, cluster.hub) if has_references(cluster) else ""
        try:
            created = self._home.create(assignment_of(cluster, cluster.hub, version))
        except Conflict:
            return
        if bound is not None and boottime() - bound < MOMENTS:
            return
        item = self._home.find(API_VERSION, CLUSTER, cluster.name, cluster.namespace)
        if item is None or item["metadata"]["uid"] != cluster.uid or "deletionTimestamp" in item["metadata"]:
            self._home.delete(created, checked=True)
            self._copies.delete(cluster.uid, cluster.hub)

    def pending(self, cluster: FleetCluster, assignment: ClusterAssignment, fleet: ObservedFleet) -> Object:
        """What `update` would change. While a Secret is missing, the copy of it stays."""
        return changes_of(cluster, assignment, self._version(cluster, assignment, fleet))

    def update(self, cluster: FleetCluster, assignment: ClusterAssignment, fleet: ObservedFleet) -> None:
        """Bring the assignment to the cluster. The hub has capacity for it."""
        present, version = _version_on(assignment), self._version(cluster, assignment, fleet)
        if version and version != present:
            version = self._copies.write(cluster, cluster.hub)
        elif present and not version:
            self._copies.delete(cluster.uid, cluster.hub)
        if changes := changes_of(cluster, assignment, version):
            self._home.patch(assignment.raw, changes)

    def _version(self, cluster: FleetCluster, assignment: ClusterAssignment, fleet: ObservedFleet) -> str:
        return _version_on(assignment) if lacks_secrets(cluster, fleet) else version_of(cluster, fleet.secrets)


def _version_on(assignment: ClusterAssignment) -> str:
    return str((assignment.raw["metadata"].get("annotations") or {}).get(SECRETS_VERSION, ""))
