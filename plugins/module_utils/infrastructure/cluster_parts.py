# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Access, storage and operators inside a cluster: applied through its provider, and observed. None of the calls waits.

What the objects are, and when a part is ready, is decided by pure functions in the modules of the same names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..kube.client import Kube
from ..kube.errors import NotFound
from ..providers.base import NotReadyYet, Provider
from ..providers.model import ObservedCluster, ResourceSet
from . import cluster_access, cluster_operators, cluster_storage
from .cluster_operators import API_VERSION, CSV, SUBSCRIPTION, OperatorState
from .part_state import PartState

NOT_YET = (NotReadyYet, NotFound)  # no kubeconfig yet, or a kind that the new cluster does not serve yet


def not_yet(error: Exception) -> PartState:
    return PartState(False, type(error).__name__, str(error))


def apply_access(
    provider: Provider,
    cluster: ObservedCluster,
    groups: Sequence[Mapping[str, Any]],
    bindings: Sequence[Mapping[str, Any]],
    admin_account: str,
) -> PartState:
    objects = cluster_access.access_objects(groups, bindings, admin_account)
    provider.apply_resources(cluster, ResourceSet(cluster_access.RESOURCE_SET, objects))
    return PartState(True, "AccessReady", f"{len(groups)} groups, {len(bindings)} bindings")


def apply_storage(provider: Provider, cluster: ObservedCluster, classes: Mapping[str, Any], default: str) -> PartState:
    objects = cluster_storage.storage_objects(classes, default)
    provider.apply_resources(cluster, ResourceSet(cluster_storage.RESOURCE_SET, objects))
    drivers = provider.connect(cluster).list_all("storage.k8s.io/v1", "CSIDriver")
    return cluster_storage.storage_state(objects, [driver["metadata"]["name"] for driver in drivers])


def apply_operators(provider: Provider, cluster: ObservedCluster, operators: Sequence[Mapping[str, Any]]) -> list[OperatorState]:
    """Subscribe to these operators and to no others of ours. Returns how far each is installed."""
    objects = cluster_operators.operator_objects(operators)
    kube = provider.connect(cluster)
    wanted = {(operator["namespace"], operator["name"]) for operator in operators}
    _uninstall(provider, kube, wanted)
    provider.apply_resources(cluster, ResourceSet(cluster_operators.RESOURCE_SET, objects))
    states = []
    for operator in operators:
        found = kube.find(API_VERSION, SUBSCRIPTION, operator["name"], operator["namespace"])
        subscription = found or {"metadata": operator}  # in check mode it may not exist
        name = (subscription.get("status") or {}).get("installedCSV")
        installed = kube.find(API_VERSION, CSV, name, operator["namespace"]) if name else None
        states.append(cluster_operators.operator_state(subscription, installed))
    return states


def remove_operators(provider: Provider, cluster: ObservedCluster) -> bool:
    """Uninstall all operators of ours; True once nothing of them is left."""
    _uninstall(provider, provider.connect(cluster), ())
    return provider.remove_resources(cluster, cluster_operators.RESOURCE_SET)


def remove_access(provider: Provider, cluster: ObservedCluster) -> bool:
    return provider.remove_resources(cluster, cluster_access.RESOURCE_SET)


def remove_storage(provider: Provider, cluster: ObservedCluster) -> bool:
    return provider.remove_resources(cluster, cluster_storage.RESOURCE_SET)


def _uninstall(provider: Provider, kube: Kube, wanted: Collection[tuple[str, str]]) -> None:
    """Delete what OLM has installed for subscriptions of ours that are no longer wanted: it stays without its subscription."""
    ours = f"openfleet.clusters/resource-set={cluster_operators.RESOURCE_SET}"
    try:
        subscriptions = kube.list_all(API_VERSION, SUBSCRIPTION, label_selector=ours)
    except NotFound:
        if wanted:
            raise
        return  # a cluster without OLM has none
    installed = []
    for item in subscriptions:
        metadata, name = item["metadata"], (item.get("status") or {}).get("installedCSV")
        found = kube.find(API_VERSION, CSV, name, metadata["namespace"]) if name else None
        if found and (metadata["namespace"], metadata["name"]) not in wanted:
            installed.append(found)
    provider.changes += provider.writer.on(kube).delete(installed)
