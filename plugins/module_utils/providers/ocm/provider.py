# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The provider of clusters that OpenShift Cluster Manager creates: OpenShift Dedicated, and ROSA in the customer's own account.

A cluster is found by its id, and without one by its name, which is derived from its reference and the hub: a run that was killed after
it had requested the cluster finds it again, and never requests two. Machine pools, identity providers and what is installed into a
cluster are in files of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

from ...common import bounded_yaml
from ...common.timestamps import format_time
from ...common.types import Object
from ...kube.errors import Conflict, Invalid, NotFound
from ...lock.fenced_writer import holds
from ..base import NoSuchCluster, NotReadyYet, NotSupported, Provider, ProviderError
from ..model import Addon, ClusterRequest, IdentityProvider, Kubeconfig, ObservedCluster, Region, ResourceSet
from .account import account_record, require_recorded_account
from .api import Access, OcmApi, segment
from .arguments import SECRETS, SETTINGS, access_of
from .fenced_api import FencedApi
from .identity import TYPES, IdentityProviders
from .model import OWNER, STATES, cluster_name, is_upgrade, new_cluster, observed_cluster, owner_of, properties, refused_change
from .pools import MachinePools, Pool, requested_nodes, wanted_pools
from .resources import Syncsets, install_addon
from .secret import AccessSecret

# The service accepts no upgrade that would start in less than five minutes.
UPGRADE_NOTICE = timedelta(minutes=10)


