# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kubeconfig of a cluster of the fleet, read from the hub when it is needed. What it returns is secret."""

from __future__ import annotations

from collections.abc import Mapping

from .foreign_kubeconfig import harmless, kubeconfig_of
from .kube import Kube, Object
from .kube_errors import NotFound
from .order_world import kept_spec, provider_type
from .orders import ClusterOrder, Names
from .providers.factory import ProviderFactory
from .snapshot import place_of


def kubeconfig_from(hub: Kube, source: Mapping[str, str]) -> Object:
    """The kubeconfig that `source` leads to: in the Secret of a registered cluster, or that of the cluster of an order."""
    namespace = source["namespace"]
    if "secret" in source:
        return kubeconfig_of(hub.get("v1", "Secret", source["secret"], namespace), source["endpoint"])
    names, called = Names(source["api_group"]), f"{namespace}/{source['order']}"
    item = hub.find(names.api_version, "ClusterOrder", source["order"], namespace)
    if item is None:
        raise NotFound(f"There is no order {called} any more; read the inventory anew.")
    order = ClusterOrder.from_object(item, names.group)
    provider = ProviderFactory.at(provider_type(order) or source["provider"], place_of(hub, order))
    return harmless(provider.kubeconfig(kept_spec(order)).content, f"The cluster of {called} has a kubeconfig")
