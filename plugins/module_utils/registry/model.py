# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A registry of clusters: what it names, and what was found out about each. It talks to nobody.

The same model is kept in two forms: as a ClusterRegistry, with what was found in its status, and as a ConfigMap, for a hub without
the CRD, with both as YAML texts below the keys `clusters` and `status`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from ..common.text import shortened
from ..common.third_party import yaml
from ..common.timestamps import format_time, parse_time
from ..kube.errors import Forbidden, KubeError, NotFound, Unauthorized, Unreachable, Untrusted
from ..kube.kinds import register
from ..kube.untrusted import BadKubeconfig, Expiry

Object = dict[str, Any]

GROUP = "ramendr.openshift.io"
API_VERSION = f"{GROUP}/v1alpha1"
REGISTRY, CONFIG_MAP = "ClusterRegistry", "ConfigMap"
KINDS = {REGISTRY: API_VERSION, CONFIG_MAP: "v1"}
register(GROUP, REGISTRY, "clusterregistries")
register(GROUP, "DRCluster", "drclusters", namespaced=False)
register(GROUP, "DRPolicy", "drpolicies", namespaced=False)
# A ConfigMap that is a registry says so; others are never looked into.
LABEL = "ramendr.openshift.io/cluster-registry"

HEALTHY, EXPIRING = "Healthy", "CredentialsExpiring"
UNREACHABLE, UNTRUSTED, UNAUTHORIZED, FORBIDDEN = "Unreachable", "Untrusted", "Unauthorized", "Forbidden"
SECRET_NOT_FOUND, BAD_KUBECONFIG, SERVER_ERROR = "SecretNotFound", "BadKubeconfig", "ServerError"
WARN_AHEAD = timedelta(days=14)
# Time alone is no news: a status in which nothing but the time is older is not written again.
LAST_SEEN_STEP = timedelta(minutes=1)

MESSAGE_LIMIT, SUMMARY_LIMIT, VERSION_LIMIT = 1024, 32768, 255
MOST_CLUSTERS = 1000
# As the CRD has them.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
REGION = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
SECRET = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class BadRegistry(KubeError):
    """What is registered, or is to be, cannot be; the text says what to change."""


class SecretNotFound(NotFound):
    """The Secret that a registered cluster names is not there."""


@dataclass(frozen=True)
class RegisteredCluster:
    """A cluster and how to reach it. An empty region is none; without an endpoint the kubeconfig's own is used."""

    name: str
    kubeconfig_secret: str
    region: str = ""
    endpoint: str = ""

    @classmethod
    def from_object(cls, entry: Any, where: str) -> RegisteredCluster:
        """An entry of the list of clusters; BadRegistry for what the CRD would not let pass."""
        secret = entry.get("kubeconfigSecret") if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or not isinstance(secret, Mapping):
            raise BadRegistry(f"{where} has an entry that is no cluster: each has a name and a kubeconfigSecret with a name.")
        texts = [entry.get("name"), secret.get("name"), entry.get("region") or "", entry.get("endpoint") or ""]
        if not all(isinstance(text, str) for text in texts):
            raise BadRegistry(f"{where} has a cluster whose name, secret, region or endpoint is no text.")
        cluster = cls(*map(str, texts))
        cluster.check(where)
        return cluster

    def check(self, where: str) -> None:
        if not NAME.fullmatch(self.name):
            raise BadRegistry(f"{where}: {self.name!r} cannot be a cluster's name: lower case letters, digits and dashes, at most 63.")
        if not SECRET.fullmatch(self.kubeconfig_secret):
            raise BadRegistry(f"{where}: {self.kubeconfig_secret!r} cannot be the name of the Secret of cluster {self.name}.")
        if self.region and not REGION.fullmatch(self.region):
            raise BadRegistry(f"{where}: {self.region!r} cannot be the region of cluster {self.name}: letters, digits and -_., at most 63.")
        if self.endpoint and not _is_endpoint(self.endpoint):
            raise BadRegistry(
                f"{where}: the endpoint of cluster {self.name} is not the address of an API server; it looks like https://api.example.com:6443."
            )

    def to_object(self) -> Object:
        entry: Object = {"name": self.name}
        if self.region:
            entry["region"] = self.region
        if self.endpoint:
            entry["endpoint"] = self.endpoint
        return entry | {"kubeconfigSecret": {"name": self.kubeconfig_secret}}


