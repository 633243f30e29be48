# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which orders are reconciled when something on the hub changes. It decides nothing about them, and talks to no server."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..common.types import Object
from ..lock import lease
from ..orders.model import Names, label_value
from .key_index import KeyIndex
from .work_queue import Key, WorkQueue


class OrderTriggers:
    """One for a hub. `cached` is the last known object of an order; None where there is no such order."""

    def __init__(self, names: Names, queue: WorkQueue, cached: Callable[[Key], Object | None]) -> None:
        self._names = names
        self._queue = queue
        self._cached = cached
        # The orders of each working namespace. Two may claim one; the run of the second reports that.
        self._by_namespace = KeyIndex()
        self._by_label = KeyIndex()  # on the namespaces of an external controller
        # Orders whose status changed during their reconcile: mostly by its own write, whose event may come before its
        # answer.
        self._status_changed: set[Key] = set()

    def follow(self, key: Key) -> None:
        """From now on, a change of the order's working namespace concerns it."""
        if self._names.external_controller:
            self._by_label.put(key, [label_value(key.name)])
        else:
            self._by_namespace.put(key, [self._names.working_namespace(*key)])

    def follow_namespaces(self, key: Key, namespaces: Iterable[str]) -> None:
        """From now on, changes of these namespaces, and in them, concern the order. An external controller names them."""
        self._by_namespace.put(key, namespaces)

    def order_changed(self, key: Key, before: Object | None, after: Object) -> None:
        if self._queue.is_active(key) and before and _metadata(before) == _metadata(after):
            self._status_changed.add(key)
        else:
            self._queue.add(key)

    def reconciled(self, key: Key, version: str | None) -> None:
        """A reconcile has ended. `version` is that of the order that it read or wrote; None where it got no further than that."""
        if key in self._status_changed:
            self._status_changed.discard(key)
            cached = self._cached(key)
            if cached and cached["metadata"]["resourceVersion"] != version:
                self._queue.add(key)  # another writer's change

    def lock_changed(self, before: Object | None, after: Object | None) -> None:
        state = lease.state_of(after or before or {})
        # A Lease outlives its order, and a tenant may leave any number of them. A new order is enqueued by its own
        # event.
        if state and self._cached(Key(state.namespace, state.order)):
            self._queue.add(Key(state.namespace, state.order))

    def namespace_changed(self, before: Object | None, after: Object | None) -> None:
        # Only the creation and the deletion of a namespace matter.
        if before is None or after is None:
            metadata = (after or before or {})["metadata"]
            self._enqueue(self._by_namespace.get(metadata["name"]))
            self._enqueue(self._by_label.get((metadata.get("labels") or {}).get(self._names.order_label, "")))

    def cluster_changed(self, before: Object | None, after: Object | None) -> None:
        self._enqueue(self._by_namespace.get((after or before or {})["metadata"]["namespace"]))

    def forget(self, key: Key) -> None:
        self._by_namespace.forget(key)
        self._by_label.forget(key)

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._queue.add_coalesced(key)


def _metadata(item: Object) -> Object:
    """What changes with everything but the status: the generation is that of the spec."""
    return {name: value for name, value in item["metadata"].items() if name != "resourceVersion"}
