# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All clusters of a hub, those that were ordered and those that are registered, as one list for an inventory. No secret is read.

A cluster that was ordered and is registered under the same name in the same namespace is one cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import NotFound
from ..orders.model import ClusterOrder, Names
from ..orders.observe import provider_type, recorded_cluster
from ..orders.pending import next_actions
from ..registry.model import ClusterRegistry, RegisteredCluster, shown_cluster
from ..registry.store import RegistryStore
from ..templates.catalogue import Template, resolve
from ..templates.errors import COLLECTION, TemplateError

Result = TypeVar("Result")

ORDERS, REGISTRIES = "orders", "registries"
REGION_LABEL = "topology.kubernetes.io/region"
NOT_TAKEN_UP = "Pending"
UNKNOWN, REGISTERED = "unknown", "registered"


@dataclass
class FleetCluster:
    """A cluster as a host: what is known of it, the groups it is in. Names of groups are as they come, not yet as Ansible wants them."""

    name: str
    namespace: str
    groups: list[str] = field(default_factory=list)
    variables: Object = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Neither name can have a dot, so no two clusters have the same."""
        return f"{self.name}.{self.namespace}"


def survey(
    hub: Kube,
    names: Names,
    templates: Mapping[str, Template],
    *,
    namespace: str | None,
    sources: list[str],
    external_controller: bool,
    registry_kind: str,
    warn: Callable[[str], None],
) -> list[FleetCluster]:
    """The clusters of the hub, or of one namespace of it. `warn` is told of registries that cannot be read."""
    fleet: dict[str, FleetCluster] = {}

    def entry(name: str, place: str) -> FleetCluster:
        made = FleetCluster(name, place)
        return fleet.setdefault(made.host, made)

    unknown: list[str] = []
    if ORDERS in sources:
        items = _known(lambda: hub.list_all(names.api_version, "ClusterOrder", namespace), "ClusterOrder", unknown)
        orders = [ClusterOrder.from_object(item, names.group) for item in items]
        for order in orders:
            _add_order(entry(order.name, order.namespace), order, templates)
        actions = next_actions(hub, names, orders, external_controller=external_controller, poll=False)
        for order, action in zip(orders, actions or (), strict=actions is not None):
            entry(order.name, order.namespace).variables["fleet_next_action"] = action or ""
    if REGISTRIES in sources:
        for registry in _known(lambda: RegistryStore(hub, registry_kind).all(namespace, warn), registry_kind, unknown):
            for cluster in registry.clusters:
                _add_registered(entry(cluster.name, registry.namespace), registry, cluster)
    if len(unknown) == len(sources):
        raise NotFound(f"The hub {hub.target.server} does not know the kind {' or '.join(unknown)}; install the CRDs of {COLLECTION}.")
    return sorted(fleet.values(), key=lambda cluster: cluster.host)


def _known(read: Callable[[], list[Result]], kind: str, unknown: list[str]) -> list[Result]:
    """What is read; nothing where the hub does not know the kind."""
    try:
        return read()
    except NotFound:
        unknown.append(kind)
        return []


def _add_order(cluster: FleetCluster, order: ClusterOrder, templates: Mapping[str, Template]) -> None:
    metadata = order.raw["metadata"]
    template = order.template_id.removeprefix(f"{COLLECTION}.")
    region = str((metadata.get("labels") or {}).get(REGION_LABEL) or recorded_cluster(order).region)
    provider, phase = _provider(order, templates), order.phase or NOT_TAKEN_UP
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
        "fleet_kubeconfig_source": {
            "namespace": order.namespace,
            "order": order.name,
            "api_group": order.names.group,
            "provider": provider,
        },
    }
    cluster.groups += ["ordered", f"phase_{phase.lower()}", f"template_{template}", f"provider_{provider}"]
    if region:
        cluster.groups.append(f"region_{region}")


def _add_registered(cluster: FleetCluster, registry: ClusterRegistry, entry: RegisteredCluster) -> None:
    health = shown_cluster(entry, registry.health.get(entry.name))
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
        # Whoever registers a cluster has chosen how it is to be reached.
        "fleet_kubeconfig_source": {"namespace": registry.namespace, "secret": entry.kubeconfig_secret, "endpoint": entry.endpoint},
    }
    finding = ("healthy", "reachable", "authenticated", "version", "last_seen", "credentials_expire", "reason")
    known |= {f"fleet_{key}": health[key] for key in finding}
    groups = ["registered", f"provider_{known['fleet_provider']}"]
    if entry.region:
        # Of two regions, the registry's is the one that counts for disaster recovery.
        cluster.groups = [group for group in cluster.groups if not group.startswith("region_")]
        groups.append(f"region_{entry.region}")
    cluster.groups += [group for group in groups if group not in cluster.groups]


def _provider(order: ClusterOrder, templates: Mapping[str, Template]) -> str:
    """Who makes the cluster: as the order says, or else its template."""
    try:
        return provider_type(order) or resolve(order.template_id, templates).provider or UNKNOWN
    except TemplateError:
        return UNKNOWN
