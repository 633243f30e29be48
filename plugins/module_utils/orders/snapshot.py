# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All orders of a hub and what is there for them, from one list of each kind: four requests for a thousand orders of one provider.

A provider whose clusters cannot be told from objects on the hub is asked for each cluster, several at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..providers.base import ClusterRef, Provider
from ..providers.factory import ProviderFactory
from ..providers.model import ObservedCluster
from .model import ClusterOrder, Names, working_namespace
from .observed import ObservedState, provider_type, recorded_cluster, unknown_cluster
from .status import Action, next_action


def cluster_ref(kube: Kube, order: ClusterOrder) -> ClusterRef:
    """Where the cluster of an order is looked for; nothing can be written there with it."""
    namespace = working_namespace(order.namespace, order.name)
    return ClusterRef(kube, order.name, namespace, order.labels, order.names.resource_class_label)


class Snapshot:
    """The hub as it was when this was made. `orders` are all there are, unless those that matter are given."""

    def __init__(self, kube: Kube, names: Names, orders: Sequence[ClusterOrder] | None = None) -> None:
        if orders is None:
            orders = [ClusterOrder.from_object(item, names.group) for item in kube.list_all(names.api_version, "ClusterOrder")]
        self.orders = orders
        self._kube = kube
        self._items: dict[str, list[Object]] = {}
        self._namespaces = {item["metadata"]["name"] for item in kube.list_all("v1", "Namespace", label_selector=names.order_label)}
        results = kube.in_parallel(self._provider, orders)
        providers = {_place(order): result for order, result in zip(orders, results, strict=True)}
        kinds = {kind for provider in providers.values() if isinstance(provider, Provider) for kind in provider.WATCHES}
        self._unknown: dict[tuple[str, str], NotFound] = {}
        for api_version, kind in sorted(kinds):
            try:
                found = kube.list_all(api_version, kind)
            except NotFound as error:
                # The hub has no such kind any more, which is the trouble of these orders and of no others.
                self._unknown[api_version, kind] = error
                continue
            for item in found:
                self._items.setdefault(item["metadata"]["namespace"], []).append(item)
        specs = kube.in_parallel(lambda order: self._cluster(order, providers[_place(order)]), orders)
        self._clusters = {
            _place(order): unknown_cluster(order, spec) if isinstance(spec, KubeError) else spec
            for order, spec in zip(orders, specs, strict=True)
        }
        self.time = kube.server_time() or datetime.now(UTC)

    def world(self, order: ClusterOrder) -> ObservedState:
        return ObservedState(self._clusters[_place(order)], working_namespace(order.namespace, order.name) in self._namespaces)

    def needing(self, step: Action) -> list[ClusterOrder]:
        """The orders whose next action is this step."""
        return [order for order in self.orders if self.next_action(order) == step]

    def next_action(self, order: ClusterOrder) -> Action | None:
        return next_action(order, self.world(order).cluster, self.time)

    def _provider(self, order: ClusterOrder) -> Provider | None:
        kind = provider_type(order)
        return ProviderFactory.at(kind, cluster_ref(self._kube, order)) if kind else None

    def _cluster(self, order: ClusterOrder, provider: Provider | KubeError | None) -> ObservedCluster:
        if provider is None:
            return ObservedCluster()
        if isinstance(provider, KubeError):
            raise provider
        namespace = provider.ref.namespace
        for kind in provider.WATCHES:
            if kind in self._unknown:
                raise self._unknown[kind]
        if provider.WATCHES:
            return provider.observe_objects(recorded_cluster(order), self._items.get(namespace, []))
        # What such a provider needs to ask is in the namespace, and goes with it once the cluster is gone.
        return provider.status(recorded_cluster(order)) if namespace in self._namespaces else ObservedCluster()


def _place(order: ClusterOrder) -> tuple[str, str]:
    return order.namespace, order.name
