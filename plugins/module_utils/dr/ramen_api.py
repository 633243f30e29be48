# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names in Ramen's API: actions, phases, progressions, conditions, labels and annotations. Nothing else."""

from __future__ import annotations

FAILOVER, RELOCATE = "Failover", "Relocate"
PRIMARY, SECONDARY = "primary", "secondary"  # of spec.replicationState
IS_PRIMARY, IS_SECONDARY = "Primary", "Secondary"  # of status.state
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

# Annotations of a VolumeReplicationGroup
EPOCH, REVISION = "dr.openfleet.io/epoch", "dr.openfleet.io/revision"
# Of a DRPlacementControl: a person confirms that no leader of this epoch, or of an earlier one, acts any more.
ENDED_EPOCH = "dr.openfleet.io/ended-epoch"
DRPC_UID = "drplacementcontrol.ramendr.openshift.io/drpc-uid"
DESTINATION = "drplacementcontrol.ramendr.openshift.io/destination-cluster"
# DRPlacementControls with the same value of this label share their storage, and only move together.
GROUP_LABEL = "ramendr.openshift.io/global-vgr"
# Annotation of a DRPlacementControl: a ConfigMap with addresses of virtual machines on the other cluster
NETWORK_MAPPING = "drplacementcontrol.ramendr.openshift.io/network-mapping"
RETAINED = "RetainedForFailover"  # the reason of a decision that keeps the workload on its old cluster


class Phase:
    NONE = ""
    WAIT_FOR_USER = "WaitForUser"
    INITIATING = "Initiating"
    DEPLOYING = "Deploying"
    DEPLOYED = "Deployed"
    FAILING_OVER = "FailingOver"
    FAILED_OVER = "FailedOver"
    RELOCATING = "Relocating"
    RELOCATED = "Relocated"
    DELETING = "Deleting"


class Progression:
    NONE = ""
    COMPLETED = "Completed"
    CREATING = "CreatingMW"
    UPDATING_PLACEMENT = "UpdatingPlRule"
    WAIT_FOR_READINESS = "WaitForReadiness"
    CLEANING_UP = "Cleaning Up"
    WAIT_ON_USER = "WaitOnUserToCleanUp"
    CHECKING_PREREQUISITES = "CheckingFailoverPrerequisites"
    FAILING_OVER = "FailingOverToCluster"
    WAIT_FOR_FENCING = "WaitForFencing"
    WAIT_FOR_MAINTENANCE = "WaitForStorageMaintenanceActivation"
    PREPARING_FINAL_SYNC = "PreparingFinalSync"
    CLEARING_PLACEMENT = "ClearingPlacement"
    RUNNING_FINAL_SYNC = "RunningFinalSync"
    FINAL_SYNC_COMPLETE = "FinalSyncComplete"
    ENSURING_SECONDARY = "EnsuringVolumesAreSecondary"
    WAIT_ON_GLOBAL_ACTION = "WaitOnGlobalAction"
    WAITING_FOR_RESTORE = "WaitingForResourceRestore"
    UPDATED_PLACEMENT = "UpdatedPlacement"
    ENSURING_VOLSYNC = "EnsuringVolSyncSetup"
    DELETING = "Deleting"
    DELETED = "Deleted"
    PAUSED = "Paused"
    TESTING_FAILOVER = "TestingFailover"


class VRGCondition:
    DATA_READY = "DataReady"
    DATA_PROTECTED = "DataProtected"
    CLUSTER_DATA_READY = "ClusterDataReady"
    CLUSTER_DATA_PROTECTED = "ClusterDataProtected"
    NO_CONFLICT = "NoClusterDataConflict"
    AUTO_CLEANUP = "AutoCleanup"
    HOOKS_READY = "HooksReady"
    DESTINATION_INFO = "DestinationInfoAvailable"
