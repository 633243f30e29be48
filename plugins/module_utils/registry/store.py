# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Registries on the hub, in either form: reads, changes and deletes them, writes their status, reads DRPolicies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ..common.types import Object
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import NotFound
from .health import ClusterHealth
from .model import (
    API_VERSION,
    CONFIG_MAP,
    KINDS,
    LABEL,
    BadRegistry,
    ClusterRegistry,
    RegisteredCluster,
    with_clusters,
    without_clusters,
)
from .status import LAST_SEEN_INTERVAL, next_status, without_times


@dataclass(frozen=True)
class RegistryChange:
    """A registry before and after a change; None if it does not exist. `changed` ignores lastSeen."""

    changed: bool
    before: ClusterRegistry | None
    after: ClusterRegistry | None


class RegistryStore:
    """The registries of one kind. In check mode each write is a dry run."""

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
            raise NotFound(f"{self._kind} {namespace}/{name} does not exist: create it with state=present, or check the names.")
        return registry

    def list_valid(self, namespace: str | None, warn: Callable[[str], None]) -> list[ClusterRegistry]:
        """All valid registries. Calls `warn` for an invalid one, so that it does not hide those of other namespaces."""
        selector = f"{LABEL}=true" if self._kind == CONFIG_MAP else ""
        registries = []
        for item in self._hub.list_all(KINDS[self._kind], self._kind, namespace, selector):
            try:
                registries.append(ClusterRegistry.from_object(item))
            except BadRegistry as error:
                warn(f"Skipped an invalid registry: {error}")
        return registries

    def register(self, namespace: str, name: str, wanted: Sequence[Mapping[str, Any]]) -> RegistryChange:
        """Add or update these clusters. Creates the registry if needed. Other clusters stay."""

        def change(registry: ClusterRegistry) -> tuple[RegisteredCluster, ...]:
            return with_clusters(registry.clusters, wanted, str(registry))

        return retry_on_conflict(lambda: self._change(namespace, name, change, create=True))

    def unregister(self, namespace: str, name: str, clusters: Sequence[str]) -> RegistryChange:
        """Remove these clusters from the registry."""
        return retry_on_conflict(
            lambda: self._change(namespace, name, lambda registry: without_clusters(registry.clusters, clusters), create=False)
        )

    def delete(self, namespace: str, name: str) -> RegistryChange:
        """Delete the registry. Its Secrets stay."""
        registry = self.find(namespace, name)
        if registry is None:
            return RegistryChange(False, None, None)
        self._require_label(registry)
        return RegistryChange(self._hub.delete(registry.raw, checked=True, dry_run=self._check_mode), registry, None)

    def write_status(
        self, namespace: str, name: str, checked: Mapping[str, ClusterHealth], now: datetime, interval: timedelta = LAST_SEEN_INTERVAL
    ) -> RegistryChange:
        """Write the results of a health check. One that differs only in lastSeen is written once in `interval`."""
        return retry_on_conflict(lambda: self._write_status(self.get(namespace, name), checked, now, interval))

    def _change(
        self, namespace: str, name: str, change: Callable[[ClusterRegistry], tuple[RegisteredCluster, ...]], *, create: bool
    ) -> RegistryChange:
        before = self.find(namespace, name)
        if before is None:
            if not create:
                return RegistryChange(False, None, None)
            new = ClusterRegistry(namespace, name, self._kind)
            new = replace(new, clusters=change(new))
            return RegistryChange(True, None, ClusterRegistry.from_object(self._hub.create(new.to_object(), dry_run=self._check_mode)))
        self._require_label(before)
        after = replace(before, clusters=change(before))
        if after == before:
            return RegistryChange(False, before, before)
        written = self._hub.patch(before.raw, after.spec_change(), dry_run=self._check_mode)
        return RegistryChange(True, before, ClusterRegistry.from_object(written))

    def _write_status(
        self, registry: ClusterRegistry, checked: Mapping[str, ClusterHealth], now: datetime, interval: timedelta
    ) -> RegistryChange:
        self._require_label(registry)
        before, status = registry.status, next_status(registry, checked, now, interval)
        if before == status:
            return RegistryChange(False, registry, registry)
        subresource = "" if self._kind == CONFIG_MAP else "status"
        written = self._hub.patch(registry.raw, registry.status_change(status), subresource=subresource, dry_run=self._check_mode)
        return RegistryChange(without_times(before) != without_times(status), registry, ClusterRegistry.from_object(written))

    def _require_label(self, registry: ClusterRegistry) -> None:
        """Refuse to change a ConfigMap that is not marked as a registry."""
        if self._kind == CONFIG_MAP and (registry.raw["metadata"].get("labels") or {}).get(LABEL) != "true":
            raise BadRegistry(f"{registry} is not a registry: it lacks the label {LABEL}=true. Add the label, or choose another name.")


def clusters_of_policy(hub: Kube, policy: str) -> list[Object]:
    """The clusters of a DRPolicy as entries to register, each with the region of its DRCluster."""
    item = hub.get(API_VERSION, "DRPolicy", policy)
    entries = []
    for name in item["spec"].get("drClusters") or []:
        cluster = hub.find(API_VERSION, "DRCluster", name)
        if cluster is None:
            raise BadRegistry(f"DRPolicy {policy} names the cluster {name}, which has no DRCluster: create that first.")
        entries.append({"name": name, "region": (cluster.get("spec") or {}).get("region") or None})
    return entries
