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
from .encryption import aescbc, new_key
from .identity import CONFIGURED, identity_providers, names_of
from .node_pools import API_VERSION, GROUP, node_pools

register(GROUP, "HostedCluster", "hostedclusters")
# How each service of a control plane is published where the request does not say.
PUBLISHING = {"APIServer": "LoadBalancer", "OAuthServer": "Route", "Konnectivity": "Route", "Ignition": "Route"}

KUBEVIRT, PASSTHROUGH = "KubeVirt", "baseDomainPassthrough"


class Manifests:
    """The objects of one request. Of a cluster that is `present`, what is decided at its creation stays."""

    def __init__(self, ref: ClusterRef, request: ClusterRequest, present: Object | None = None) -> None:
        self._ref = ref
        self._request = request
        self._settings = request.settings
        self._present: Object = (present or {}).get("spec") or {}

    def objects(self) -> list[Object]:
        return [*self._secrets(), self.hosted_cluster(), *node_pools(self._ref, self._request)]

    def _secrets(self) -> list[Object]:
        name, values = self._ref.name, self._request.secrets
        secrets = [secret(self._ref, f"{name}-pull-secret", {".dockerconfigjson": values["pull_secret"]}, "kubernetes.io/dockerconfigjson")]
        if values.get("ssh_public_key"):
            secrets.append(secret(self._ref, f"{name}-ssh-key", {"id_rsa.pub": values["ssh_public_key"]}))
        if self._secret_encryption() == aescbc(self._ref):
            secrets.append(new_key(self._ref))
        return [*secrets, *(secret(self._ref, extra, content) for extra, content in values["extra"].items())]

    def _secret_encryption(self) -> Object | None:
        """HyperShift encrypts the Secrets of a cluster on KubeVirt by itself, and those of others only if it gets a key."""
        if self._settings["platform"].get("type") == KUBEVIRT:
            return None
        return self._present.get("secretEncryption") if self._present else aescbc(self._ref)

    def _platform(self) -> Object:
        """The platform of the HostedCluster. A cluster on KubeVirt without a domain is named below that of the hub's applications."""
        platform, domain = dict(self._settings["platform"]), self._settings.get("base_domain")
        if platform.get("type") != KUBEVIRT:
            return platform
        settings = dict(platform.get(KUBEVIRT.lower()) or {})
        present = ((self._present.get("platform") or {}).get(KUBEVIRT.lower()) or {}).get(PASSTHROUGH)
        passthrough = present if self._present else settings.get(PASSTHROUGH, None if domain else True)
        if passthrough is not None:
            settings[PASSTHROUGH] = passthrough
        return {**platform, **({KUBEVIRT.lower(): settings} if settings else {})}

    def _etcd(self) -> Object:
        if self._present.get("etcd"):
            return dict(self._present["etcd"])
        settings = {"size": self._settings["etcd_storage_size"], "storageClassName": self._settings.get("etcd_storage_class")}
        volume = {name: value for name, value in settings.items() if value}
        return {"managementType": "Managed", "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": volume}}}

    def hosted_cluster(self) -> Object:
        settings, name = self._settings, self._ref.name
        publishing: dict[str, Any] = {**PUBLISHING, **settings["publishing"]}
        spec: Object = {
            "release": {"image": self._request.version},
            "pullSecret": {"name": f"{name}-pull-secret"},
            "platform": self._platform(),
            "networking": {
                "clusterNetwork": [{"cidr": settings["pod_network_cidr"]}],
                "serviceNetwork": [{"cidr": settings["service_network_cidr"]}],
                "networkType": settings["network_type"],
            },
            "controllerAvailabilityPolicy": settings["control_plane_availability"],
            "infrastructureAvailabilityPolicy": settings.get("infrastructure_availability") or settings["control_plane_availability"],
            "etcd": self._etcd(),
            "services": [
                {"service": service, "servicePublishingStrategy": {"type": how} if isinstance(how, str) else how}
                for service, how in publishing.items()
            ],
        }
        if settings["fips"]:
            spec["fips"] = True
        if encryption := self._secret_encryption():
            spec["secretEncryption"] = encryption
        if self._request.secrets.get("ssh_public_key"):
            spec["sshKey"] = {"name": f"{name}-ssh-key"}
        if settings.get("machine_network_cidr"):
            spec["networking"]["machineNetwork"] = [{"cidr": settings["machine_network_cidr"]}]
        if settings.get("base_domain"):
            spec["dns"] = {"baseDomain": settings["base_domain"]}
        if settings["configuration"]:
            spec["configuration"] = settings["configuration"]
        cluster: Object = {"apiVersion": API_VERSION, "kind": "HostedCluster", "metadata": metadata(self._ref, name), "spec": spec}
        if configured := names_of(identity_providers(cluster)):
            cluster["metadata"]["annotations"] = {CONFIGURED: json.dumps(configured)}
        return cluster
