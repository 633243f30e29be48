# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one observer: what exists on the hub for an order, and the state of its cluster. It decides nothing and writes nothing.

`observe` is the same for every caller. What differs is where it reads the hub: by requests for one order (`LiveView`), from one list of
each kind (`ListView`), or from informer caches (the event source's view).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound
from ..providers.base import BrokenProvider, ClusterRef, Provider, ProviderError
from ..providers.factory import ProviderFactory
from ..providers.model import AVAILABLE, UNKNOWN, ConditionState, NodeSet, ObservedCluster
from .model import ClusterOrder, Names, readable_orders
from .ownership import owns_namespace
from .working_namespace import find_namespace

# After this no more providers are asked for one list of orders. A provider of ours answers, or not, within half a
# minute.
OBSERVE_SECONDS = 120.0


class NotAsked(KubeError):
    """The provider was not asked. This says nothing about the cluster."""

    retryable = True


@dataclass(frozen=True)
class ObservedState:
    """The cluster of an order and its working namespace. `namespace_taken`: a namespace of that name exists for another order.

    `namespace` is the name of the working namespace where an external controller has chosen it. `gitops` has the conditions that were
    observed inside of the cluster, by type; None where it was not observed.
    """

    cluster: ObservedCluster = field(default_factory=ObservedCluster)
    namespace_exists: bool = False
    namespace_deleting: bool = False
    namespace_taken: bool = False
    namespace: str = ""
    gitops: Mapping[str, ConditionState] | None = None


class HubView(Protocol):
    """Where `observe` reads the hub."""

    @property
    def kube(self) -> Kube: ...

    def namespace(self, order: ClusterOrder) -> Object | None:
        """The working namespace of the order; None where it does not exist."""

    def watched(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        """The cluster of a provider whose objects on the hub show its state."""

    def polled(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        """The cluster of a provider that has to be asked."""


def observe(order: ClusterOrder, view: HubView, template_provider: str = "") -> ObservedState:
    """What exists for the order. `template_provider` is asked where the order's status records no provider.

    An error of the provider, of any kind, makes the cluster unknown; an error of the hub is raised.
    """
    kind = provider_type(order) or template_provider
    found = view.namespace(order)
    if found is not None and not owns_namespace(order, found):
        # Nothing in it counts: it belongs to another order, perhaps to an earlier one of this name.
        return ObservedState(namespace_taken=True)
    if found is None and order.names.external_controller:
        return ObservedState()  # nothing says where its cluster would be
    if not kind:
        return _state(order, ObservedCluster(), found)
    try:
        ref = cluster_ref(view.kube, order)
        provider = ProviderFactory.for_cluster(kind, replace(ref, namespace=found["metadata"]["name"]) if found else ref)
        if found is None and not provider.WATCHES:
            return ObservedState()  # the credentials to ask such a provider are in the namespace
        cluster = view.watched(order, provider) if provider.WATCHES else _polled(order, provider, view)
    except (ProviderError, NotFound) as error:  # not installed here, or its kinds not on the hub, or a fault of its own
        cluster = unknown_cluster(order, error)
    except KubeError:
        raise
    except Exception as fault:  # noqa: BLE001 - of any kind: the constructor of a provider, or what is recorded of the cluster
        cluster = unknown_cluster(order, BrokenProvider(kind, "status", fault))
    return _state(order, cluster, found)


def _polled(order: ClusterOrder, provider: Provider, view: HubView) -> ObservedCluster:
    """An error of the system behind the provider is none of the hub."""
    try:
        return view.polled(order, provider)
    except NotAsked:
        raise
    except KubeError as error:
        return unknown_cluster(order, error)


class LiveView:
    """Reads the hub by requests, for one order at a time."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube

    def namespace(self, order: ClusterOrder) -> Object | None:
        return find_namespace(order, self)

    def named(self, name: str) -> Object | None:
        return self.kube.find("v1", "Namespace", name)

    def labelled(self, order: ClusterOrder) -> Sequence[Object]:
        label = order.names.order_label
        return self.kube.list_all("v1", "Namespace", label_selector=f"{label}={order.labels[label]}")

    def watched(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        return provider.status(recorded_cluster(order))

    def polled(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        return provider.status(recorded_cluster(order))


class PreparedView(LiveView):
    """Reads the hub for the run that holds the order's lock, and whose preparation has checked the working namespace under it."""

    def namespace(self, order: ClusterOrder) -> Object | None:
        return {"metadata": {"name": order.working_namespace, "labels": order.labels}}


class ListView:
    """Reads the hub by one list of each kind: four requests for a thousand orders of one provider. It is as old as itself."""

    def __init__(self, kube: Kube, names: Names, orders: Sequence[ClusterOrder] | None = None, *, poll: bool = True) -> None:
        """`orders` are those to be observed; without them, all of the hub. Without `poll` only the hub itself is read."""
        self.kube = kube
        self.problems: list[str] = []  # of orders that cannot be read
        self._poll = poll
        if orders is None:
            orders, self.problems = readable_orders(kube.list_all(names.api_version, "ClusterOrder"), names)
        self.orders = orders
        namespaces = kube.list_all("v1", "Namespace", label_selector=names.order_label)
        self._namespaces = {item["metadata"]["name"]: item for item in namespaces}
        self._labelled: dict[str, list[Object]] = {}
        for item in namespaces:
            self._labelled.setdefault(item["metadata"]["labels"][names.order_label], []).append(item)
        self._ends = float("inf")
        self._objects: dict[str, list[Object]] = {}
        self._missing: dict[tuple[str, str], NotFound] = {}
        for api_version, kind in sorted(_watched_kinds(orders)):
            try:
                found = kube.list_all(api_version, kind)
            except NotFound as error:  # the hub lacks the kind, which concerns only the orders of its provider
                self._missing[api_version, kind] = error
                continue
            for item in found:
                self._objects.setdefault(item["metadata"]["namespace"], []).append(item)
        self.time = kube.server_time() or datetime.now(UTC)

    def observe_all(self) -> list[ObservedState | KubeError]:
        """The state of every order, in their order, or why it is not known. Providers that have to be asked are asked in parallel.

        The orders of all namespaces take turns, so that a namespace with many clusters that hang delays the others by one of them only.
        """
        self._ends = time.monotonic() + OBSERVE_SECONDS
        turns: dict[str, int] = {}
        ranked: list[tuple[int, int]] = []
        for number, order in enumerate(self.orders):
            turns[order.namespace] = turns.get(order.namespace, 0) + 1
            ranked.append((turns[order.namespace], number))
        numbers = [number for _turn, number in sorted(ranked)]
        observed = self.kube.in_parallel(lambda number: observe(self.orders[number], self), numbers)
        by_number = dict(zip(numbers, observed, strict=True))
        return [by_number[number] for number in range(len(self.orders))]

    def namespace(self, order: ClusterOrder) -> Object | None:
        return find_namespace(order, self)

    def named(self, name: str) -> Object | None:
        return self._namespaces.get(name)

    def labelled(self, order: ClusterOrder) -> Sequence[Object]:
        return self._labelled.get(order.labels[order.names.order_label], ())

    def watched(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        for kind in provider.WATCHES:
            if kind in self._missing:
                raise self._missing[kind]
        return provider.observe_objects(recorded_cluster(order), self._objects.get(provider.ref.namespace, []))

    def polled(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        if not self._poll:
            raise NotAsked(f"The state of {order.namespace}/{order.name} is known to its provider {provider.TYPE}, which was not asked.")
        if time.monotonic() > self._ends:
            raise NotAsked(
                f"The state of {order.namespace}/{order.name} was not read: the providers of other orders took more than "
                f"{OBSERVE_SECONDS:g} s to answer. Name fewer orders."
            )
        return provider.status(recorded_cluster(order))


def cluster_ref(kube: Kube, order: ClusterOrder) -> ClusterRef:
    """The reference to the cluster of an order, without permission to write."""
    names = order.names
    return ClusterRef(
        kube,
        names.cluster_name(order.name),
        order.working_namespace,
        order.labels,
        names.resource_class_label,
        allowed_addresses=names.allowed_addresses,
    )


def provider_type(order: ClusterOrder) -> str:
    """The type of the provider that serves the order's cluster; empty until one is recorded. It never changes afterwards."""
    return str(_recorded(order).get("type") or "")


def recorded_cluster(order: ClusterOrder) -> ObservedCluster:
    """The ids of the cluster that the order's status records, by which its provider finds it."""
    return ObservedCluster.from_stored(_recorded(order))


def unknown_cluster(order: ClusterOrder, error: Exception) -> ObservedCluster:
    """The cluster when its provider cannot be asked: as last observed, all of it uncertain, and none of it gone."""
    recorded, version = recorded_cluster(order), order.status.get("version")
    version = version if isinstance(version, dict) else {}  # another controller may have a field of this name
    nodes = (
        NodeSet("", item["resourceClass"], item["requested"], item.get("ready", 0), outdated=True, counted="ready" in item)
        for item in order.status.get("nodeSets") or []
    )
    return ObservedCluster(
        internal_id=recorded.internal_id,
        external_id=recorded.external_id,
        status="unknown",
        status_details=str(error),
        additional_info=recorded.additional_info,
        cloud_provider=recorded.cloud_provider,
        region=recorded.region,
        multi_az=recorded.multi_az,
        node_sets=tuple(nodes),
        api_url=str(order.status.get("apiURL") or ""),
        console_url=str(order.status.get("consoleURL") or ""),
        running_version=str(version.get("running") or ""),
        desired_version=str(version.get("desired") or ""),
        available_updates=tuple(map(str, version.get("availableUpdates") or [])),
        installed=True,
        conditions={AVAILABLE: ConditionState(UNKNOWN, type(error).__name__, str(error))},
    )


def _recorded(order: ClusterOrder) -> Object:
    recorded = order.status.get("provider")
    return recorded if isinstance(recorded, dict) else {}  # another controller may have a field of this name


def _state(order: ClusterOrder, cluster: ObservedCluster, namespace: Object | None) -> ObservedState:
    if namespace is None:
        return ObservedState(cluster)
    metadata = namespace["metadata"]
    name = metadata["name"] if order.names.external_controller else ""
    return ObservedState(cluster, namespace_exists=True, namespace_deleting="deletionTimestamp" in metadata, namespace=name)


def _watched_kinds(orders: Sequence[ClusterOrder]) -> set[tuple[str, str]]:
    kinds: set[tuple[str, str]] = set()
    for name in {provider_type(order) for order in orders} - {""}:
        try:
            kinds.update(ProviderFactory.get(name).WATCHES)
        except ProviderError:  # reported on the orders of this provider when they are observed
            continue
    return kinds
