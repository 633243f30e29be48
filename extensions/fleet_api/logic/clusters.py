"""The clusters of tenants: found for a caller, created, changed and deleted as the caller."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.kinds import ADOPT_ORDER, API_VERSION, CLUSTER, CREATED_BY
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import KubeError
from ..problems import Problem, not_found
from ..stores.access import CREATE_CLUSTERS, GET_CLUSTERS, Access, Action
from ..stores.caches import FleetCaches
from ..stores.cluster_source import ClusterSource
from ..stores.home import Home, problem_of
from ..stores.identity import Caller
from .tenants import Tenants
from .views import OWN_PREFIX

Result = TypeVar("Result")

UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
KEY_LABEL = f"{OWN_PREFIX}idempotency-key"  # a hash of the key and its user
REQUEST_ANNOTATION = f"{OWN_PREFIX}request"  # a hash of the request that had the key
CACHE_SECONDS = 2.0
LIVE_TENANTS = 5  # in so many a cluster is searched that this process may not know yet


@dataclass(frozen=True)
class NewCluster:
    """The request for a cluster."""

    name: str
    tenant: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    adopted: str = ""  # namespace and name of an order on the hub

    def digest(self) -> str:
        content = json.dumps([self.name, self.tenant, self.spec, self.labels, self.adopted], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Created:
    """The cluster of a request. `is_replay`: an earlier request with the same key has created it."""

    item: Object
    is_replay: bool = False


class Clusters:
    """Every write is one of the caller, so that the home cluster's permissions, policies and audit log count."""

    def __init__(self, home: Home, caches: FleetCaches, tenants: Tenants, access: Access, source: ClusterSource) -> None:
        self._source = source
        self._home = home
        self._caches = caches
        self._tenants = tenants
        self._access = access

    async def find(self, caller: Caller, uid: str, action: Action = GET_CLUSTERS) -> Object:
        """The cluster, if the caller may see it. Otherwise, and where there is none, the same answer after the same steps."""
        visible = await self._tenants.visible(caller, action)
        item = self._caches.cluster(uid)
        if item is not None and item["metadata"]["namespace"] in visible:
            return item
        # It may have been created through another replica a moment ago.
        if UID.fullmatch(uid):
            for tenant in visible.names[:LIVE_TENANTS]:
                if found := next((each for each in await self._list(caller, tenant) if each["metadata"]["uid"] == uid), None):
                    return self._source.shown(found)
        raise not_found()

    async def find_any(self, caller: Caller, uid: str, action: Action = GET_CLUSTERS) -> Object:
        """The cluster of any tenant, for operators."""
        await self._tenants.require(caller, action)
        item = self._caches.cluster(uid)
        if item is None:
            raise not_found()
        return item

    async def create(self, caller: Caller, new: NewCluster, key: str = "") -> Created:
        """Create the cluster. A request with a key that was used for the same request returns what that one created.

        Of different requests with one key at once, the one whose cluster was stored first is accepted: each compares with the clusters as
        they were at the moment of its own creation. The cluster of any other one is deleted again.
        """
        labels, annotations = dict(new.labels), {CREATED_BY: caller.user} | ({ADOPT_ORDER: new.adopted} if new.adopted else {})
        if key:
            labels[KEY_LABEL] = hashlib.sha256(f"{caller.user}\n{key}".encode()).hexdigest()[:40]
            annotations[REQUEST_ANNOTATION] = new.digest()
            if earlier := await self._earlier(caller, new, labels[KEY_LABEL]):
                return earlier
        item = self._object(new, labels, annotations)
        try:
            created = self._source.shown(await self._as(caller, lambda kube: kube.create(item, strict=True)))
        except Problem as problem:
            if problem.kind.code != "conflict":
                raise
            # Two requests with one key at once: the other one was first.
            if key and (earlier := await self._earlier(caller, new, labels[KEY_LABEL])):
                return earlier
            raise Problem("already-exists", f"The tenant {new.tenant} has a cluster {new.name}.") from None
        version = created["metadata"]["resourceVersion"]
        if key and len(await self._list(caller, new.tenant, f"{KEY_LABEL}={labels[KEY_LABEL]}", version)) > 1:
            await self._as(caller, lambda kube: kube.delete(created, checked=True))
            raise Problem("idempotency-key-reused")
        await self._caches.reached(created, CACHE_SECONDS)
        return Created(created)

    async def dry_run(self, caller: Caller, new: NewCluster) -> Object:
        """The cluster as the home cluster would store it; a Problem where it would refuse it."""
        if not await self._access.allows(caller, CREATE_CLUSTERS, new.tenant):
            raise Problem("forbidden")
        item = self._object(new, dict(new.labels), {CREATED_BY: caller.user})
        return self._source.shown(await self._as(caller, lambda kube: kube.create(item, dry_run=True, strict=True)))

    async def change(self, caller: Caller, item: Object, changes: Object, version: str | None = None) -> Object:
        """Merge the changes into the cluster; with a version, only if it is the one that the cluster has."""
        wanted = item | {"metadata": item["metadata"] | ({"resourceVersion": version} if version else {})}
        patch = _for(item, self._source.changes(item, changes))
        changed = self._source.shown(
            await self._as(caller, lambda kube: kube.patch(wanted, patch, checked=version is not None, strict=True))
        )
        await self._caches.reached(changed, CACHE_SECONDS)
        return changed

    async def delete(self, caller: Caller, item: Object, version: str | None = None) -> Object:
        """Request the deletion of this cluster, never of another one with its name. Returns the cluster, which is there for a while."""
        wanted = item | {"metadata": item["metadata"] | ({"resourceVersion": version} if version else {})}

        def delete(kube: Kube) -> Object | None:
            kube.delete(wanted, checked=True, unchanged=version is not None)
            return kube.find(self._source.api_version, self._source.kind, item["metadata"]["name"], item["metadata"]["namespace"])

        found = await self._as(caller, delete)
        if found is None or found["metadata"]["uid"] != item["metadata"]["uid"]:
            return item
        left = self._source.shown(found)
        await self._caches.reached(left, CACHE_SECONDS)
        return left

    async def _earlier(self, caller: Caller, new: NewCluster, key: str) -> Created | None:
        found = await self._list(caller, new.tenant, f"{KEY_LABEL}={key}")
        if not found:
            return None
        requests = {(each["metadata"].get("annotations") or {}).get(REQUEST_ANNOTATION) for each in found}
        if new.digest() not in requests:
            raise Problem("idempotency-key-reused")
        if len(found) > 1:
            # Another request is about to delete its cluster, or could not, because this service was killed.
            names = ", ".join(sorted(each["metadata"]["name"] for each in found))
            raise Problem("conflict", f"The clusters {names} have this Idempotency-Key. Try again; if both stay, delete one of them.")
        return Created(self._source.shown(found[0]), is_replay=True)

    async def _list(self, caller: Caller, tenant: str, selector: str = "", version: str = "") -> list[Object]:
        """The stored objects of a tenant; with a version, as they were then."""
        kind = self._source.kind
        return await self._as(caller, lambda kube: kube.list_all(self._source.api_version, kind, tenant, selector, version=version))

    async def _as(self, caller: Caller, work: Callable[[Kube], Result]) -> Result:
        try:
            return await self._home.act(caller, work)
        except KubeError as error:
            raise problem_of(error) from error

    def _object(self, new: NewCluster, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Object:
        metadata = {"name": new.name, "namespace": new.tenant, "labels": dict(labels), "annotations": dict(annotations)}
        return self._source.stored({"apiVersion": API_VERSION, "kind": CLUSTER, "metadata": metadata, "spec": dict(new.spec)})


def _for(item: Object, changes: Object) -> Object:
    """The changes for this object only: the API server refuses them for a newer one with its name."""
    return changes | {"metadata": (changes.get("metadata") or {}) | {"uid": item["metadata"]["uid"]}}
