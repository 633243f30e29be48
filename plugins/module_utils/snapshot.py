# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All orders of a hub and what is there for them, from one list of each kind: four requests for a thousand orders."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from .hypershift import API_VERSION as HYPERSHIFT
from .kube import Kube
from .order_status import Action, next_action
from .order_world import Object, World
from .orders import ClusterOrder, Names, working_namespace


class Snapshot:
    """The hub as it was when this was made. `orders` are all there are, unless those that matter are given."""

    def __init__(self, kube: Kube, names: Names, orders: Sequence[ClusterOrder] | None = None) -> None:
        if orders is None:
            orders = [ClusterOrder.from_object(item, names.group) for item in kube.list_all(names.api_version, "ClusterOrder")]
        self.orders = orders
        self._clusters = {_place(item): item for item in kube.list_all(HYPERSHIFT, "HostedCluster")}
        self._pools: dict[str, list[Object]] = {}
        for pool in kube.list_all(HYPERSHIFT, "NodePool"):
            self._pools.setdefault(pool["metadata"]["namespace"], []).append(pool)
        self._namespaces = {item["metadata"]["name"] for item in kube.list_all("v1", "Namespace", label_selector=names.order_label)}
        self.time = kube.server_time() or datetime.now(UTC)

    def world(self, order: ClusterOrder) -> World:
        namespace = working_namespace(order.namespace, order.name)
        return World(self._clusters.get((namespace, order.name)), self._pools.get(namespace, []), namespace in self._namespaces)

    def needing(self, step: Action) -> list[ClusterOrder]:
        """The orders whose next action is this step."""
        return [order for order in self.orders if self.next_action(order) == step]

    def next_action(self, order: ClusterOrder) -> Action | None:
        world = self.world(order)
        return next_action(order, world.hosted_cluster, world.node_pools, self.time)


def _place(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]
