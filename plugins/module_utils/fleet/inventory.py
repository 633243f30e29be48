# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All ordered and registered clusters of a hub, and all clusters of a fleet, for an inventory. It reads no Secret.

An order and a registered cluster with the same name and namespace are one cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..orders.model import ClusterOrder, Names, readable_orders
from ..orders.observe import provider_type, recorded_cluster
from ..orders.pending import next_actions
from ..registry.model import ClusterRegistry, RegisteredCluster, cluster_result
from ..registry.store import RegistryStore
from ..templates.catalogue import Template, resolve
from ..templates.errors import COLLECTION, TemplateError
from .kinds import API_VERSION, CLUSTER, HUB
from .model import FleetCluster, short_template

Result = TypeVar("Result")

ORDERS, REGISTRIES, FLEET = "orders", "registries", "fleet_clusters"
REGION_LABEL = "topology.kubernetes.io/region"
PENDING = "Pending"
UNKNOWN, REGISTERED = "unknown", "registered"


@dataclass
class InventoryCluster:
    """A cluster as a host of the inventory. Names of groups are not yet valid for Ansible."""

    name: str
    namespace: str
    groups: list[str] = field(default_factory=list)
    variables: Object = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Unique, because neither name can have a dot."""
        return f"{self.name}.{self.namespace}"


def list_clusters(
    hub: Kube,
    names: Names,
    templates: Mapping[str, Template],
    *,
    namespace: str | None,
    sources: list[str],
    registry_kind: str,
    warn: Callable[[str], None],
) -> list[InventoryCluster]:
    """The clusters of the hub, or of one namespace. Calls `warn` for an invalid registry."""
    fleet: dict[str, InventoryCluster] = {}

    def entry(name: str, cluster_namespace: str) -> InventoryCluster:
        cluster = InventoryCluster(name, cluster_namespace)
        return fleet.setdefault(cluster.host, cluster)

    missing_kinds: list[str] = []
    if ORDERS in sources:
        items = _list_kind(lambda: hub.list_all(names.api_version, "ClusterOrder", namespace), "ClusterOrder", missing_kinds)
        _add_orders(hub, names, items, templates, entry, warn)
    if REGISTRIES in sources:
        for registry in _list_kind(lambda: RegistryStore(hub, registry_kind).list_valid(namespace, warn), registry_kind, missing_kinds):
            for registered in registry.clusters:
                _add_registered(entry(registered.name, registry.namespace), registry, registered)
    if FLEET in sources:
        for cluster, region in _read_fleet(hub, namespace, missing_kinds):
            _add_fleet_cluster(entry(cluster.name, cluster.namespace), cluster, region)
    if len(missing_kinds) == len(sources):
        kinds = " or ".join(missing_kinds)
        raise NotFound(f"The hub {hub.target.server} does not have the kind {kinds}: install the CRDs of {COLLECTION}.")
    return sorted(fleet.values(), key=lambda cluster: cluster.host)


def _list_kind(read: Callable[[], list[Result]], kind: str, missing_kinds: list[str]) -> list[Result]:
    """Call `read`. On a hub without this kind, return nothing and note the kind."""
    try:
        return read()
    except NotFound:
        missing_kinds.append(kind)
        return []


def _add_orders(
    hub: Kube,
    names: Names,
    items: list[Object],
    templates: Mapping[str, Template],
    entry: Callable[[str, str], InventoryCluster],
    warn: Callable[[str], None],
) -> None:
    orders, problems = readable_orders(items, names)
    for problem in problems:
        warn(f"skipped an order: {problem}")
    for order in orders:
        _add_order(entry(order.name, order.namespace), order, templates)
    actions = next_actions(hub, names, orders, poll=False)
    for order, action in zip(orders, actions or (), strict=actions is not None):
        if not isinstance(action, KubeError):
            entry(order.name, order.namespace).variables["fleet_next_action"] = action or ""


def _read_fleet(home: Kube, namespace: str | None, missing_kinds: list[str]) -> list[tuple[FleetCluster, str]]:
    """The clusters of a fleet, each with the region of its hub."""
    found = _list_kind(lambda: home.list_all(API_VERSION, CLUSTER, namespace), CLUSTER, missing_kinds)
    hubs = home.list_all(API_VERSION, HUB) if found else []
    regions = {item["metadata"]["name"]: item["spec"].get("region", "") for item in hubs}
    return [(cluster, regions.get(cluster.hub, "")) for cluster in map(FleetCluster.from_object, found)]


def _add_fleet_cluster(host: InventoryCluster, cluster: FleetCluster, region: str) -> None:
    """How to reach the cluster, only its hub knows."""
    status = cluster.raw.get("status") or {}
    state, template = status.get("state") or PENDING, short_template(cluster.template)
    host.variables |= {
        "fleet_name": cluster.name,
        "fleet_namespace": cluster.namespace,
        "fleet_ordered": False,
        "fleet_registered": False,
        "fleet_phase": state,
        "fleet_template": template,
        "fleet_provider": UNKNOWN,
        "fleet_region": region,
        "fleet_hub_name": cluster.hub,
        "fleet_api_url": str(status.get("apiURL") or ""),
        "fleet_console_url": str(status.get("consoleURL") or ""),
        "fleet_running_version": str(status.get("version") or ""),
    } | host.variables
    groups = ["fleet_cluster", f"phase_{state.lower()}", f"template_{template}"]
    groups += [f"hub_{cluster.hub}"] if cluster.hub else []
    groups += [f"region_{region}"] if region else []
    host.groups += [group for group in groups if group not in host.groups]


def _add_order(cluster: InventoryCluster, order: ClusterOrder, templates: Mapping[str, Template]) -> None:
    metadata = order.raw["metadata"]
    template = order.template_id.removeprefix(f"{COLLECTION}.")
    region = str((metadata.get("labels") or {}).get(REGION_LABEL) or recorded_cluster(order).region)
    provider, phase = _provider(order, templates), order.phase or PENDING
    version = order.status.get("version") or {}
    cluster.variables |= {
        "fleet_name": order.name,
        "fleet_namespace": order.namespace,
        "fleet_ordered": True,
        "fleet_registered": False,
        "fleet_phase": phase,
        "fleet_template": template,
        "fleet_provider": provider,
        "fleet_region": region,
        "fleet_api_url": str(order.status.get("apiURL") or ""),
        "fleet_console_url": str(order.status.get("consoleURL") or ""),
        "fleet_running_version": str(version.get("running") or ""),
        "fleet_desired_version": str(version.get("desired") or ""),
        "fleet_available_updates": list(version.get("availableUpdates") or []),
        "fleet_kubeconfig_source": {
            "namespace": order.namespace,
            "order": order.name,
            "api_group": order.names.group,
            "controller": "external" if order.names.external_controller else "self",
            "site_namespace": order.names.site_namespace,
            "allowed_addresses": order.names.allowed_addresses.entries,
            "provider": provider,
        },
    }
    cluster.groups += ["ordered", f"phase_{phase.lower()}", f"template_{template}", f"provider_{provider}"]
    if region:
        cluster.groups.append(f"region_{region}")


def _add_registered(cluster: InventoryCluster, registry: ClusterRegistry, entry: RegisteredCluster) -> None:
    health = cluster_result(entry, registry.health.get(entry.name))
    known = cluster.variables
    known |= {
        "fleet_name": entry.name,
        "fleet_namespace": registry.namespace,
        "fleet_ordered": known.get("fleet_ordered", False),
        "fleet_registered": True,
        "fleet_registry": registry.name,
        "fleet_provider": known.get("fleet_provider", REGISTERED),
        "fleet_region": entry.region or known.get("fleet_region", ""),
        "fleet_api_url": entry.endpoint or known.get("fleet_api_url", ""),
        # A registry says how to reach the cluster, so its Secret has priority.
        "fleet_kubeconfig_source": {"namespace": registry.namespace, "secret": entry.kubeconfig_secret, "endpoint": entry.endpoint},
    }
    fields = ("healthy", "reachable", "authenticated", "version", "last_seen", "credentials_expire", "reason")
    known |= {f"fleet_{key}": health[key] for key in fields}
    groups = ["registered", f"provider_{known['fleet_provider']}"]
    if entry.region:
        # The region of the registry counts for disaster recovery, so it has priority.
        cluster.groups = [group for group in cluster.groups if not group.startswith("region_")]
        groups.append(f"region_{entry.region}")
    cluster.groups += [group for group in groups if group not in cluster.groups]


def _provider(order: ClusterOrder, templates: Mapping[str, Template]) -> str:
    """The provider that the order records, or else that of its template."""
    try:
        return provider_type(order) or resolve(order.template_id, templates).provider or UNKNOWN
    except TemplateError:
        return UNKNOWN
