# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The whole step of GitOps for one cluster: what its order asks for, applied as far as possible now, and what Flux reports of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..infrastructure.cluster_parts import NOT_YET, not_yet
from ..infrastructure.part_state import PartState
from ..kube.connections import check_allowed
from ..kube.errors import AddressNotAllowed, Invalid
from ..kube.transport import CONNECT_SECONDS
from ..providers.base import Provider
from ..providers.model import UNKNOWN, ConditionState, ObservedCluster
from .flux_manifests import FluxManifests, ManifestSource, read_manifests
from .from_hub import apply_from_hub, remove_from_hub
from .in_cluster import apply_in_cluster, remove_from_cluster
from .notification_key import address_of, ensure_site_key, find_site_key, key_of
from .observe import observe_conditions
from .profiles.lock_file import ProfilesLock
from .request import GitOpsRequest, GitSource, Notifications, secret_data

HUB = "hub"


@dataclass(frozen=True)
class GitOpsOptions:
    """The options of the task, checked before anything is read or written."""

    from_hub: bool = False
    manifests: ManifestSource | None = None
    source: GitSource | None = None
    notifications: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> GitOpsOptions:
        from_hub = parameters["mode"] == HUB
        if parameters["state"] == "absent":
            return cls(from_hub)
        if not from_hub and not parameters["manifests"]:
            raise Invalid("manifests is required: name the manifests of Flux and their digest, or use the mode hub.", ["manifests"])
        return cls(
            from_hub,
            ManifestSource.of(parameters["manifests"]) if parameters["manifests"] and not from_hub else None,
            GitSource.of(parameters["source"]) if parameters["source"] else None,
            parameters["notifications"],
        )


@dataclass(frozen=True)
class GitOpsOwner:
    """For whom the step is: the namespace of its Secrets, the namespace of the site, and of an order its uid and its profiles.

    `is_deleting`: the cluster is being deleted too.
    """

    namespace: str
    site_namespace: str
    uid: str = ""
    lock: ProfilesLock = field(default_factory=ProfilesLock)
    is_deleting: bool = False


class GitOpsStep:
    """The step under the lock of the cluster, which its provider finds by what is `recorded` of it."""

    def __init__(self, provider: Provider, recorded: ObservedCluster, owner: GitOpsOwner, options: GitOpsOptions) -> None:
        self._provider = provider
        self._recorded = recorded
        self._owner = owner
        self._options = options
        self._hub = provider.ref.kube

    def apply(self) -> tuple[PartState, dict[str, ConditionState]]:
        """Whether everything is applied, and the conditions that are used. What cannot be applied yet is no failure."""
        request, manifests = self._request(), self._manifests()
        used = request.conditions(from_hub=self._options.from_hub)
        try:
            cluster = self._provider.status(self._recorded)
            part = self._apply(cluster, manifests, request)
            return part, observe_conditions(self._provider, cluster, used, request.lock)
        except NOT_YET as error:
            part = not_yet(error)
            return part, {kind: ConditionState(UNKNOWN, part.reason, part.message) for kind in used}

    def remove(self) -> PartState:
        try:
            if self._options.from_hub:
                return remove_from_hub(self._provider, with_cluster=self._owner.is_deleting)
            cluster = self._provider.status(self._recorded)
            # Without a cluster there is nothing in it.
            return remove_from_cluster(self._provider, cluster) if cluster.exists else PartState(True, "Removed")
        except NOT_YET as error:
            return not_yet(error)

    def _apply(self, cluster: ObservedCluster, manifests: FluxManifests | None, request: GitOpsRequest) -> PartState:
        if manifests is None:
            return apply_from_hub(self._provider, cluster, request)
        return apply_in_cluster(self._provider, cluster, manifests, request)

    def _manifests(self) -> FluxManifests | None:
        return read_manifests(self._options.manifests) if self._options.manifests else None

    def _request(self) -> GitOpsRequest:
        source, namespace = self._options.source, self._owner.namespace
        secret: dict[str, str] = {}
        if source and self._options.from_hub:
            self._check_host(source.host)
        if source and source.secret:
            secret = secret_data(source, self._hub.find("v1", "Secret", source.secret, namespace), namespace)
        return GitOpsRequest(source, secret, self._owner.lock, self._notifications())

    def _check_host(self, host: str) -> None:
        """Flux of the hub connects to it for a tenant, and resolves the name each time: an address that was checked here says little."""
        allowed = self._provider.ref.allowed_addresses
        if not allowed.allow_host(host):
            raise AddressNotAllowed(host)
        check_allowed(host, allowed, CONNECT_SECONDS)

    def _notifications(self) -> Notifications | None:
        """Those of an order: its uid is the address that the engine finds it by."""
        given, uid, site = self._options.notifications, self._owner.uid, self._owner.site_namespace
        if not given or not uid:
            return None
        site_key = find_site_key(self._hub, site) if self._provider.ref.check_mode else ensure_site_key(self._hub, site)
        return Notifications(address_of(str(given["address"]), uid), key_of(site_key, uid), str(given.get("ca") or ""))
