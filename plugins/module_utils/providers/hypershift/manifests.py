# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a request for a HyperShift cluster: Secrets, HostedCluster, NodePools. Pure; it sends nothing."""

from __future__ import annotations

import json
from typing import Any

from ...common.types import Object
from ...kube.kinds import register
from ..base import ClusterRef
from ..model import ClusterRequest
from ..objects import metadata, secret
from .identity import CONFIGURED, identity_providers, names_of
from .node_pools import API_VERSION, GROUP, node_pools

register(GROUP, "HostedCluster", "hostedclusters")
# How each service of a control plane is published where the request does not say.
PUBLISHING = {"APIServer": "LoadBalancer", "OAuthServer": "Route", "Konnectivity": "Route", "Ignition": "Route"}


class Manifests:
    """The objects of one request."""

    def __init__(self, ref: ClusterRef, request: ClusterRequest) -> None:
        self._ref = ref
        self._request = request
        self._settings = request.settings

    def objects(self) -> list[Object]:
        return [*self._secrets(), self.hosted_cluster(), *node_pools(self._ref, self._request)]

    def _secrets(self) -> list[Object]:
        name, values = self._ref.name, self._request.secrets
        secrets = [secret(self._ref, f"{name}-pull-secret", {".dockerconfigjson": values["pull_secret"]}, "kubernetes.io/dockerconfigjson")]
        if values.get("ssh_public_key"):
            secrets.append(secret(self._ref, f"{name}-ssh-key", {"id_rsa.pub": values["ssh_public_key"]}))
        return [*secrets, *(secret(self._ref, extra, content) for extra, content in values["extra"].items())]

    def hosted_cluster(self) -> Object:
        settings, name = self._settings, self._ref.name
        publishing: dict[str, Any] = {**PUBLISHING, **settings["publishing"]}
        spec: Object = {
            "release": {"image": self._request.version},
            "pullSecret": {"name": f"{name}-pull-secret"},
            "platform": settings["platform"],
            "networking": {
                "clusterNetwork": [{"cidr": settings["pod_network_cidr"]}],
                "serviceNetwork": [{"cidr": settings["service_network_cidr"]}],
                "networkType": settings["network_type"],
            },
            "controllerAvailabilityPolicy": settings["control_plane_availability"],
            "infrastructureAvailabilityPolicy": settings.get("infrastructure_availability") or settings["control_plane_availability"],
            "etcd": {
                "managementType": "Managed",
                "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": "8Gi"}}},
            },
            "services": [
                {"service": service, "servicePublishingStrategy": {"type": how} if isinstance(how, str) else how}
                for service, how in publishing.items()
            ],
        }
        if self._request.secrets.get("ssh_public_key"):
            spec["sshKey"] = {"name": f"{name}-ssh-key"}
        if settings.get("base_domain"):
            spec["dns"] = {"baseDomain": settings["base_domain"]}
        if settings["configuration"]:
            spec["configuration"] = settings["configuration"]
        cluster: Object = {"apiVersion": API_VERSION, "kind": "HostedCluster", "metadata": metadata(self._ref, name), "spec": spec}
        if configured := names_of(identity_providers(cluster)):
            cluster["metadata"]["annotations"] = {CONFIGURED: json.dumps(configured)}
        return cluster