class ClusterProvider(Provider):
    """One cluster of OpenShift Cluster Manager, whose token is in the Secret `<name>-ocm` beside it."""

    TYPE: ClassVar[str] = "ocm"
    SETTINGS: ClassVar[Mapping[str, Any]] = SETTINGS
    SECRETS: ClassVar[Mapping[str, Any]] = SECRETS

    def use_credentials_of(self, request: ClusterRequest) -> None:
        self._api = OcmApi(Access(**access_of(request, self._secret)))
        self._api.hide(str(value) for value in request.secrets.values() if value)

    # The cluster

    def create(self, request: ClusterRequest) -> ObservedCluster:
        body = new_cluster(self._name, self._owner, request, self.ref.class_label)
        writer = self.writer
        self.use_credentials_of(request)
        # Looked up before anything is written: wrong credentials change nothing.
        cluster = self._find(ObservedCluster())
        if cluster is not None:
            self._require_secret()
        if cluster is None or not self._secret.exists:
            self.changes += self._secret.record(writer, self._access_record(request), requested_nodes(wanted_pools(request)))
        return self._observed(cluster or self._create(body))

    def update(self, observed: ObservedCluster, request: ClusterRequest) -> ObservedCluster:
        writer, wanted = self.writer, wanted_pools(request)
        self.use_credentials_of(request)
        cluster = self._existing(observed)
        if problem := refused_change(cluster, request):
            raise Invalid(f"The cluster {self._name} cannot be changed like that: {problem}. Create another one.", [])
        self.changes += self._secret.record(writer, self._access_record(request), requested_nodes(wanted))
        state = STATES.get(str(cluster.get("state")))
        if state in ("failed", "deprovisioning"):
            return self._observed(cluster)
        present = cluster.get("properties") or {}
        if not holds(present, properties(self._owner, request)):
            changed = {"properties": {**present, **properties(self._owner, request)}}
            self._service.patch(_path(cluster), "Cluster", self._name, cluster, changed)
        upgrading = is_upgrade(cluster, request.version)
        if state == "ready":
            self._pools(cluster).reconcile(wanted)
            if upgrading:
                self._upgrade(cluster, request.version)
        elif upgrading or not self._pools(cluster).have_sizes(wanted):
            raise NotReadyYet(f"The cluster {self._name} is in the state {cluster.get('state')}, and is changed when it is ready.")
        now = self._observed(cluster if self.ref.check_mode else self._api.get(_path(cluster), f"get cluster {self._name}"))
        return replace(now, updating=now.updating or upgrading)

    def delete(self, observed: ObservedCluster) -> bool:
        writer = self.writer
        if not self._secret.exists:
            return True
        cluster = self._find(observed)
        if cluster is None:
            self.changes += self._secret.remove(writer)
            return True
        if seen_by := account_record(self._api, self._secret):
            # By this account the service will say when the cluster is gone.
            self.changes += self._secret.record(writer, seen_by)
        if cluster.get("state") != "uninstalling":
            self._service.delete(_path(cluster), "Cluster", self._name, cluster, dry_run=self.ref.check_mode)
        return False

    def status(self, observed: ObservedCluster) -> ObservedCluster:
        cluster = self._find(observed) if self._secret.exists else None
        if cluster is not None:
            return self._observed(cluster)
        if self._secret.exists and observed.internal_id:
            details = f"The Secret {self._secret.name} is not deleted yet"
            return ObservedCluster(internal_id=observed.internal_id, status="cleanup", status_details=details)
        return ObservedCluster()

    def scale(self, observed: ObservedCluster, resource_class: str, nodes: int) -> ObservedCluster:
        cluster = self._usable(observed)
        others = {name: number for name, number in self._secret.requested_nodes.items() if name != resource_class}
        self.changes += self._secret.record(self.writer, {}, others | ({resource_class: nodes} if nodes else {}))
        self._pools(cluster).scale(Pool(resource_class, nodes, bool(cluster.get("multi_az"))))
        return self._observed(cluster)

    # Beside the cluster

    def kubeconfig(self, observed: ObservedCluster) -> Kubeconfig:
        cluster = self._usable(observed)
        text = str(self._api.get(f"{_path(cluster)}/credentials", f"get the kubeconfig of {self._name}").get("kubeconfig") or "")
        try:
            content = bounded_yaml.load(text)
        except bounded_yaml.BadYaml:
            content = None
        if not isinstance(content, dict):
            raise ProviderError(f"OpenShift Cluster Manager has no kubeconfig of {self._name}; it has none for clusters with STS.")
        return Kubeconfig(content, hashlib.sha256(text.encode()).hexdigest()[:16])

    def dns(self, observed: ObservedCluster) -> str:
        cluster = self._usable(observed)
        for ingress in self._api.list_all(f"{_path(cluster)}/ingresses", f"list ingresses of {self._name}"):
            if ingress.get("default") and ingress.get("dns_name"):
                return str(ingress["dns_name"])
        raise NotReadyYet(f"The ingress of {self._name} has no DNS name yet.")

    def cloud_providers(self) -> list[str]:
        return sorted(str(item["id"]) for item in self._api.list_all("cloud_providers", "list cloud providers"))

    def regions(self, cloud_provider: str) -> list[Region]:
        found = self._api.list_all(f"cloud_providers/{segment(cloud_provider)}/regions", f"list regions of {cloud_provider}")
        usable = [item for item in found if item.get("enabled")]
        return [Region(str(item["id"]), str(item.get("display_name") or ""), bool(item.get("supports_multi_az"))) for item in usable]

    def add_identity_provider(self, observed: ObservedCluster, identity_provider: IdentityProvider) -> None:
        if identity_provider.type not in TYPES:
            raise NotSupported(self.TYPE, f"identity providers of the type {identity_provider.type}, only of {', '.join(TYPES)}")
        providers = IdentityProviders(self._service, _path(self._usable(observed)))
        self.changes += providers.apply(identity_provider, self._secret, self.writer)

    def remove_identity_provider(self, observed: ObservedCluster, name: str) -> None:
        IdentityProviders(self._service, _path(self._usable(observed))).remove(name)

    def apply_resources(self, observed: ObservedCluster, resource_set: ResourceSet) -> None:
        Syncsets(self._service, _path(self._usable(observed))).apply(resource_set)

    def remove_resources(self, observed: ObservedCluster, name: str) -> bool:
        cluster = self._find(observed) if self._secret.exists else None
        return cluster is None or Syncsets(self._service, _path(cluster)).remove(name)

    def install_addon(self, observed: ObservedCluster, addon: Addon) -> bool:
        return install_addon(self._service, _path(self._usable(observed)), addon)

    # Names and connections

    @cached_property
    def _owner(self) -> str:
        """The hub is a part of it: two hubs of one organization may have the same namespace and name."""
        return owner_of(self.ref.kube.cluster_id(), self.ref.namespace, self.ref.name)

    @cached_property
    def _name(self) -> str:
        return cluster_name(self._owner)

    @cached_property
    def _secret(self) -> AccessSecret:
        return AccessSecret(self.ref)

    @cached_property
    def _api(self) -> OcmApi:
        return OcmApi(self._secret.access())

    @property
    def _service(self) -> FencedApi:
        return FencedApi(self._api, self, self._name)

    def _access_record(self, request: ClusterRequest) -> dict[str, str]:
        return access_of(request, self._secret) | account_record(self._api, self._secret)

    def _pools(self, cluster: Object) -> MachinePools:
        return MachinePools(self._service, _path(cluster), self.ref.class_label)

    # The cluster at the service

    def _find(self, observed: ObservedCluster) -> Object | None:
        found = None
        if observed.internal_id:
            found = self._api.find(f"clusters/{segment(observed.internal_id)}", f"get cluster {self._name}")
        if found is None:
            named = self._api.list_all("clusters", f"find cluster {self._name}", f"name = '{self._name}'")
            found = named[0] if named else None
            if found and (found.get("properties") or {}).get(OWNER) != self._owner:
                raise ProviderError(
                    f"OpenShift Cluster Manager has a cluster {self._name} that was not created for {self._owner}; it is skipped. "
                    "Rename or delete it there."
                )
        if found is None:
            require_recorded_account(self._api, self._secret, self._name)
        return found

    def _require_secret(self) -> None:
        """The Secret is written before the request, so a cluster without one is that of an earlier order of the same name.

        It is read again: another run may have written it after this one began.
        """
        if not self._secret.exists and not AccessSecret(self.ref).exists:
            raise ProviderError(
                f"OpenShift Cluster Manager has a cluster {self._name} of {self._owner}, but the Secret {self._secret.reference} of that "
                "cluster does not exist: it may belong to an earlier order of this name. Delete the cluster there; or, to adopt it, "
                "create the Secret with an offline token as token."
            )

    def _existing(self, observed: ObservedCluster) -> Object:
        found = self._find(observed)
        if found is None:
            raise NoSuchCluster(f"OpenShift Cluster Manager has no cluster {self._name} for {self._owner}.")
        return found

    def _usable(self, observed: ObservedCluster) -> Object:
        """The cluster, if its state allows changes."""
        found = self._existing(observed)
        state = str(found.get("state"))
        if STATES.get(state) in ("failed", "deprovisioning"):
            raise NoSuchCluster(f"The cluster {self._name} is in the state {state}, in which it can only be deleted.")
        if STATES.get(state) != "ready":
            raise NotReadyYet(f"The cluster {self._name} is in the state {state}; try again when it is ready.")
        return found

    def _create(self, body: Object) -> Object:
        try:
            created = self._service.post("clusters", "Cluster", self._name, body, dry_run=self.ref.check_mode)
        except (Conflict, Invalid):
            # Another run may have been faster: the service accepts a name only once.
            found = self._find(ObservedCluster())
            if found is None:
                raise
            return found
        # The id in the response to a dry run finds nothing.
        return {"state": "pending", **created} if not self.ref.check_mode else {**body, "state": "pending"}

    def _observed(self, cluster: Object) -> ObservedCluster:
        try:
            pools = self._pools(cluster).all() if "id" in cluster else []
        except NotFound:
            # The cluster was deleted meanwhile, as the next status will show.
            pools = []
        return observed_cluster(cluster, pools, self.ref.class_label, self._secret.requested_nodes)

    def _upgrade(self, cluster: Object, version: str) -> None:
        path = f"{_path(cluster)}/upgrade_policies"
        if not any(policy.get("version") == version for policy in self._api.list_all(path, f"list upgrades of {self._name}")):
            start = format_time(datetime.now(UTC) + UPGRADE_NOTICE)
            body = {"schedule_type": "manual", "upgrade_type": "OSD", "version": version, "next_run": start}
            self._service.post(path, "UpgradePolicy", version, body)


def _path(cluster: Object) -> str:
    return f"clusters/{segment(str(cluster['id']))}"
