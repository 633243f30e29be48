"""Objects of disaster recovery for tests: VolumeReplicationGroups, their references, and registries of peers."""

from __future__ import annotations

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.peers import Peers
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import ObjectRef
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import RAMEN, VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import ClusterRegistry, RegisteredCluster

from .kubeconfigs import put_kubeconfig

SECONDS = 30.0  # what a busy machine may need


def vrg(namespace: str, name: str = "shop", **spec: Any) -> Object:
    wanted = {"pvcSelector": {}, "replicationState": "primary", "s3Profiles": ["none"]}
    return {"apiVersion": RAMEN, "kind": VRG, "metadata": {"name": name, "namespace": namespace}, "spec": wanted | spec}


def ref(namespace: str, name: str = "shop") -> ObjectRef:
    return ObjectRef(RAMEN, VRG, namespace, name)


def peers_of(kube: Kube, namespace: str, kubeconfigs: dict[str, Any], seconds: float = SECONDS) -> Peers:
    """Peers with these kubeconfigs in Secrets. The registry is not on the hub."""
    for name, content in kubeconfigs.items():
        if content is not None:
            put_kubeconfig(kube, namespace, f"{name}-kubeconfig", content)
    clusters = tuple(RegisteredCluster(name, f"{name}-kubeconfig") for name in kubeconfigs)
    return Peers(ClusterRegistry(namespace, "peers", clusters=clusters), ClusterClients(kube, namespace, seconds), seconds)
