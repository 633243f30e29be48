"""Objects that several tests apply: a HostedCluster with its pull secret, and a NodePool."""

from __future__ import annotations

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.0-x86_64"
NEXT_RELEASE = "quay.io/openshift-release-dev/ocp-release:4.17.1-x86_64"
FAULT = "standin.openfleet.clusters/fault"
MODE = "standin.openfleet.clusters/mode"


def pull_secret(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "pull-secret", "namespace": namespace},
        "stringData": {".dockerconfigjson": '{"auths": {}}'},
    }


def hosted_cluster(namespace: str, name: str = "demo", fault: str = "", status_only: bool = False) -> Object:
    annotations = ({FAULT: fault} if fault else {}) | ({MODE: "status-only"} if status_only else {})
    services = {"APIServer": "LoadBalancer", "OAuthServer": "Route", "Konnectivity": "Route", "Ignition": "Route"}
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {
            "release": {"image": RELEASE},
            "pullSecret": {"name": "pull-secret"},
            "networking": {"clusterNetwork": [{"cidr": "10.132.0.0/14"}], "serviceNetwork": [{"cidr": "172.31.0.0/16"}]},
            "etcd": {
                "managementType": "Managed",
                "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": "8Gi"}}},
            },
            "platform": {"type": "KubeVirt"},
            "services": [{"service": name, "servicePublishingStrategy": {"type": kind}} for name, kind in services.items()],
        },
    }


def node_pool(namespace: str, cluster: str = "demo", name: str = "workers", replicas: int = 2, fault: str = "") -> Object:
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": name, "namespace": namespace, "annotations": {FAULT: fault} if fault else {}},
        "spec": {
            "clusterName": cluster,
            "replicas": replicas,
            "release": {"image": RELEASE},
            "management": {"upgradeType": "Replace"},
            "platform": {"type": "KubeVirt", "kubevirt": {"rootVolume": {"type": "Persistent"}}},
        },
    }
