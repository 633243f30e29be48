# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads what exists of a fleet on its home cluster. It decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ..kube.client import Kube
from .kinds import API_VERSION, ASSIGNMENT, CLUSTER, HUB, QUOTA
from .model import ClusterAssignment, FleetCluster, FleetQuota, Hub
from .schedule import HUB_TIMEOUT
from .secret_copies import Secrets, names_of, observe_secrets


@dataclass(frozen=True)
class ObservedFleet:
    """Clusters, hubs, quotas and assignments, the labels of the tenants' namespaces, and the time of the home cluster.

    `secrets` are those that the clusters refer to, without their values. A hub whose heartbeat is older than `hub_timeout` does not report.
    """

    clusters: tuple[FleetCluster, ...]
    hubs: Mapping[str, Hub] = field(default_factory=dict)
    quotas: Mapping[str, FleetQuota] = field(default_factory=dict)  # by namespace
    assignments: Mapping[str, ClusterAssignment] = field(default_factory=dict)  # by the uid of the cluster
    tenant_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by namespace
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    secrets: Secrets = field(default_factory=dict)
    hub_timeout: timedelta = HUB_TIMEOUT


@dataclass(frozen=True)
class LiveClusters:
    """What reservations are compared with: the hub of each cluster by uid, empty without one, and the clusters with their assignments."""

    hubs: Mapping[str, str]
    assigned: tuple[tuple[FleetCluster, ClusterAssignment], ...]
    orphans: tuple[ClusterAssignment, ...] = ()  # assignments without a cluster
    unassigned: tuple[FleetCluster, ...] = ()


def observe(home: Kube, namespace: str | None = None) -> ObservedFleet:
    """The fleet, or of the clusters those of one tenant.

    Reservations are read first: a reservation for a later spec than the one that is read then differs from the one that was read, and is
    not reduced by mistake.
    """
    hubs = {hub.name: hub for hub in map(Hub.from_object, home.list_all(API_VERSION, HUB))}
    quotas = {quota.namespace: quota for quota in map(FleetQuota.from_object, home.list_all(API_VERSION, QUOTA))}
    clusters = list_clusters(home, namespace)
    secrets = observe_secrets(home, {name for each in clusters for name in names_of(each)})
    return ObservedFleet(clusters, hubs, quotas, list_assignments(home), _tenant_labels(home), server_time(home), secrets)


def list_clusters(home: Kube, namespace: str | None = None) -> tuple[FleetCluster, ...]:
    return tuple(FleetCluster.from_object(item) for item in home.list_all(API_VERSION, CLUSTER, namespace))


def list_assignments(home: Kube) -> dict[str, ClusterAssignment]:
    found = (ClusterAssignment.from_object(item) for item in home.list_all(API_VERSION, ASSIGNMENT))
    return {each.uid: each for each in found}


def server_time(home: Kube) -> datetime:
    return home.server_time() or datetime.now(UTC)


def _tenant_labels(home: Kube) -> dict[str, Mapping[str, str]]:
    return {item["metadata"]["name"]: item["metadata"].get("labels") or {} for item in home.list_all("v1", "Namespace")}


def observe_live(home: Kube) -> LiveClusters:
    """All clusters that need their reservations. A hub may still have what only an assignment shows."""
    clusters, assignments = {each.uid: each for each in list_clusters(home)}, list_assignments(home)
    orphans = {uid: each for uid, each in assignments.items() if uid not in clusters}
    hubs = {uid: each.hub for uid, each in clusters.items()}
    return LiveClusters(
        hubs | {uid: each.hub for uid, each in orphans.items()},
        tuple((each, assignments[uid]) for uid, each in clusters.items() if uid in assignments),
        tuple(orphans.values()),
        tuple(each for uid, each in clusters.items() if uid not in assignments),
    )
