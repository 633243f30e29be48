# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Registries on the hub, in either form: find, change, remove, write what was found, and read a DRPolicy's clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import NotFound
from .model import (
    API_VERSION,
    CONFIG_MAP,
    KINDS,
    LABEL,
    BadRegistry,
    ClusterHealth,
    ClusterRegistry,
    RegisteredCluster,
    next_status,
    with_clusters,
    without_clusters,
    without_times,
)


@dataclass(frozen=True)
class RegistryChange:
    """A registry before and after; None where there is none. `changed` leaves out when clusters were seen."""

    changed: bool
    before: ClusterRegistry | None
    after: ClusterRegistry | None


class RegistryStore:
    """The registries of one kind. In check mode the hub judges what would be written, and keeps nothing."""

    def __init__(self, hub: Kube, kind: str, check_mode: bool = False) -> None:
        self._hub = hub
        self._kind = kind
        self._check_mode = check_mode

    def find(self, namespace: str, name: str) -> ClusterRegistry | None:
        item = self._hub.find(KINDS[self._kind], self._kind, name, namespace)
        return ClusterRegistry.from_object(item) if item else None

    def get(self, namespace: str, name: str) -> ClusterRegistry:
        registry = self.find(namespace, name)
        if registry is None:
            raise NotFound(f"There is no {self._kind} {namespace}/{name}; make it with state=present, or check the names.")
        return registry

    def all(self, namespace: str | None, warn: Callable[[str], None]) -> list[ClusterRegistry]:
        """All that can be read. Of one that cannot `warn` is told: who spoils a registry in one namespace takes none from the others."""
        selector = f"{LABEL}=true" if self._kind == CONFIG_MAP else ""
        registries = []
        for item in self._hub.list_all(KINDS[self._kind], self._kind, namespace, selector):
            try:
                registries.append(ClusterRegistry.from_object(item))
            except BadRegistry as error:
                warn(f"A registry is left out: {error}")
        return registries

    def register(self, namespace: str, name: str, wanted: Sequence[Mapping[str, Any]]) -> RegistryChange:
        """Have these clusters in the registry, which is made if need be. Other clusters in it stay."""

        def change(registry: ClusterRegistry) -> tuple[RegisteredCluster, ...]:
            return with_clusters(registry.clusters, wanted, registry.called)

        return retry_on_conflict(lambda: self._change(namespace, name, change, create=True))

    def unregister(self, namespace: str, name: str, clusters: Sequence[str]) -> RegistryChange:
        """Have none of these clusters in the registry."""
        return retry_on_conflict(
            lambda: self._change(namespace, name, lambda registry: without_clusters(registry.clusters, clusters), create=False)
        )

    def remove(self, namespace: str, name: str) -> RegistryChange:
        """Have no such registry. The Secrets that it names stay."""
        registry = self.find(namespace, name)
        if registry is None:
            return RegistryChange(False, None, None)
        self._refuse_another(registry)
        return RegistryChange(self._hub.delete(registry.raw, checked=True, dry_run=self._check_mode), registry, None)

    def record(self, namespace: str, name: str, found: Mapping[str, ClusterHealth], now: datetime) -> RegistryChange:
        """Write how the clusters were found."""
        return retry_on_conflict(lambda: self._record(self.get(namespace, name), found, now))

    def _change(
        self, namespace: str, name: str, change: Callable[[ClusterRegistry], tuple[RegisteredCluster, ...]], *, create: bool
    ) -> RegistryChange:
        before = self.find(namespace, name)
        if before is None:
            if not create:
                return RegistryChange(False, None, None)
            made = ClusterRegistry(namespace, name, self._kind)
            made = replace(made, clusters=change(made))
            return RegistryChange(True, None, ClusterRegistry.from_object(self._hub.create(made.to_object(), dry_run=self._check_mode)))
        self._refuse_another(before)
        after = replace(before, clusters=change(before))
        if after == before:
            return RegistryChange(False, before, before)
        written = self._hub.patch(before.raw, after.spec_change(), dry_run=self._check_mode)
        return RegistryChange(True, before, ClusterRegistry.from_object(written))

    def _record(self, registry: ClusterRegistry, found: Mapping[str, ClusterHealth], now: datetime) -> RegistryChange:
        self._refuse_another(registry)
        before, status = registry.status, next_status(registry, found, now)
        if before == status:
            return RegistryChange(False, registry, registry)
        subresource = "" if self._kind == CONFIG_MAP else "status"
        written = self._hub.patch(registry.raw, registry.status_change(status), subresource=subresource, dry_run=self._check_mode)
        return RegistryChange(without_times(before) != without_times(status), registry, ClusterRegistry.from_object(written))

    def _refuse_another(self, registry: ClusterRegistry) -> None:
        """A ConfigMap that does not say that it is a registry is somebody else's, and stays as it is."""
        if self._kind == CONFIG_MAP and (registry.raw["metadata"].get("labels") or {}).get(LABEL) != "true":
            raise BadRegistry(f"{registry.called} is no registry: it lacks the label {LABEL}=true. Give it that, or choose another name.")


def clusters_of_policy(hub: Kube, policy: str) -> list[Object]:
    """The clusters of a DRPolicy, each with the region of its DRCluster, as clusters to register."""
    item = hub.get(API_VERSION, "DRPolicy", policy)
    found = []
    for name in item["spec"].get("drClusters") or []:
        cluster = hub.find(API_VERSION, "DRCluster", name)
        if cluster is None:
            raise BadRegistry(f"DRPolicy {policy} names the cluster {name}, of which there is no DRCluster; make that first.")
        found.append({"name": name, "region": (cluster.get("spec") or {}).get("region") or None})
    return found
