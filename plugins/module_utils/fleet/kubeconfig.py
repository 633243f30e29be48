# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the kubeconfig of a cluster of the fleet from the hub. The result is secret."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import NotFound
from ..kube.untrusted import kubeconfig_of, self_contained
from ..orders.model import ClusterOrder, Names
from ..orders.observe import cluster_ref, provider_type, recorded_cluster
from ..providers.factory import ProviderFactory


def kubeconfig_from(hub: Kube, source: Mapping[str, str]) -> Object:
    """The kubeconfig of a registered cluster, from its Secret, or of an ordered cluster, from its provider."""
    namespace = source["namespace"]
    if "secret" in source:
        return kubeconfig_of(hub.get("v1", "Secret", source["secret"], namespace), source["endpoint"])
    names, order_name = Names.of(source), f"{namespace}/{source['order']}"
    item = hub.find(names.api_version, "ClusterOrder", source["order"], namespace)
    if item is None:
        raise NotFound(f"The order {order_name} no longer exists: refresh the inventory.")
    order = ClusterOrder.from_object(item, names)
    provider = ProviderFactory.for_cluster(provider_type(order) or source["provider"], cluster_ref(hub, order))
    return self_contained(provider.kubeconfig(recorded_cluster(order)).content, f"The cluster of {order_name} has a kubeconfig")
