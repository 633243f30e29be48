# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reserves and releases capacity on hubs by compare-and-swap on the status of a Hub. Which hub, `schedule` decides.

Reservations are keyed by the uid of the cluster. They grow before a hub gets the change, and shrink after it reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict
from .compare_and_swap import merge_patch, swap_status
from .kinds import API_VERSION, HUB
from .model import FleetCluster, Hub, HubReservation, Nodes, nodes_by_class
from .observe import LiveClusters
from .quota import largest, smallest
from .schedule import FilterResult, lacks_capacity

Result = TypeVar("Result")


class HubStore:
    """The hubs of one home cluster."""

    def __init__(self, home: Kube) -> None:
        self._home = home

    def reserve(
        self, name: str, clusters: Sequence[FleetCluster], now: datetime, known: Hub | None = None
    ) -> tuple[Hub, Mapping[str, FilterResult]]:
        """Reserve capacity for the clusters, in one write. Returns the hub as it is then, and what is in the way, by uid.

        `known` is the hub as a cache has it.
        """

        def reserved(hub: Hub) -> tuple[Hub, tuple[Hub, Mapping[str, FilterResult]]]:
            after, lacking = reserve_capacity(hub, clusters, now)
            return after, (after, lacking)

        return self._swap(name, reserved, known)

    def reduce(self, name: str, uid: str, present: Nodes, nodes: Nodes, now: datetime) -> None:
        """Reduce the capacity of a cluster to the nodes that are still in use. One that is no longer the `present` one is a conflict."""

        def reduced(hub: Hub) -> tuple[Hub, None]:
            own = hub.reservations.get(uid)
            if own is None:
                return hub, None
            if own.nodes != present:
                raise Conflict(f"The reservation of {own.name} on the hub {name} has changed since it was observed")
            return replace(hub, reservations={**hub.reservations, uid: own.resized(smallest(present, nodes), now)}), None

        self._swap(name, reduced)

    def release(self, name: str, uids: Iterable[str]) -> None:
        """Release the capacity of clusters that the hub reports deleted, or that were bound to another hub."""
        gone = {*uids}

        def released(hub: Hub) -> tuple[Hub, None]:
            return replace(hub, reservations={uid: each for uid, each in hub.reservations.items() if uid not in gone}), None

        self._swap(name, released)

    def repair(self, name: str, live: Callable[[], LiveClusters], now: datetime, clean_up: Callable[[str], object]) -> list[str]:
        """Release the capacity of clusters that no longer exist or are bound elsewhere, and reserve again what assigned clusters lost.

        Capacity for a cluster without a hub stays: another process may be about to bind it. `live` is called after each read of the hub,
        because a cluster exists before its reservation. `clean_up` gets each uid before its capacity is released: the reservation is the
        last that is known of it. Returns the uids that changed.
        """

        def repaired(hub: Hub) -> tuple[Hub, list[str]]:
            after = _repaired(hub, live(), now)
            for uid in sorted({*hub.reservations} - {*after.reservations}):
                clean_up(uid)
            return after, sorted({*hub.reservations} ^ {*after.reservations})

        return self._swap(name, repaired)

    def matches(self, hub: Hub, live: LiveClusters, now: datetime) -> bool:
        """Whether a hub that was read before the clusters needs no repair."""
        return not _status_changes(hub.raw, _repaired(hub, live, now))

    def _swap(self, name: str, compute: Callable[[Hub], tuple[Hub, Result]], known: Hub | None = None) -> Result:
        def change(item: Object) -> tuple[Object, Result]:
            hub, result = compute(Hub.from_object(item))
            return _status_changes(item, hub), result

        return swap_status(self._home, lambda: self._home.get(API_VERSION, HUB, name), change, known.raw if known else None)


def reserve_capacity(hub: Hub, clusters: Iterable[FleetCluster], now: datetime) -> tuple[Hub, Mapping[str, FilterResult]]:
    """The hub with capacity for the clusters that fit, in their order, and what is in the way of the others, by uid."""
    lacking: dict[str, FilterResult] = {}
    for cluster in clusters:
        if found := lacks_capacity(cluster, hub):
            lacking[cluster.uid] = found
            continue
        present = hub.reservations.get(cluster.uid)
        nodes = largest(present.nodes, cluster.nodes) if present else cluster.nodes
        if present is None or nodes != present.nodes:
            own = present or HubReservation(cluster.namespace, cluster.name, {}, now)
            hub = replace(hub, reservations={**hub.reservations, cluster.uid: own.resized(nodes, now)})
    return hub, lacking


def _repaired(hub: Hub, live: LiveClusters, now: datetime) -> Hub:
    kept = {uid: each for uid, each in hub.reservations.items() if live.hubs.get(uid) in ("", hub.name)}
    lost = [(each, own) for each, own in live.assigned if each.hub == hub.name and each.uid not in kept]
    nodes = {each.uid: largest(each.nodes, nodes_by_class(own.reported)) for each, own in lost}
    restored = kept | {each.uid: HubReservation(each.namespace, each.name, nodes[each.uid], now) for each, _own in lost}
    return replace(hub, reservations=restored)


def _status_changes(item: Object, hub: Hub) -> Object:
    status, present = _status(hub), item.get("status") or {}
    return merge_patch({key: value for key, value in present.items() if key in status}, status)


def _status(hub: Hub) -> Object:
    """The part of the status that counts reservations."""
    taken = {name for each in hub.reservations.values() for name in each.nodes}
    free = {name: hub.free_nodes(name) for name in sorted({*hub.nodes, *taken})}
    return {
        "reservations": {uid: each.to_status() for uid, each in hub.reservations.items()},
        "clusters": len(hub.reservations),
        "free": {"clusters": hub.free_clusters(), "nodes": free},
    }
