# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The provider of clusters that OpenShift Cluster Manager creates: OpenShift Dedicated, and ROSA in the customer's own account.

Only the interface is here. Credentials, the cluster at the service, machine pools, identity providers and what is installed into a
cluster are in files of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ...common import bounded_yaml
from ...kube.errors import Invalid
from ..base import ClusterRef, NotReadyYet, NotSupported, Provider, ProviderError
from ..model import Addon, ClusterRequest, IdentityProvider, Kubeconfig, ObservedCluster, Region, ResourceSet
from .account import account_record
from .api import segment
from .arguments import SECRETS, SETTINGS
from .connection import Connection
from .identity import TYPES, IdentityProviders
from .model import STATES, is_upgrade, new_cluster, refused_change
from .pools import Pool, requested_nodes, wanted_pools
from .resources import Syncsets, install_addon
from .secret import AccessSecret
from .service_cluster import ServiceCluster, path_of


class ClusterProvider(Provider):
    """One cluster of OpenShift Cluster Manager, whose token is in the Secret `<name>-ocm` beside it."""

    TYPE: ClassVar[str] = "ocm"
    SETTINGS: ClassVar[Mapping[str, Any]] = SETTINGS
    SECRETS: ClassVar[Mapping[str, Any]] = SECRETS

    def __init__(self, ref: ClusterRef) -> None:
        super().__init__(ref)
        self._connection = Connection(ref)

    def use_credentials_of(self, request: ClusterRequest) -> None:
        self._connection.use_credentials_of(request)

    # The cluster

    def create(self, request: ClusterRequest) -> ObservedCluster:
        body = new_cluster(self._cluster.name, self._cluster.owner, request, self.ref.class_label)
        writer = self.writer
        self.use_credentials_of(request)
        # Looked up before anything is written: wrong credentials change nothing.
        cluster = self._cluster.find(ObservedCluster())
        if cluster is not None:
            self._cluster.require_secret()
        if cluster is None or not self._secret.exists:
            self.changes += self._secret.record(writer, self._connection.record_of(request), requested_nodes(wanted_pools(request)))
        return self._cluster.observed(cluster or self._cluster.create(body))

    def update(self, observed: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        writer, wanted = self.writer, wanted_pools(request)
        self.use_credentials_of(request)
        cluster = self._cluster.existing(observed)
        if problem := refused_change(cluster, request):
            raise Invalid(f"The cluster {self._cluster.name} cannot be changed like that: {problem}. Create another one.", [])
        self.changes += self._secret.record(writer, self._connection.record_of(request), requested_nodes(wanted))
        state = STATES.get(str(cluster.get("state")))
        if state in ("failed", "deprovisioning"):
            return self._cluster.observed(cluster)
        self._cluster.set_properties(cluster, request)
        upgrading = is_upgrade(cluster, request.version)
        if state == "ready":
            self._cluster.pools(cluster).reconcile(wanted)
            if upgrading:
                self._cluster.upgrade(cluster, request.version)
        elif upgrading or not self._cluster.pools(cluster).have_sizes(wanted):
            raise NotReadyYet(f"The cluster {self._cluster.name} is in the state {cluster.get('state')}, and is changed when it is ready.")
        now = self._cluster.observed(self._cluster.after_changes(cluster))
        return replace(now, updating=now.updating or upgrading)

    def delete(self, observed: ObservedCluster) -> bool:
        writer = self.writer
        if not self._secret.exists:
            return True
        cluster = self._cluster.find(observed)
        if cluster is None:
            self.changes += self._secret.remove(writer)
            return True
        if account := account_record(self._connection.api, self._secret):
            # By this account the service will say when the cluster is deleted.
            self.changes += self._secret.record(writer, account)
        self._cluster.delete(cluster)
        return False

    def status(self, observed: ObservedCluster) -> ObservedCluster:
        cluster = self._cluster.find(observed) if self._secret.exists else None
        if cluster is not None:
            return self._cluster.observed(cluster)
        if self._secret.exists and observed.internal_id:
            details = f"The Secret {self._secret.name} is not deleted yet"
            return ObservedCluster(internal_id=observed.internal_id, status="cleanup", status_details=details)
        return ObservedCluster()

    def scale(self, observed: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        cluster = self._cluster.usable(observed)
        others = {name: number for name, number in self._secret.requested_nodes.items() if name != resource_class}
        self.changes += self._secret.record(self.writer, {}, others | ({resource_class: nodes} if nodes else {}))
        self._cluster.pools(cluster).scale(Pool(resource_class, nodes, bool(cluster.get("multi_az"))))
        return self._cluster.observed(cluster)

    # Beside the cluster

    def kubeconfig(self, observed: ObservedCluster) -> Kubeconfig:
        cluster = self._cluster.usable(observed)
        found = self._connection.api.get(f"{path_of(cluster)}/credentials", f"get the kubeconfig of {self._cluster.name}")
        text = str(found.get("kubeconfig") or "")
        try:
            content = bounded_yaml.load(text)
        except bounded_yaml.BadYaml:
            content = None
        if not isinstance(content, dict):
            raise ProviderError(f"OpenShift Cluster Manager has no kubeconfig of {self._cluster.name}; it has none for clusters with STS.")
        return Kubeconfig(content, hashlib.sha256(text.encode()).hexdigest()[:16])

    def dns(self, observed: ObservedCluster) -> str:
        cluster = self._cluster.usable(observed)
        for ingress in self._connection.api.list_all(f"{path_of(cluster)}/ingresses", f"list ingresses of {self._cluster.name}"):
            if ingress.get("default") and ingress.get("dns_name"):
                return str(ingress["dns_name"])
        raise NotReadyYet(f"The ingress of {self._cluster.name} has no DNS name yet.")

    def cloud_providers(self) -> list[str]:
        return sorted(str(item["id"]) for item in self._connection.api.list_all("cloud_providers", "list cloud providers"))

    def regions(self, cloud_provider: str) -> list[Region]:
        found = self._connection.api.list_all(f"cloud_providers/{segment(cloud_provider)}/regions", f"list regions of {cloud_provider}")
        usable = [item for item in found if item.get("enabled")]
        return [Region(str(item["id"]), str(item.get("display_name") or ""), bool(item.get("supports_multi_az"))) for item in usable]

    def add_identity_provider(self, observed: ObservedCluster, identity_provider: IdentityProvider) -> None:
        if identity_provider.type not in TYPES:
            raise NotSupported(self.TYPE, f"identity providers of the type {identity_provider.type}, only of {', '.join(TYPES)}")
        providers = IdentityProviders(self._cluster.service, path_of(self._cluster.usable(observed)))
        self.changes += providers.apply(identity_provider, self._secret, self.writer)

    def remove_identity_provider(self, observed: ObservedCluster, name: str) -> None:
        IdentityProviders(self._cluster.service, path_of(self._cluster.usable(observed))).remove(name)

    def apply_resources(self, observed: ObservedCluster, resource_set: ResourceSet) -> None:
        Syncsets(self._cluster.service, path_of(self._cluster.usable(observed))).apply(resource_set)

    def remove_resources(self, observed: ObservedCluster, name: str) -> bool:
        cluster = self._cluster.find(observed) if self._secret.exists else None
        return cluster is None or Syncsets(self._cluster.service, path_of(cluster)).remove(name)

    def install_addon(self, observed: ObservedCluster, addon: Addon) -> bool:
        return install_addon(self._cluster.service, path_of(self._cluster.usable(observed)), addon)

    # What it works with

    @property
    def _cluster(self) -> ServiceCluster:
        """It is not kept: it refers to the provider, and connections of a cycle stay open until the next garbage collection."""
        return ServiceCluster(self, self._connection)

    @property
    def _secret(self) -> AccessSecret:
        return self._connection.secret
