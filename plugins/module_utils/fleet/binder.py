# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Binds clusters that have quota: chooses hubs, reserves capacity, binds, creates the assignments. A killed run leaves nothing to undo.

The order of the writes makes a cluster never be on two hubs: capacity on the hub first, then `status.hub` of the cluster, by one
compare-and-swap, then the assignment in the namespace of that hub. What a killed run left is used or released by the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..common.clock import boottime
from ..kube.client import Kube
from ..kube.errors import Conflict, KubeError, NotFound
from .assignments import Assignments
from .compare_and_swap import merge_patch
from .hub_store import HubStore, reserve_capacity
from .kinds import API_VERSION, CLUSTER
from .model import FleetCluster, Hub
from .observe import ObservedFleet
from .quota import in_queue_order
from .schedule import Choice, FilterResults, Request, Weights, choose
from .status import Transient, derive_status

ROUNDS = 10  # another process may take the capacity between a choice and its reservation; the next reconcile goes on


@dataclass(frozen=True)
class Binding:
    """A cluster with the choice for it: bound if that has a hub, or else with the reason why none fits."""

    cluster: FleetCluster
    choice: Choice
    error: str = ""


class Binder:
    """Binds clusters to hubs of one home cluster."""

    def __init__(self, home: Kube, weights: Weights | None = None) -> None:
        self._home = home
        self._hubs = HubStore(home)
        self._assignments = Assignments(home)
        self._weights = weights

    def bind(
        self, clusters: Sequence[FleetCluster], fleet: ObservedFleet, transient: Mapping[str, Transient] | None = None
    ) -> list[Binding]:
        """Bind clusters without a hub: the oldest first, and one that fits nowhere blocks no other. `transient` are by uid."""
        hubs, waiting, bindings = dict(fleet.hubs), in_queue_order(clusters), list[Binding]()
        errors: list[KubeError] = []
        for _round in range(ROUNDS):
            choices = self._choose(waiting, hubs, fleet)
            reserved, lost = self._reserve(waiting, choices, hubs, fleet, errors)
            bindings += self._bind_all(reserved, choices, fleet, transient or {})
            # A cluster that fits only a hub that could not be written is tried again soon: nothing is known to be in
            # its way.
            unwritten = next((str(error) for error in errors if not isinstance(error, NotFound)), "")
            bindings += [Binding(cluster, choices[cluster.uid], unwritten) for cluster in waiting if not choices[cluster.uid].hub]
            if not lost:
                break
            waiting = lost
        return bindings

    def _choose(self, waiting: Sequence[FleetCluster], hubs: Mapping[str, Hub], fleet: ObservedFleet) -> dict[str, Choice]:
        """A choice for each cluster, by uid, each with the capacity that the ones before it leave."""
        left, choices, filtered = dict(hubs), {}, FilterResults()
        for cluster in waiting:
            request = Request(cluster, fleet.tenant_labels.get(cluster.namespace, {}), fleet.now, fleet.hub_timeout)
            choice = choose(request, left.values(), self._weights, filtered)
            if choice.hub:
                left[choice.hub], _lacking = reserve_capacity(left[choice.hub], [cluster], fleet.now)
            choices[cluster.uid] = choice
        return choices

    def _reserve(
        self,
        waiting: Sequence[FleetCluster],
        choices: Mapping[str, Choice],
        hubs: dict[str, Hub],
        fleet: ObservedFleet,
        errors: list[KubeError],
    ) -> tuple[list[FleetCluster], list[FleetCluster]]:
        """Reserve on each hub in one write. Returns the clusters with capacity and those whose capacity was taken meanwhile.

        A hub that cannot be written, for example because it was deleted, is not chosen again. Why is added to `errors`.
        """
        by_hub: dict[str, list[FleetCluster]] = {}
        for cluster in waiting:
            if hub := choices[cluster.uid].hub:
                by_hub.setdefault(hub, []).append(cluster)
        results = self._home.in_parallel(lambda name: self._hubs.reserve(name, by_hub[name], fleet.now, hubs[name]), by_hub)
        reserved, lost = list[FleetCluster](), list[FleetCluster]()
        for (name, chosen), result in zip(by_hub.items(), results, strict=True):
            if isinstance(result, KubeError):
                del hubs[name]
                errors.append(result)
                lost += chosen
                continue
            after, lacking = result
            # What the agent reported last may be newer than what is stored.
            hubs[name] = replace(after, heartbeat=hubs[name].heartbeat)
            for cluster in chosen:
                (lost if cluster.uid in lacking else reserved).append(cluster)
        return reserved, lost

    def _bind_all(
        self,
        clusters: Sequence[FleetCluster],
        choices: Mapping[str, Choice],
        fleet: ObservedFleet,
        transient: Mapping[str, Transient],
    ) -> list[Binding]:
        bound = self._home.in_parallel(lambda each: self._bind(each, choices[each.uid], fleet, transient.get(each.uid, {})), clusters)
        return [
            Binding(cluster, Choice("", ""), str(each)) if isinstance(each, KubeError) else each
            for cluster, each in zip(clusters, bound, strict=True)
        ]

    def _bind(self, cluster: FleetCluster, choice: Choice, fleet: ObservedFleet, transient: Transient) -> Binding:
        """Write the hub into the status of the cluster, unless it has one, and create the assignment there."""
        bound_at: float | None = None
        while not cluster.hub:
            before = cluster.raw.get("status") or {}
            status = derive_status(cluster, fleet.now, choice=choice, transient=transient)
            try:
                bound = self._home.patch(cluster.raw, {"status": merge_patch(before, status)}, subresource="status")
                cluster, bound_at = FleetCluster.from_object(bound), boottime()
            except Conflict:
                item = self._home.find(API_VERSION, CLUSTER, cluster.name, cluster.namespace)
                if item is None or item["metadata"]["uid"] != cluster.uid or "deletionTimestamp" in item["metadata"]:
                    self._hubs.release(choice.hub, [cluster.uid])
                    return Binding(cluster, replace(choice, hub=""))
                known, cluster = cluster, FleetCluster.from_object(item)
                if item["metadata"]["generation"] != known.raw["metadata"]["generation"]:
                    # Quota and capacity were reserved for another spec, which may be smaller.
                    if cluster.hub != choice.hub:
                        self._hubs.release(choice.hub, [cluster.uid])
                    return Binding(cluster, Choice("", ""), "The cluster was changed before it was bound")
        if cluster.hub != choice.hub:  # another process was faster
            self._hubs.release(choice.hub, [cluster.uid])
        self._assignments.create(cluster, bound_at)
        return Binding(cluster, replace(choice, hub=cluster.hub))