@dataclass(frozen=True)
class ClusterHealth:
    """How a cluster was found. None means that it did not come to that, which is neither yes nor no."""

    reason: str
    reachable: bool | None = None
    authenticated: bool | None = None
    message: str = ""
    version: str = ""
    last_seen: datetime | None = None
    credentials_expire: datetime | None = None

    @property
    def healthy(self) -> bool:
        return self.reason in (HEALTHY, EXPIRING)

    @classmethod
    def of_error(cls, error: KubeError) -> ClusterHealth:
        """What an error says of a cluster. Only no answer at all is called unreachable."""
        text = shortened(str(error), MESSAGE_LIMIT)
        if isinstance(error, SecretNotFound):
            return cls(SECRET_NOT_FOUND, message=text)
        if isinstance(error, BadKubeconfig):
            return cls(BAD_KUBECONFIG, message=text)
        if isinstance(error, Untrusted):
            return cls(UNTRUSTED, reachable=True, message=text)
        if isinstance(error, Unreachable):
            return cls(UNREACHABLE, reachable=False, message=text)
        # Whoever sends credentials that a server does not even look at is anonymous to it, and may do nothing.
        if isinstance(error, Unauthorized) or (isinstance(error, Forbidden) and "system:anonymous" in text):
            return cls(UNAUTHORIZED, reachable=True, authenticated=False, message=text)
        if isinstance(error, Forbidden):
            return cls(FORBIDDEN, reachable=True, authenticated=True, message=text)
        return cls(SERVER_ERROR, reachable=True, message=text)

    def with_expiry(self, expiry: Expiry | None, now: datetime) -> ClusterHealth:
        """The same, with the date of the credentials, and with a word about it where that is near or the reason for all."""
        if expiry is None:
            return self
        dated = replace(self, credentials_expire=expiry.moment)
        day = f"{expiry.moment:%Y-%m-%d %H:%M} UTC"
        if self.reason == HEALTHY and expiry.moment - now < WARN_AHEAD:
            return replace(dated, reason=EXPIRING, message=f"The {expiry.what} expires on {day}; put a new one into the Secret before.")
        if self.reason == UNAUTHORIZED and expiry.moment <= now:
            return replace(dated, message=shortened(f"The {expiry.what} expired on {day}; put a new one into the Secret.", MESSAGE_LIMIT))
        return dated

    @classmethod
    def from_status(cls, entry: Mapping[str, Any]) -> ClusterHealth:
        return cls(
            reason=str(entry.get("reason", "")),
            reachable=entry.get("reachable"),
            authenticated=entry.get("authenticated"),
            message=str(entry.get("message", "")),
            version=str(entry.get("version", "")),
            last_seen=parse_time(str(entry.get("lastSeen", ""))),
            credentials_expire=parse_time(str(entry.get("credentialsExpire", ""))),
        )

    def to_status(self, name: str) -> Object:
        values = {
            "name": name,
            "reachable": self.reachable,
            "authenticated": self.authenticated,
            "version": self.version[:VERSION_LIMIT] or None,
            "lastSeen": format_time(self.last_seen) if self.last_seen else None,
            "credentialsExpire": format_time(self.credentials_expire) if self.credentials_expire else None,
            "reason": self.reason,
            "message": self.message or None,
        }
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class ClusterRegistry:
    """A registry as the hub has it. `health` has what was found out, by the names of the clusters."""

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
        entries: Any = (item.get("spec") or {}).get("clusters")
        status: Any = item.get("status") or {}
        if kind == CONFIG_MAP:
            data = item.get("data") or {}
            entries, status = _text(data, "clusters", where), _text(data, "status", where) or {}
        if not isinstance(entries, list | None) or not isinstance(status, Mapping) or not isinstance(status.get("clusters", []), list):
            raise BadRegistry(f"{where} is no registry: below clusters it has a list of them, and below status what was found.")
        clusters = [RegisteredCluster.from_object(entry, where) for entry in entries or []]
        if repeated := _repeated(cluster.name for cluster in clusters):
            raise BadRegistry(f"{where} has the cluster {repeated} twice; take one out.")
        health = {
            str(entry["name"]): ClusterHealth.from_status(entry)
            for entry in status.get("clusters", [])
            if isinstance(entry, Mapping) and entry.get("name")
        }
        return cls(metadata["namespace"], metadata["name"], kind, tuple(clusters), health, item)

    @property
    def called(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def status(self) -> Object:
        if self.kind == CONFIG_MAP:
            found = _text(self.raw.get("data") or {}, "status", self.called) or {}
            return dict(found)
        return dict(self.raw.get("status") or {})

    def to_object(self) -> Object:
        """A new object with these clusters, as one to create."""
        item: Object = {"apiVersion": KINDS[self.kind], "kind": self.kind, "metadata": {"name": self.name, "namespace": self.namespace}}
        if self.kind == CONFIG_MAP:
            item["metadata"]["labels"] = {LABEL: "true"}
        return item | self.spec_change()

    def spec_change(self) -> Object:
        """The part of the object that names the clusters."""
        entries = [cluster.to_object() for cluster in self.clusters]
        return {"data": {"clusters": as_text(entries)}} if self.kind == CONFIG_MAP else {"spec": {"clusters": entries}}

    def status_change(self, status: Object) -> Object:
        """The part of the object that tells how they were found."""
        return {"data": {"status": as_text(status)}} if self.kind == CONFIG_MAP else {"status": status}


def with_clusters(present: Sequence[RegisteredCluster], wanted: Sequence[Mapping[str, Any]], where: str) -> tuple[RegisteredCluster, ...]:
    """The clusters with those that are wanted among them. What a wanted one leaves open stays as it is."""
    if repeated := _repeated(str(entry["name"]) for entry in wanted):
        raise BadRegistry(f"The cluster {repeated} is named twice; name it once.")
    clusters = {cluster.name: cluster for cluster in present}
    for entry in wanted:
        name = entry["name"]
        known = clusters.get(name, RegisteredCluster(name, f"{name}-kubeconfig"))
        changes = {key: str(value) for key, value in entry.items() if value is not None}
        clusters[name] = replace(known, **changes)
        clusters[name].check(where)
    if len(clusters) > MOST_CLUSTERS:
        raise BadRegistry(f"{where} would have {len(clusters)} clusters; a registry has {MOST_CLUSTERS} at most: make a second one.")
    return tuple(clusters.values())


def without_clusters(present: Sequence[RegisteredCluster], names: Iterable[str]) -> tuple[RegisteredCluster, ...]:
    gone = set(names)
    return tuple(cluster for cluster in present if cluster.name not in gone)


def next_status(registry: ClusterRegistry, found: Mapping[str, ClusterHealth], now: datetime) -> Object:
    """The registry's status after its clusters were looked at. Of a cluster that did not answer, the last that is known stays."""
    health: dict[str, ClusterHealth] = {}
    for cluster in registry.clusters:
        before, new = registry.health.get(cluster.name), found.get(cluster.name)
        if new is None:  # registered while the others were looked at
            if before is not None:
                health[cluster.name] = before
            continue
        seen = before.last_seen if before else None
        if new.reachable and (seen is None or not timedelta(0) <= now - seen < LAST_SEEN_STEP):
            seen = now
        health[cluster.name] = replace(new, last_seen=seen, version=new.version or (before.version if before else ""))
    status: Object = {
        "conditions": [_condition(registry, health, now)],
        "clusters": [entry.to_status(name) for name, entry in health.items()],
    }
    if registry.kind == REGISTRY:
        generation = registry.raw["metadata"]["generation"]
        status["observedGeneration"] = status["conditions"][0]["observedGeneration"] = generation
    return status


def without_times(status: Mapping[str, Any]) -> Object:
    """A status without when clusters were seen: what counts as a change, and is worth to be shown."""
    clusters = [{key: value for key, value in entry.items() if key != "lastSeen"} for entry in status.get("clusters", [])]
    return dict(status) | {"clusters": clusters}


def _condition(registry: ClusterRegistry, health: Mapping[str, ClusterHealth], now: datetime) -> Object:
    by_reason: dict[str, list[str]] = {}
    for name, entry in health.items():
        if entry.reason != HEALTHY:
            by_reason.setdefault(entry.reason, []).append(name)
    well = sum(entry.healthy for entry in health.values())
    status = "True" if well == len(registry.clusters) else "False"
    texts = [f"{well} of {len(registry.clusters)} healthy", *(f"{reason}: {', '.join(names)}" for reason, names in by_reason.items())]
    before: Object = next((item for item in registry.status.get("conditions", []) if item.get("type") == HEALTHY), {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": HEALTHY,
        "status": status,
        "reason": "AllHealthy" if status == "True" else "SomeUnhealthy",
        "message": shortened("; ".join(texts), SUMMARY_LIMIT),
        "lastTransitionTime": since or format_time(now),
    }


def shown(registry: ClusterRegistry) -> Object:
    """A registry for a task's result."""
    clusters = [shown_cluster(cluster, registry.health.get(cluster.name)) for cluster in registry.clusters]
    return {"name": registry.name, "namespace": registry.namespace, "kind": registry.kind, "clusters": clusters}


def shown_cluster(cluster: RegisteredCluster, health: ClusterHealth | None) -> Object:
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


def as_text(value: Any) -> str:
    return str(yaml.safe_dump(value, sort_keys=False))


def _text(data: Mapping[str, Any], key: str, where: str) -> Any:
    try:
        return yaml.safe_load(data.get(key, ""))
    except (yaml.YAMLError, ValueError, RecursionError):
        raise BadRegistry(f"{where} has below {key} what is no YAML; write it anew.") from None


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
