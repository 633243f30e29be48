"""The fleet in informer caches, with indexes by id and by subject of role bindings. It decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import Informer
from ....plugins.module_utils.controller.work_queue import Key
from ....plugins.module_utils.fleet.kinds import API_VERSION, HUB, QUOTA, QUOTA_NAME, RECORD
from ....plugins.module_utils.kube.client import Kube
from .cluster_source import ClusterSource
from .single_hub import FixedObjects

RBAC_VERSION = "rbac.authorization.k8s.io/v1"
Changed = Callable[[Object | None, Object | None], None]


class FleetCaches:
    """The informers of the service. `cluster_changed` is called for each change of a cluster."""

    def __init__(self, kube: Kube, cluster_changed: Changed, source: ClusterSource, single_hub: Object | None = None) -> None:
        """`single_hub` stands for all hubs, where there is no fleet."""
        self._by_uid: dict[str, Object] = {}
        self._bound: dict[tuple[str, str], dict[str, int]] = {}  # namespaces of role bindings by subject, with their number
        self._cluster_changed = cluster_changed
        self._waiting: dict[str, list[tuple[int, asyncio.Future[None]]]] = {}  # writers by uid, with the version they wait for

        def informer(api_version: str, kind: str, changed: Changed = _ignore, transform: Any = None) -> Informer:
            return Informer(kube, api_version, kind, changed, transform=transform or (lambda item: item))

        self.clusters = informer(source.api_version, source.kind, self._index_cluster, source.shown)
        self.hubs: Informer | FixedObjects
        self.quotas: Informer | FixedObjects
        self.records: Informer | FixedObjects
        self._of_fleet: tuple[Informer, ...] = ()
        if single_hub:
            self.hubs, self.quotas, self.records = FixedObjects(single_hub), FixedObjects(), FixedObjects()
        else:
            self._of_fleet = tuple(informer(API_VERSION, kind) for kind in (HUB, QUOTA, RECORD))
            self.hubs, self.quotas, self.records = self._of_fleet
        self._namespaces = informer("v1", "Namespace", transform=_only_labels)
        self._bindings = informer(RBAC_VERSION, "RoleBinding", self._index_binding, _only_subjects)

    @property
    def informers(self) -> tuple[Informer, ...]:
        return (self.clusters, *self._of_fleet, self._namespaces, self._bindings)

    def missing(self) -> list[str]:
        """The kinds that are not listed yet."""
        return [each.kind for each in self.informers if not each.listed.is_set()]

    def problems(self, seconds: float) -> list[str]:
        """Why the caches are not current; empty if they are. A watch counts as broken after `seconds`."""
        waiting = [f"{kind} is not listed yet" for kind in self.missing()]
        return waiting or [f"the watch of {each.kind} is broken" for each in self.informers if each.broken_for() > seconds]

    def cluster(self, uid: str) -> Object | None:
        return self._by_uid.get(uid)

    def clusters_of(self, namespaces: Iterable[str] | None) -> list[Object]:
        """The clusters of the namespaces; None for all."""
        return _of(self.clusters, namespaces)

    def records_of(self, namespaces: Iterable[str] | None) -> list[Object]:
        return _of(self.records, namespaces)

    def quota(self, namespace: str) -> Object | None:
        return self.quotas.get(Key(namespace, QUOTA_NAME))

    def hub(self, name: str) -> Object | None:
        return self.hubs.get(Key("", name))

    def labels_of(self, namespace: str) -> dict[str, str]:
        item = self._namespaces.get(Key("", namespace))
        return dict(item["metadata"].get("labels") or {}) if item else {}

    def has_namespace(self, namespace: str) -> bool:
        return self._namespaces.get(Key("", namespace)) is not None

    def bound_namespaces(self, subjects: Iterable[tuple[str, str]]) -> set[str]:
        """The namespaces with a role binding for one of the subjects. What it permits is not known here."""
        return {namespace for subject in subjects for namespace in self._bound.get(subject, ())}

    async def reached(self, item: Object, seconds: float) -> None:
        """Wait until the cache has this version of a cluster, so that its writer can read it; not indefinitely."""
        uid, version = item["metadata"]["uid"], int(item["metadata"]["resourceVersion"])
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        known = self._by_uid.get(uid)
        if known and int(known["metadata"]["resourceVersion"]) >= version:
            return
        waiting = self._waiting.setdefault(uid, [])
        waiting.append((version, future))
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass  # the watch brings it later
        finally:
            waiting.remove((version, future))
            if not waiting:
                self._waiting.pop(uid, None)

    def _index_cluster(self, before: Object | None, after: Object | None) -> None:
        if before:
            self._by_uid.pop(before["metadata"]["uid"], None)
        if after:
            uid = after["metadata"]["uid"]
            # The informer stores it in another form and with shared strings; the index refers to that one.
            after = self.clusters.get(Key(after["metadata"]["namespace"], after["metadata"]["name"])) or after
            self._by_uid[uid] = after
            for version, future in self._waiting.get(uid, ()):
                if version <= int(after["metadata"]["resourceVersion"]) and not future.done():
                    future.set_result(None)
        self._cluster_changed(before, after)

    def _index_binding(self, before: Object | None, after: Object | None) -> None:
        for item, step in ((before, -1), (after, 1)):
            if item is None:
                continue
            namespace = item["metadata"]["namespace"]
            for subject in _subjects(item):
                counted = self._bound.setdefault(subject, {})
                counted[namespace] = counted.get(namespace, 0) + step
                if not counted[namespace]:
                    del counted[namespace]
                if not counted:
                    del self._bound[subject]


def _ignore(_before: Object | None, _after: Object | None) -> None:
    """Nothing depends on the change at once."""


def _of(informer: Informer | FixedObjects, namespaces: Iterable[str] | None) -> list[Object]:
    if namespaces is None:
        return informer.all()
    return [item for namespace in namespaces for item in informer.below(namespace)]


def _subjects(binding: Object) -> set[tuple[str, str]]:
    found = set()
    for each in binding.get("subjects") or ():
        own = f"{each.get('namespace') or binding['metadata']['namespace']}:" if each["kind"] == "ServiceAccount" else ""
        found.add((str(each["kind"]), f"{own}{each['name']}"))
    return found


def _named(item: Object) -> Object:
    kept = ("name", "namespace", "uid", "resourceVersion")
    return {"metadata": {name: item["metadata"][name] for name in kept if name in item["metadata"]}}


def _only_labels(item: Object) -> Object:
    named = _named(item)
    return named | {"metadata": named["metadata"] | {"labels": item["metadata"].get("labels") or {}}}


def _only_subjects(item: Object) -> Object:
    return _named(item) | {"subjects": item.get("subjects") or []}
