# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""HyperShift clusters of orders: the objects they are made of, and how to bring these about or take them away.

What a cluster consists of is pure, from a description to manifests; `apply` and `remove` only start work and never wait for it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .fenced import Change, FencedWriter
from .kube import Kube, Object
from .orders import NodeRequest

API_VERSION = "hypershift.openshift.io/v1beta1"
SERVICES = ("APIServer", "OAuthServer", "Konnectivity", "Ignition")


@dataclass(frozen=True)
class HyperShiftCluster:
    """A cluster to be: what a template says of it. `labels` go on every object, `class_label` tells a NodePool's resource class."""

    name: str
    namespace: str
    release_image: str
    pull_secret: str = field(repr=False)
    node_requests: Sequence[NodeRequest]
    labels: Mapping[str, str]
    class_label: str
    ssh_public_key: str = ""
    base_domain: str = ""
    pod_network_cidr: str = "10.132.0.0/14"
    service_network_cidr: str = "172.31.0.0/16"
    control_plane_availability: str = "SingleReplica"
    platform: Mapping[str, Any] = field(default_factory=lambda: {"type": "None"})
    node_platform: Mapping[str, Any] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)
    extra_secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def objects(self) -> list[Object]:
        return [*self._secrets(), self._hosted_cluster(), *(self._node_pool(request) for request in self.node_requests)]

    def pool_name(self, resource_class: str) -> str:
        return f"{self.name}-{resource_class.lower().replace('_', '-').replace('.', '-')}"

    def _metadata(self, name: str, labels: Mapping[str, str] | None = None) -> Object:
        return {"name": name, "namespace": self.namespace, "labels": dict(self.labels) | dict(labels or {})}

    def _secrets(self) -> list[Object]:
        contents: dict[str, tuple[str, Mapping[str, str]]] = {
            f"{self.name}-pull-secret": ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": self.pull_secret})
        }
        if self.ssh_public_key:
            contents[f"{self.name}-ssh-key"] = ("Opaque", {"id_rsa.pub": self.ssh_public_key})
        contents |= {name: ("Opaque", content) for name, content in self.extra_secrets.items()}
        return [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": kind,
                "metadata": self._metadata(name),
                "data": {key: base64.b64encode(value.encode()).decode() for key, value in content.items()},
            }
            for name, (kind, content) in contents.items()
        ]

    def _hosted_cluster(self) -> Object:
        spec: Object = {
            "release": {"image": self.release_image},
            "pullSecret": {"name": f"{self.name}-pull-secret"},
            "platform": dict(self.platform),
            "networking": {
                "clusterNetwork": [{"cidr": self.pod_network_cidr}],
                "serviceNetwork": [{"cidr": self.service_network_cidr}],
                "networkType": "OVNKubernetes",
            },
            "controllerAvailabilityPolicy": self.control_plane_availability,
            "infrastructureAvailabilityPolicy": self.control_plane_availability,
            "etcd": {
                "managementType": "Managed",
                "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": "8Gi"}}},
            },
            "services": [
                {"service": service, "servicePublishingStrategy": {"type": "LoadBalancer" if service == "APIServer" else "Route"}}
                for service in SERVICES
            ],
        }
        if self.ssh_public_key:
            spec["sshKey"] = {"name": f"{self.name}-ssh-key"}
        if self.base_domain:
            spec["dns"] = {"baseDomain": self.base_domain}
        if self.configuration:
            spec["configuration"] = dict(self.configuration)
        return {"apiVersion": API_VERSION, "kind": "HostedCluster", "metadata": self._metadata(self.name), "spec": spec}

    def _node_pool(self, request: NodeRequest) -> Object:
        platform = {"type": self.platform["type"], **self.node_platform}
        return {
            "apiVersion": API_VERSION,
            "kind": "NodePool",
            "metadata": self._metadata(self.pool_name(request.resource_class), {self.class_label: request.resource_class}),
            "spec": {
                "clusterName": self.name,
                "replicas": request.number_of_nodes,
                "release": {"image": self.release_image},
                "management": {"upgradeType": "Replace", "autoRepair": False},
                "platform": platform,
            },
        }


def apply(kube: Kube, writer: FencedWriter, cluster: HyperShiftCluster) -> list[Change]:
    """Make the cluster what it is described as; NodePools of classes that are no longer asked for go."""
    present = owned_pools(kube, cluster.namespace, cluster.labels)
    wanted = cluster.objects()
    kept = {item["metadata"]["name"] for item in wanted if item["kind"] == "NodePool"}
    changes = writer.apply(wanted, known=present)
    return changes + writer.delete(pool for pool in present if pool["metadata"]["name"] not in kept)


def remove(kube: Kube, writer: FencedWriter, name: str, namespace: str, labels: Mapping[str, str]) -> list[Change]:
    """Take the cluster away, and its secrets when it is gone: until then HyperShift may need them."""
    cluster = kube.find(API_VERSION, "HostedCluster", name, namespace)
    pools = owned_pools(kube, namespace, labels)
    if cluster is not None:
        return writer.delete([cluster, *pools])
    secrets = kube.list_all("v1", "Secret", namespace, selector(labels))
    return writer.delete([*pools, *secrets])


def owned_pools(kube: Kube, namespace: str, labels: Mapping[str, str]) -> list[Object]:
    return kube.list_all(API_VERSION, "NodePool", namespace, selector(labels))


def selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())
