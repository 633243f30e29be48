# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A registry of clusters and the health of each. It sends no requests.

A registry has one of two forms: a ClusterRegistry with a status, or, on a hub without the CRD, a ConfigMap with both
parts as YAML under the keys `clusters` and `status`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from ..common import bounded_yaml
from ..common.third_party import yaml
from ..common.timestamps import format_time
from ..common.types import Object
from ..kube.errors import KubeError
from ..kube.kinds import register
from .health import ClusterHealth

GROUP = "ramendr.openshift.io"
API_VERSION = f"{GROUP}/v1alpha1"
REGISTRY, CONFIG_MAP = "ClusterRegistry", "ConfigMap"
KINDS = {REGISTRY: API_VERSION, CONFIG_MAP: "v1"}
register(GROUP, REGISTRY, "clusterregistries")
register(GROUP, "DRCluster", "drclusters", namespaced=False)
register(GROUP, "DRPolicy", "drpolicies", namespaced=False)
# Marks a ConfigMap as a registry. Others are never read.
LABEL = "ramendr.openshift.io/cluster-registry"

MAX_CLUSTERS = 1000
MAX_BYTES, MAX_NODES = 2**20, 50 * MAX_CLUSTERS  # of the YAML in a ConfigMap
# The same patterns as in the CRD.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
REGION = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
SECRET = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class BadRegistry(KubeError):
    """The registry, or a change of it, is invalid. The message says what to change."""


@dataclass(frozen=True)
class RegisteredCluster:
    """A cluster and how to reach it. An empty region is unset; an empty endpoint means the one in the kubeconfig."""

    name: str
    kubeconfig_secret: str
    region: str = ""
    endpoint: str = ""

    @classmethod
    def from_object(cls, entry: Any, where: str) -> RegisteredCluster:
        """Parse an entry of the list of clusters, whose Secret may also be only a name. BadRegistry for an entry that is invalid."""
        secret = entry.get("kubeconfigSecret") if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or not isinstance(secret, Mapping | str):
            raise BadRegistry(f"{where} has an invalid entry: a cluster needs a name and a kubeconfigSecret with a name.")
        named = secret if isinstance(secret, str) else secret.get("name")
        values = [entry.get("name"), named, entry.get("region") or "", entry.get("endpoint") or ""]
        if not all(isinstance(value, str) for value in values):
            raise BadRegistry(f"{where} has a cluster whose name, secret, region or endpoint is not a string.")
        cluster = cls(*map(str, values))
        cluster.check(where)
        return cluster

    def check(self, where: str) -> None:
        if not NAME.fullmatch(self.name):
            raise BadRegistry(f"{where}: {self.name!r} is not a valid cluster name: use at most 63 lower-case letters, digits and dashes.")
        if not SECRET.fullmatch(self.kubeconfig_secret):
            raise BadRegistry(f"{where}: {self.kubeconfig_secret!r} is not a valid name for the Secret of cluster {self.name}.")
        if self.region and not REGION.fullmatch(self.region):
            raise BadRegistry(
                f"{where}: {self.region!r} is not a valid region for cluster {self.name}: use at most 63 letters, digits, -, _ and ."
            )
        if self.endpoint and not _is_endpoint(self.endpoint):
            raise BadRegistry(
                f"{where}: the endpoint of cluster {self.name} is not the address of an API server: write one like https://api.example.com:6443."
            )

    def to_object(self) -> Object:
        entry: Object = {"name": self.name}
        if self.region:
            entry["region"] = self.region
        if self.endpoint:
            entry["endpoint"] = self.endpoint
        return entry | {"kubeconfigSecret": {"name": self.kubeconfig_secret}}


