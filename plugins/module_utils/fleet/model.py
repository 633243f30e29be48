# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a fleet as immutable values, parsed from what the API server stores. They send nothing and decide nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..providers.model import TRUE
from .kinds import ADOPT_ORDER, API_VERSION, ASSIGNMENT, CLUSTER, HUB_NAMESPACE_PREFIX, RETRY, SECRETS_VERSION, hub_namespace

PENDING, PROGRESSING, READY, DEGRADED, FAILED, DELETING = "Pending", "Progressing", "Ready", "Degraded", "Failed", "Deleting"
QUOTA_RESERVED, SCHEDULED = "QuotaReserved", "Scheduled"
COLLECTION_PREFIX = "openfleet.clusters."
EARLIEST = datetime.min.replace(tzinfo=UTC)
LIFETIME_UNITS = {"m": "minutes", "h": "hours", "d": "days"}

Amounts = Mapping[str, int]  # by clusters, nodes, clusters.<template> and nodes.<class>
Nodes = Mapping[str, int]  # by resource class


@dataclass(frozen=True)
class NodeSet:
    """Nodes of one class. `ready` is what the hub reports."""

    resource_class: str
    size: int
    ready: int = 0


@dataclass(frozen=True)
class Taint:
    """Of a hub, or what a cluster tolerates: there, the value None is any value."""

    key: str
    value: str | None = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key


@dataclass(frozen=True)
class Placement:
    """Where a cluster may be."""

    hub: str = ""
    region: str = ""
    selector: Object = field(default_factory=dict)
    tolerations: tuple[Taint, ...] = ()

    @classmethod
    def from_object(cls, item: Mapping[str, Any]) -> Placement:
        tolerated = tuple(Taint(each["key"], each.get("value")) for each in item.get("tolerations") or ())
        return cls(item.get("hub", ""), item.get("region", ""), item.get("selector") or {}, tolerated)


@dataclass(frozen=True)
class FleetCluster:
    """A cluster of a tenant. `hub` is the one that it is bound to."""

    namespace: str
    name: str
    uid: str
    template: str
    node_sets: Mapping[str, NodeSet] = field(default_factory=dict)
    placement: Placement = field(default_factory=Placement)
    priority: int = 0
    created: datetime = EARLIEST
    expires_at: datetime | None = None
    is_deleting: bool = False
    hub: str = ""
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_object(cls, item: Object) -> FleetCluster:
        metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
        return cls(
            metadata["namespace"],
            metadata["name"],
            metadata["uid"],
            spec["template"],
            node_sets_of(spec),
            Placement.from_object(spec.get("placement") or {}),
            int(spec.get("priority") or 0),
            parse_time(metadata.get("creationTimestamp")) or datetime.now(UTC),
            parse_time(spec.get("expiresAt")),
            "deletionTimestamp" in metadata,
            status.get("hub", ""),
            item,
        )

    @cached_property
    def nodes(self) -> dict[str, int]:
        """The wanted nodes by class."""
        return nodes_by_class(self.node_sets)

    def __str__(self) -> str:
        return f"{CLUSTER} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class HubReservation:
    """The capacity that one cluster has reserved on a hub, since its last change, and the node hours before that."""

    namespace: str
    name: str
    nodes: Nodes = field(default_factory=dict)
    since: datetime | None = None
    node_hours: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_status(cls, item: Mapping[str, Any]) -> HubReservation:
        hours = {name: float(each) for name, each in (item.get("nodeHours") or {}).items()}
        return cls(item["namespace"], item["name"], dict(item.get("nodes") or {}), parse_time(item.get("since")), hours)

    def to_status(self) -> Object:
        since = {"since": format_time(self.since)} if self.since else {}
        hours = {"nodeHours": dict(self.node_hours)} if self.node_hours else {}
        return {"namespace": self.namespace, "name": self.name, "nodes": dict(self.nodes), **since, **hours}

    def hours_until(self, now: datetime) -> dict[str, float]:
        """All node hours by class, with those since the last change."""
        hours = max(0.0, (now - self.since).total_seconds() / 3600) if self.since else 0.0
        total = {name: self.node_hours.get(name, 0.0) + count * hours for name, count in self.nodes.items()}
        return {name: round(each, 3) for name, each in sorted({**self.node_hours, **total}.items())}

    def resized(self, nodes: Nodes, now: datetime) -> HubReservation:
        return replace(self, nodes=dict(nodes), since=now, node_hours=self.hours_until(now))


@dataclass(frozen=True)
class Hub:
    """A hub with what the operator allows on it, what its agent reports, and what is reserved.

    Of a class of nodes that the agent counts, the hub has no more than it reports, whatever the operator allows.
    """

    name: str
    clusters: int
    nodes: Nodes = field(default_factory=dict)
    schedulable: bool = True
    region: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    tenant_selector: Object = field(default_factory=dict)
    ready: bool = False
    missing: str = ""  # what the condition Ready says where it is not True
    heartbeat: datetime | None = None
    templates: frozenset[str] = frozenset()
    reservations: Mapping[str, HubReservation] = field(default_factory=dict)
    is_deleting: bool = False
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_object(cls, item: Object) -> Hub:
        metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
        capacity = spec["capacity"]
        ready: Object = next((each for each in status.get("conditions") or () if each["type"] == READY), {})
        return cls(
            metadata["name"],
            int(capacity["clusters"]),
            _counted_nodes(capacity.get("nodes") or {}, status.get("nodes") or {}),
            bool(spec.get("schedulable", True)),
            spec.get("region", ""),
            metadata.get("labels") or {},
            tuple(Taint(each["key"], each.get("value", "")) for each in spec.get("taints") or ()),
            spec.get("tenantSelector") or {},
            ready.get("status") == TRUE,
            str(ready.get("message", "")),
            parse_time(status.get("heartbeat")),
            frozenset(short_template(each["name"]) for each in status.get("templates") or ()),
            {uid: HubReservation.from_status(each) for uid, each in (status.get("reservations") or {}).items()},
            "deletionTimestamp" in metadata,
            item,
        )

    def free_clusters(self, apart_from: str = "") -> int:
        """For how many more clusters there is capacity; the reservation of `apart_from` does not count."""
        return self.clusters - len(self.reservations) + (apart_from in self.reservations)

    def free_nodes(self, resource_class: str, apart_from: str = "") -> int:
        own = self.reservations.get(apart_from)
        taken = self.taken.get(resource_class, 0) - (own.nodes.get(resource_class, 0) if own else 0)
        return self.nodes.get(resource_class, 0) - taken

    # Sums of all reservations, which a scheduler needs for each hub and each cluster.

    @cached_property
    def taken(self) -> Nodes:
        """The reserved nodes by class."""
        nodes: Counter[str] = Counter()
        for each in self.reservations.values():
            nodes.update(each.nodes)
        return nodes

    @cached_property
    def clusters_by_tenant(self) -> Mapping[str, int]:
        return Counter(each.namespace for each in self.reservations.values())


