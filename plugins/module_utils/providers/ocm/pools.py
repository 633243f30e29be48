# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Machine pools of OpenShift Cluster Manager, one for each resource class: from a request, to node sets, and reconciled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...common.types import Object
from ..model import ClusterRequest, NodeSet
from .api import segment
from .fenced_api import FencedApi

NAME_LIMIT = 30
ZONES = 3


@dataclass(frozen=True)
class Pool:
    """Nodes to have: a fixed number, or between two limits where an autoscaler decides. Their class is the cloud's machine type."""

    resource_class: str
    requested: int
    multi_az: bool
    limits: tuple[int, int] | None = None

    @property
    def size(self) -> Object:
        """Its size as a machine pool has it."""
        if self.limits is None:
            return {"replicas": rounded(self.requested, self.multi_az)}
        least, most = (rounded(limit, self.multi_az) for limit in self.limits)
        return {"autoscaling": {"min_replicas": least, "max_replicas": most}}

    def is_size_of(self, pool: Object) -> bool:
        return all(pool.get(key) == value for key, value in self.size.items()) and bool(pool.get("autoscaling")) == bool(self.limits)

    def body(self, class_label: str) -> Object:
        labels = {class_label: self.resource_class}
        return {"id": pool_name(self.resource_class), "instance_type": self.resource_class, "labels": labels, **self.size}


class MachinePools:
    """The machine pools of one cluster. Pools without a resource class belong to no order, and are neither counted nor changed."""

    def __init__(self, service: FencedApi, cluster_path: str, class_label: str) -> None:
        self._service = service
        self._path = f"{cluster_path}/machine_pools"
        self._class_label = class_label

    def all(self) -> list[Object]:
        return self._service.api.list_all(self._path, f"list machine pools of {self._service.name}")

    def have_sizes(self, wanted: Sequence[Pool]) -> bool:
        """Whether the wanted pools that exist have the wanted sizes."""
        present = self._by_class()
        return all(pool.is_size_of(present[pool.resource_class]) for pool in wanted if pool.resource_class in present)

    def reconcile(self, wanted: Sequence[Pool]) -> None:
        """Have exactly the wanted pools; with none wanted, all stay."""
        present = self._by_class()
        for pool in wanted:
            self._apply(pool, present.get(pool.resource_class))
        for resource_class, found in present.items():
            if wanted and resource_class not in [pool.resource_class for pool in wanted]:
                self._delete(found)

    def scale(self, pool: Pool) -> None:
        """Have this pool; with no nodes requested it is deleted."""
        found = self._by_class().get(pool.resource_class)
        if pool.requested:
            self._apply(pool, found)
        elif found:
            self._delete(found)

    def _by_class(self) -> dict[str, Object]:
        pools = {class_of(pool, self._class_label): pool for pool in self.all()}
        return {resource_class: pool for resource_class, pool in pools.items() if resource_class}

    def _apply(self, pool: Pool, found: Object | None) -> None:
        if found is None:
            self._service.post(self._path, "MachinePool", pool_name(pool.resource_class), pool.body(self._class_label))
        elif not pool.is_size_of(found):
            self._service.patch(f"{self._path}/{segment(found['id'])}", "MachinePool", found["id"], found, pool.size)

    def _delete(self, found: Object) -> None:
        self._service.delete(f"{self._path}/{segment(found['id'])}", "MachinePool", found["id"], found)


def rounded(nodes: int, multi_az: bool) -> int:
    """The number of nodes, or the next one that fills all zones evenly: the service accepts no other."""
    return -(-nodes // ZONES) * ZONES if multi_az else nodes


def pool_name(resource_class: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", resource_class.lower()).strip("-")
    return (name if name[:1].isalpha() else f"class-{name}")[:NAME_LIMIT].rstrip("-")


def class_of(pool: Object, class_label: str) -> str:
    return str((pool.get("labels") or {}).get(class_label) or "")


def wanted_pools(request: ClusterRequest) -> list[Pool]:
    """The pools of a request, one for each class; the service creates the first one with the cluster."""
    scaled = {item["resource_class"]: (item["min_replicas"], item["max_replicas"]) for item in request.settings.get("autoscaling") or []}
    pools = [
        Pool(item.resource_class, item.number_of_nodes, request.multi_az, scaled.get(item.resource_class)) for item in request.node_requests
    ]
    return [pool for pool in pools if pool.requested or pool.limits]


def requested_nodes(pools: Sequence[Pool]) -> dict[str, int]:
    return {pool.resource_class: pool.requested for pool in pools if pool.limits is None}


def node_sets(
    pools: Sequence[Object], class_label: str, requested: Mapping[str, int], multi_az: bool, installed: bool
) -> tuple[NodeSet, ...]:
    """The nodes by class. `requested` are the numbers of nodes before they were rounded.

    The service does not report how many nodes of a pool are ready: in an installed cluster those count that the pool has to have, without
    those that only fill up the zones. Before that the service accepts no further pools, so pools still to be created count as requested.
    """
    found = {class_of(pool, class_label): pool for pool in pools}
    sets = [_node_set(pool, name, requested.get(name), multi_az, installed) for name, pool in found.items() if name]
    missing = [] if installed else [NodeSet(pool_name(name), name, nodes, 0) for name, nodes in requested.items() if name not in found]
    return (*sets, *missing)


def _node_set(pool: Object, resource_class: str, requested: int | None, multi_az: bool, installed: bool) -> NodeSet:
    limits = pool.get("autoscaling")
    nodes = int((limits or {}).get("min_replicas") or pool.get("replicas") or 0)
    if requested is not None and rounded(requested, multi_az) == nodes:
        nodes = requested
    return NodeSet(str(pool.get("id", "")), resource_class, None if limits else nodes, nodes if installed else 0)
