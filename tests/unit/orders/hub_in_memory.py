"""A hub in memory, with what observers and the event source use of a connection. It checks no permission and no schema."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import jsonpatch
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import ObjectList, WatchEvent
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict, Invalid, KubeError, NotFound, Unexpected


class HubInMemory:
    """Objects by kind, namespace and name. A watch delivers nothing: the first list has everything."""

    def __init__(self, *items: Object, missing_kinds: Iterable[str] = ()) -> None:
        self.target = SimpleNamespace(server="https://hub.example.com:6443", namespace="default")
        self._items = {_address(item): copy.deepcopy(item) for item in items}
        self._missing = set(missing_kinds)
        self._versions = itertools.count(100)
        self._closed = threading.Event()

    def close(self) -> None:
        """End all watches."""
        self._closed.set()

    def server_time(self) -> datetime:
        return datetime(2026, 1, 1, 1, tzinfo=UTC)

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object | None:
        self._require(kind)
        return copy.deepcopy(self._items.get((kind, namespace or "", name)))

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        found = self.find(api_version, kind, name, namespace)
        if found is None:
            raise NotFound(f"There is no {kind} {name}.")
        return found

    def list_all(
        self, api_version: str, kind: str, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        self._require(kind)
        listing = ObjectList(
            copy.deepcopy(item)
            for (its_kind, its_namespace, _name), item in self._items.items()
            if its_kind == kind and namespace in (None, its_namespace) and _has_labels(item, label_selector)
        )
        listing.resource_version = "1"
        return listing

    def watch(self, api_version: str, kind: str, namespace: str | None = None, **_options: Any) -> Iterator[WatchEvent]:
        self._closed.wait()
        return iter(())

    def create(self, item: Object) -> Object:
        if _address(item) in self._items:
            raise Conflict(f"{item['kind']} {item['metadata']['name']} exists.")
        return self.replace(item)

    def patch(self, item: Object, changes: Object | Sequence[Object], **_options: Any) -> Object:
        if isinstance(changes, dict):
            return self.replace(item | {name: value for name, value in changes.items() if name != "metadata"})
        try:
            patched: Object = jsonpatch.apply_patch(self._items[_address(item)], changes)
        except jsonpatch.JsonPatchException as error:
            raise Invalid(str(error), []) from error
        return self.replace(patched)

    def replace(self, item: Object, subresource: str = "") -> Object:
        stored = copy.deepcopy(item)
        stored["metadata"]["resourceVersion"] = str(next(self._versions))
        self._items[_address(item)] = stored
        return copy.deepcopy(stored)

    def in_parallel(self, work: Callable[[Any], Any], items: Iterable[Any], connections: int = 16) -> list[Any]:
        results = []
        for item in items:
            try:
                results.append(work(item))
            except KubeError as error:
                results.append(error)
            except Exception as fault:  # noqa: BLE001 - as the real one
                results.append(Unexpected(fault))
        return results

    def _require(self, kind: str) -> None:
        if kind in self._missing:
            raise NotFound(f"The server does not serve the kind {kind}.")


def _address(item: Object) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _has_labels(item: Object, selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    wanted = [part.partition("=") for part in selector.split(",") if part]
    return all(name in labels and (not equals or labels[name] == value) for name, equals, value in wanted)
