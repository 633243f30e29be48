# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hub in informer caches: orders, their locks and namespaces, and the objects of their clusters. A view for `observe`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..lock import lease
from ..lock.lease import LockState
from ..orders.model import ClusterOrder, Names
from ..orders.observe import HubView, LiveView, NotAsked, observe, provider_type, recorded_cluster, unknown_cluster
from ..orders.working_namespace import find_namespace
from ..providers.base import Provider, ProviderError
from ..providers.factory import ProviderFactory
from ..providers.model import ObservedCluster
from .informer import Informer
from .work_queue import Key


@dataclass(frozen=True)
class Handlers:
    """Whom the cache informs of changes; each gets the object before and after."""

    order: Callable[[Object | None, Object | None], None]
    lock: Callable[[Object | None, Object | None], None]
    namespace: Callable[[Object | None, Object | None], None]
    cluster: Callable[[Object | None, Object | None], None]


class HubCache:
    """The informers of one hub."""

    def __init__(self, watching: Kube, kube: Kube, names: Names, handlers: Handlers) -> None:
        """Watches have a connection of their own: they would use up the other's."""
        self.kube = kube
        self._watching = watching
        self._names = names
        self._handlers = handlers
        self._orders = Informer(watching, names.api_version, "ClusterOrder", handlers.order)
        self._locks = Informer(watching, lease.API_VERSION, "Lease", handlers.lock, lease.selector(), names.site_namespace)
        changed = self._namespace_changed if names.external_controller else handlers.namespace
        self._namespaces = Informer(watching, "v1", "Namespace", changed, names.order_label)
        # The names of an external controller's namespaces by their label. Tuples: observers read them in other threads.
        self._labelled: dict[str, tuple[str, ...]] = {}
        self._required = (self._orders, self._locks, self._namespaces)
        self._clusters: dict[tuple[str, str], Informer] = {}  # by apiVersion and kind, each started when an order needs it
        self._polled: dict[Key, ObservedCluster | KubeError] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Follow the hub in these tasks; return when orders, locks and namespaces are listed."""
        self._tasks = tasks
        for informer in self._required:
            tasks.create_task(informer.follow())
        for informer in self._required:
            await informer.listed.wait()

    @property
    def is_listed(self) -> bool:
        """Whether the first list of orders is complete: changes after it are news."""
        return self._orders.listed.is_set()

    def informers(self) -> list[Informer]:
        return [*self._required, *self._clusters.values()]

    def problems(self, seconds: float) -> list[str]:
        """Why the cache is not current; empty where it is. A watch counts as broken after `seconds`."""
        waiting = [f"{informer.kind} is not listed yet" for informer in self._required if not informer.listed.is_set()]
        # Kinds of clusters that the hub lacks, or forbids, are reported on the orders of their providers.
        listed = [informer for informer in self.informers() if informer.listed.is_set()]
        broken = sorted(informer.kind for informer in listed if informer.broken_for() > seconds)
        return waiting or [f"the watch of {kind} is broken" for kind in broken]

    # Orders and locks

    def order(self, key: Key) -> Object | None:
        return self._orders.get(key)

    def orders(self) -> Iterator[tuple[Key, Object]]:
        for item in self._orders.all():
            yield Key(item["metadata"]["namespace"], item["metadata"]["name"]), item

    def remember(self, order: ClusterOrder) -> None:
        """Store the answer to a write, so that the next reconcile does not read an older version."""
        self._orders.remember(order.raw)

    def lock(self, key: Key) -> LockState | None:
        item = self._locks.get(Key(self._names.site_namespace, lease.lease_name(*key)))
        return lease.state_of(item) if item else None

    def leases(self) -> list[Object]:
        """The locks of all orders, also of deleted ones."""
        return list(self._locks.all())

    def forget(self, key: Key) -> None:
        self._polled.pop(key, None)

    # Clusters

    def follows(self, order: ClusterOrder, on_listed: Callable[[], None]) -> bool:
        """Whether the kinds of the order's provider are listed or refused; else they are being listed, and `on_listed` is called then."""
        informers = [self._cluster_informer(*kind, on_listed) for kind in _watches(order)]
        return all(informer.listed.is_set() or informer.refusal for informer in informers)

    def must_be_polled(self, order: ClusterOrder) -> bool:
        return bool(provider_type(order)) and not _watches(order)

    def namespace(self, order: ClusterOrder) -> Object | None:
        return find_namespace(order, self)

    def named(self, name: str) -> Object | None:
        return self._namespaces.get(Key("", name))

    def labelled(self, order: ClusterOrder) -> Sequence[Object]:
        found = map(self.named, self._labelled.get(order.labels[self._names.order_label], ()))
        return [item for item in found if item]

    def namespaces_of(self, order: ClusterOrder) -> set[str]:
        """The names of all namespaces that may be the order's: which of them is, may take a request to the hub."""
        return {order.working_namespace, *self._labelled.get(order.labels[self._names.order_label], ())}

    def _namespace_changed(self, before: Object | None, after: Object | None) -> None:
        for item, is_present in ((before, False), (after, True)):
            if item:
                name, label = item["metadata"]["name"], (item["metadata"].get("labels") or {}).get(self._names.order_label, "")
                others = [known for known in self._labelled.pop(label, ()) if known != name]
                if others or is_present:
                    self._labelled[label] = (*others, name) if is_present else tuple(others)
        self._handlers.namespace(before, after)

    def watched(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        objects: list[Object] = []
        for kind in provider.WATCHES:
            informer = self._clusters[kind]
            if informer.refusal and not informer.listed.is_set():
                return unknown_cluster(order, informer.refusal)  # it concerns the orders of this provider only
            objects += informer.below(provider.ref.namespace)
        return provider.observe_objects(recorded_cluster(order), objects)

    def polled(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        """The provider's last answer to `poll`."""
        answer = self._polled.get(Key(order.namespace, order.name))
        if answer is None:
            raise NotAsked(f"The provider {provider.TYPE} was not asked for {order.namespace}/{order.name} yet.")
        if isinstance(answer, KubeError):
            raise answer
        return answer

    def poll(self, order: ClusterOrder) -> None:
        """Ask the order's provider, which may take its time, and store its answer."""
        observe(order, _PollingView(self, self._polled))

    def live(self) -> HubView:
        """A view that reads the hub by requests, and asks no provider elsewhere."""
        return _HubOnlyView(self)

    def _cluster_informer(self, api_version: str, kind: str, on_listed: Callable[[], None]) -> Informer:
        if (api_version, kind) not in self._clusters:
            if self._tasks is None:
                raise AssertionError("the cache is started before it follows clusters")
            informer = self._clusters[api_version, kind] = Informer(self._watching, api_version, kind, self._handlers.cluster)
            self._tasks.create_task(informer.follow())
            for event in (informer.listed, informer.refused):
                self._tasks.create_task(_call_when(event, on_listed))
        return self._clusters[api_version, kind]


class _PollingView:
    """The cache, but for the provider, which is asked."""

    def __init__(self, cache: HubCache, answers: dict[Key, ObservedCluster | KubeError]) -> None:
        self.kube = cache.kube
        self.namespace = cache.namespace
        self.watched = cache.watched
        self._answers = answers

    def polled(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        answer: ObservedCluster | KubeError
        try:
            answer = provider.status(recorded_cluster(order))
        except KubeError as error:
            answer = error
        self._answers[Key(order.namespace, order.name)] = answer
        return ObservedCluster()


class _HubOnlyView(LiveView):
    def __init__(self, cache: HubCache) -> None:
        super().__init__(cache.kube)
        self._cache = cache

    def polled(self, order: ClusterOrder, provider: Provider) -> ObservedCluster:
        return self._cache.polled(order, provider)


async def _call_when(event: asyncio.Event, action: Callable[[], None]) -> None:
    await event.wait()
    action()


def _watches(order: ClusterOrder) -> tuple[tuple[str, str], ...]:
    try:
        return ProviderFactory.get(provider_type(order)).WATCHES if provider_type(order) else ()
    except ProviderError:  # `observe` reports it on the order
        return ()