@dataclass(frozen=True)
class Denied:
    """Why a tenant gets nothing more, and when its clusters are deleted."""

    reason: str
    delete_after: datetime | None = None


@dataclass(frozen=True)
class QuotaReservation:
    """What one cluster counts for."""

    name: str
    amounts: Amounts

    @classmethod
    def from_status(cls, item: Mapping[str, Any]) -> QuotaReservation:
        return cls(item["name"], dict(item["amounts"]))

    def to_status(self) -> Object:
        return {"name": self.name, "amounts": dict(self.amounts)}


@dataclass(frozen=True)
class FleetQuota:
    """The limits of a tenant and what is reserved. `hard` and `max_lifetime` are None where the site's default counts."""

    namespace: str
    hard: Amounts | None = None
    max_lifetime: timedelta | None = None
    denied: Denied | None = None
    reservations: Mapping[str, QuotaReservation] = field(default_factory=dict)
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_object(cls, item: Object) -> FleetQuota:
        spec, status = item.get("spec") or {}, item.get("status") or {}
        denied = spec.get("denied")
        return cls(
            item["metadata"]["namespace"],
            dict(spec["hard"]) if "hard" in spec else None,
            parse_lifetime(spec.get("maxLifetime", "")),
            Denied(denied["reason"], parse_time(denied.get("deleteAfter"))) if denied else None,
            {uid: QuotaReservation.from_status(each) for uid, each in (status.get("reservations") or {}).items()},
            item,
        )


@dataclass(frozen=True)
class ClusterAssignment:
    """A cluster as its hub shall have it, and as the hub reports it. `is_observed`: the report is about the present spec."""

    hub: str
    uid: str
    namespace: str
    name: str
    node_sets: Mapping[str, NodeSet] = field(default_factory=dict)
    reported: Mapping[str, NodeSet] = field(default_factory=dict)
    is_observed: bool = False
    raw: Object = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_object(cls, item: Object) -> ClusterAssignment:
        metadata, cluster, status = item["metadata"], item["spec"]["cluster"], item.get("status") or {}
        return cls(
            metadata["namespace"].removeprefix(HUB_NAMESPACE_PREFIX),
            metadata["name"],
            cluster["namespace"],
            cluster["name"],
            node_sets_of(item["spec"]),
            node_sets_of(status),
            status.get("observedGeneration") == metadata.get("generation"),
            item,
        )


def assignment_of(cluster: FleetCluster, hub: str, secrets_version: str = "") -> Object:
    """The object that tells a hub to create the cluster. `secrets_version` is that of the copied Secrets, if the cluster needs any."""
    spec = {name: cluster.raw["spec"][name] for name in ("template", "templateParameters", "nodeSets") if name in cluster.raw["spec"]}
    reference = {"namespace": cluster.namespace, "name": cluster.name, "uid": cluster.uid}
    own = cluster.raw["metadata"].get("annotations") or {}
    carried = {name: own[name] for name in (RETRY, ADOPT_ORDER) if name in own}
    annotations = carried | ({SECRETS_VERSION: secrets_version} if secrets_version else {})
    return {
        "apiVersion": API_VERSION,
        "kind": ASSIGNMENT,
        "metadata": {"name": cluster.uid, "namespace": hub_namespace(hub)} | ({"annotations": annotations} if annotations else {}),
        "spec": {"cluster": reference, **spec},
    }


def short_template(name: str) -> str:
    """The name of a template as quota counts it and hubs are compared by: templates of this collection have two names."""
    return name.removeprefix(COLLECTION_PREFIX)


def node_sets_of(item: Mapping[str, Any]) -> dict[str, NodeSet]:
    sets = item.get("nodeSets") or {}
    return {name: NodeSet(each["class"], int(each["size"]), int(each.get("ready", 0))) for name, each in sets.items()}


def nodes_by_class(node_sets: Mapping[str, NodeSet]) -> dict[str, int]:
    nodes: dict[str, int] = {}
    for each in node_sets.values():
        nodes[each.resource_class] = nodes.get(each.resource_class, 0) + each.size
    return {name: count for name, count in sorted(nodes.items()) if count}


def _counted_nodes(allowed: Nodes, reported: Mapping[str, Any]) -> dict[str, int]:
    return {name: min(count, int(reported[name]["total"])) if name in reported else count for name, count in allowed.items()}


def parse_lifetime(text: str) -> timedelta | None:
    """A lifetime such as 30m, 72h or 14d; None for anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    return timedelta(**{LIFETIME_UNITS[found[2]]: int(found[1])}) if found else None
