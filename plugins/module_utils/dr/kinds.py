# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kinds of Ramen, csi-addons and Open Cluster Management that disaster recovery uses. It sends nothing."""

from __future__ import annotations

from ..kube.kinds import register
from ..registry.model import API_VERSION, GROUP

RAMEN = API_VERSION
DRPC, DR_POLICY, DR_CLUSTER, VRG = "DRPlacementControl", "DRPolicy", "DRCluster", "VolumeReplicationGroup"
register(GROUP, DRPC, "drplacementcontrols")
register(GROUP, VRG, "volumereplicationgroups")

CSI_ADDONS, NETWORK_FENCE = "csiaddons.openshift.io/v1alpha1", "NetworkFence"

CLUSTER_GROUP = "cluster.open-cluster-management.io"
WORK_GROUP = "work.open-cluster-management.io"
VIEW_GROUP = "view.open-cluster-management.io"
MANAGED_CLUSTER, PLACEMENT, PLACEMENT_DECISION = "ManagedCluster", "Placement", "PlacementDecision"
MANIFEST_WORK, CLUSTER_VIEW = "ManifestWork", "ManagedClusterView"
VERSIONS = {
    MANAGED_CLUSTER: f"{CLUSTER_GROUP}/v1",
    PLACEMENT: f"{CLUSTER_GROUP}/v1beta1",
    PLACEMENT_DECISION: f"{CLUSTER_GROUP}/v1beta1",
    MANIFEST_WORK: f"{WORK_GROUP}/v1",
    CLUSTER_VIEW: f"{VIEW_GROUP}/v1beta1",
}
register(CLUSTER_GROUP, MANAGED_CLUSTER, "managedclusters", namespaced=False)
register(CLUSTER_GROUP, PLACEMENT, "placements")
register(CLUSTER_GROUP, PLACEMENT_DECISION, "placementdecisions")
register(WORK_GROUP, MANIFEST_WORK, "manifestworks")
register(VIEW_GROUP, CLUSTER_VIEW, "managedclusterviews")