@dataclass(frozen=True)
class ClusterRegistry:
    """A registry on the hub. `health` has the health of the clusters by their names."""

    namespace: str
    name: str
    kind: str = REGISTRY
    clusters: tuple[RegisteredCluster, ...] = ()
    health: Mapping[str, ClusterHealth] = field(default_factory=dict)
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_object(cls, item: Object) -> ClusterRegistry:
        metadata, kind = item["metadata"], item["kind"]
        where = f"{kind} {metadata['namespace']}/{metadata['name']}"
        entries, status = _entries(item, where), item.get("status") or {}
        if kind == CONFIG_MAP:
            status = _parse_yaml(item.get("data") or {}, "status", where) or {}
        if not isinstance(entries, list | None) or not isinstance(status, Mapping) or not isinstance(status.get("clusters", []), list):
            raise BadRegistry(f"{where} is not a registry: clusters must be a list, and status an object with a list of clusters.")
        clusters = [RegisteredCluster.from_object(entry, where) for entry in entries or []]
        if repeated := _repeated(cluster.name for cluster in clusters):
            raise BadRegistry(f"{where} has the cluster {repeated} twice: remove one.")
        health = {
            str(entry["name"]): ClusterHealth.from_status(entry)
            for entry in status.get("clusters", [])
            if isinstance(entry, Mapping) and entry.get("name")
        }
        return cls(metadata["namespace"], metadata["name"], kind, tuple(clusters), health, item)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def status(self) -> Object:
        if self.kind == CONFIG_MAP:
            status = _parse_yaml(self.raw.get("data") or {}, "status", str(self)) or {}
            return dict(status)
        return dict(self.raw.get("status") or {})

    def to_object(self) -> Object:
        """A new object with these clusters."""
        item: Object = {"apiVersion": KINDS[self.kind], "kind": self.kind, "metadata": {"name": self.name, "namespace": self.namespace}}
        if self.kind == CONFIG_MAP:
            item["metadata"]["labels"] = {LABEL: "true"}
        return item | self.spec_change()

    def spec_change(self) -> Object:
        """The part of the object that has the clusters. The entry of an unchanged cluster stays as it was written."""
        written = {
            RegisteredCluster.from_object(entry, str(self)): entry for entry in (_entries(self.raw, str(self)) if self.raw else None) or []
        }
        entries = [written.get(cluster) or cluster.to_object() for cluster in self.clusters]
        return {"data": {"clusters": to_yaml(entries)}} if self.kind == CONFIG_MAP else {"spec": {"clusters": entries}}

    def status_change(self, status: Object) -> Object:
        """The part of the object that has the status."""
        return {"data": {"status": to_yaml(status)}} if self.kind == CONFIG_MAP else {"status": status}


def with_clusters(present: Sequence[RegisteredCluster], wanted: Sequence[Mapping[str, Any]], where: str) -> tuple[RegisteredCluster, ...]:
    """Add or update clusters. Fields that an entry does not set stay unchanged."""
    if repeated := _repeated(str(entry["name"]) for entry in wanted):
        raise BadRegistry(f"The cluster {repeated} is named twice: name it once.")
    clusters = {cluster.name: cluster for cluster in present}
    for entry in wanted:
        name = entry["name"]
        known = clusters.get(name, RegisteredCluster(name, f"{name}-kubeconfig"))
        changes = {key: str(value) for key, value in entry.items() if value is not None}
        clusters[name] = replace(known, **changes)
        clusters[name].check(where)
    if len(clusters) > MAX_CLUSTERS:
        raise BadRegistry(f"{where} would have {len(clusters)} clusters, more than {MAX_CLUSTERS}: create a second registry.")
    return tuple(clusters.values())


def without_clusters(present: Sequence[RegisteredCluster], names: Iterable[str]) -> tuple[RegisteredCluster, ...]:
    removed = set(names)
    return tuple(cluster for cluster in present if cluster.name not in removed)


def registry_result(registry: ClusterRegistry) -> Object:
    """A registry as tasks return it."""
    clusters = [cluster_result(cluster, registry.health.get(cluster.name)) for cluster in registry.clusters]
    return {"name": registry.name, "namespace": registry.namespace, "kind": registry.kind, "clusters": clusters}


def cluster_result(cluster: RegisteredCluster, health: ClusterHealth | None) -> Object:
    known = health or ClusterHealth("")
    return asdict(cluster) | {
        "healthy": health.healthy if health else None,
        "reachable": known.reachable,
        "authenticated": known.authenticated,
        "version": known.version,
        "last_seen": format_time(known.last_seen) if known.last_seen else None,
        "credentials_expire": format_time(known.credentials_expire) if known.credentials_expire else None,
        "reason": known.reason,
        "message": known.message,
    }


def _entries(item: Object, where: str) -> Any:
    """The list of clusters as it is written in either form."""
    if item["kind"] == CONFIG_MAP:
        return _parse_yaml(item.get("data") or {}, "clusters", where)
    return (item.get("spec") or {}).get("clusters")


def to_yaml(value: Any) -> str:
    return str(yaml.safe_dump(value, sort_keys=False))


def _parse_yaml(data: Mapping[str, Any], key: str, where: str) -> Any:
    try:
        return bounded_yaml.load(data.get(key, ""), MAX_BYTES, MAX_NODES)
    except bounded_yaml.BadYaml as error:
        raise BadRegistry(f"{where} has invalid YAML under the key {key}, which {error}: correct it.") from None


def _repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _is_endpoint(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme == "https" and bool(parts.hostname) and parts.port != 0 and not set("@?# \t\n") & set(text)
    except ValueError:
        return False
