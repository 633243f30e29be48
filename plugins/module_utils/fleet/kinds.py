# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The API objects of a fleet: group, kinds, names and labels. Importing it makes the kinds known to the client."""

from __future__ import annotations

from ..kube.kinds import register

GROUP = "fleet.openfleet.io"
API_VERSION = f"{GROUP}/v1alpha1"
CLUSTER, HUB, QUOTA, ASSIGNMENT, RECORD = "FleetCluster", "Hub", "FleetQuota", "ClusterAssignment", "ClusterRecord"
QUOTA_NAME = "default"  # a namespace has one quota
FINALIZER = f"{GROUP}/cluster"  # on a FleetCluster from its reservation until its hub reported it deleted
CREATED_BY = f"{GROUP}/created-by"  # on a FleetCluster: the account that created it, as the admission policy verified it
AGENT_FINALIZER = f"{GROUP}/agent"  # on a ClusterAssignment while its hub has, or may have, anything of the cluster
RETRY = f"{GROUP}/retry"  # on a FleetCluster and its assignment: a time; a new one starts a failed order again without backoff
ADOPT_ORDER = f"{GROUP}/adopt-order"  # on both too: <namespace>/<name> of an order on the hub that becomes that of the cluster
SECRETS_VERSION = f"{GROUP}/secrets-version"  # on an assignment: which versions of the tenant's Secrets its copy has
HUB_NAMESPACE_PREFIX = "hub-"
ORDER_NAMESPACE_PREFIX = "fleet-"  # of the namespaces on a hub with the orders of a fleet

register(GROUP, CLUSTER, "fleetclusters")
register(GROUP, HUB, "hubs", namespaced=False)
register(GROUP, QUOTA, "fleetquotas")
register(GROUP, ASSIGNMENT, "clusterassignments")
register(GROUP, RECORD, "clusterrecords")


def hub_namespace(hub: str) -> str:
    """The namespace with the assignments of a hub. The agent of the hub has permissions in this namespace only."""
    return f"{HUB_NAMESPACE_PREFIX}{hub}"
