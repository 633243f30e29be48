"""Objects of Ramen's API as a user or Ramen itself writes them."""

from __future__ import annotations

from .samples import Object, condition

DRPC: Object = {
    "metadata": {
        "name": "database",
        "namespace": "shop",
        "uid": "uid-1",
        "generation": 4,
        "labels": {"ramendr.openshift.io/global-vgr": "global-1"},
        "annotations": {"drplacementcontrol.ramendr.openshift.io/network-mapping": "addresses"},
    },
    "spec": {
        "placementRef": {"name": "placement"},
        "drPolicyRef": {"name": "policy"},
        "pvcSelector": {"matchLabels": {"app": "shop"}},
        "preferredCluster": "east",
        "failoverCluster": "west",
        "action": "Failover",
        "dryRun": True,
        "protectedNamespaces": ["shop"],
        "kubeObjectProtection": {"captureInterval": "5m"},
        "volSyncSpec": {"disabled": True},
    },
}
DRPOLICY: Object = {
    "metadata": {"name": "policy", "generation": 2},
    "spec": {"drClusters": ["east", "west"], "schedulingInterval": "2h", "replicationClassSelector": {"matchLabels": {"class": "fast"}}},
    "status": {
        "conditions": [condition("Validated", generation=2)],
        "async": {"peerClasses": [{"storageClassName": "rbd", "replicationID": "group-1"}]},
    },
}
DRCLUSTER: Object = {
    "metadata": {"name": "east", "generation": 3},
    "spec": {"region": "north", "s3ProfileName": "s3-east", "clusterFence": "Fenced"},
    "status": {
        "phase": "Fenced",
        "conditions": [condition("Fenced", generation=3)],
        "maintenanceModes": [
            {"storageProvisioner": "csi", "targetID": "group-1", "state": "Completed", "conditions": [condition("FailoverActivated")]},
            {
                "storageProvisioner": "csi",
                "targetID": "group-2",
                "state": "Progressing",
                "conditions": [condition("FailoverActivated", "False")],
            },
        ],
    },
}
