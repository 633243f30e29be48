"""What the stand-in needs of the hub's API server: an informer for each of the two kinds it serves, and a few writes.

The library's client blocks, so each write runs in a thread. What to write is decided elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
from collections.abc import Callable
from pathlib import Path

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import Informer, in_thread
from ....plugins.module_utils.controller.work_queue import Key
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.config import target
from ....plugins.module_utils.kube.errors import NotFound

API_VERSION = "hypershift.openshift.io/v1beta1"
HOSTED_CLUSTER, NODE_POOL = "HostedCluster", "NodePool"
FIELD_MANAGER = "hypershift-standin"


def connect(kubeconfig: Path) -> Kube:
    """The cluster of the kubeconfig, whatever the environment names. Its fields are owned by the stand-in, not by the collection."""
    return Kube(target({"kubeconfig": str(kubeconfig)}, {}), field_manager=FIELD_MANAGER)


def key_of(item: Object) -> Key:
    return Key(item["metadata"]["namespace"], item["metadata"]["name"])


def is_deleting(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


class Hub:
    """The hub's HostedClusters and NodePools in two caches, and the writes to them. `changed` gets each object that changes."""

    def __init__(self, kube: Kube, changed: Callable[[Object], None]) -> None:
        def notify(before: Object | None, after: Object | None) -> None:
            changed(after or before or {})

        self._kube = kube
        self._changed = changed
        self.hosted_clusters = Informer(kube, API_VERSION, HOSTED_CLUSTER, notify)
        self.node_pools = Informer(kube, API_VERSION, NODE_POOL, notify)

    @property
    def informers(self) -> tuple[Informer, Informer]:
        return self.hosted_clusters, self.node_pools

    def latest(self, item: Object) -> Object:
        """The object as the cache has it now; a write may have brought its next version."""
        return self._informer(item).get(key_of(item)) or item

    async def write_status(self, item: Object, status: Object) -> None:
        """Replace the status if it differs from the cached one. A merge patch cannot write the nulls that are in it."""
        if status != item.get("status"):
            self._remember(await in_thread(lambda: self._kube.replace(item | {"status": status}, subresource="status")))

    async def patch_metadata(self, item: Object, changes: Object) -> None:
        """Change metadata lists; a Conflict if the object has changed since `item` was read."""
        self._remember(await in_thread(lambda: self._kube.patch(item, {"metadata": changes})))

    async def patch_spec(self, item: Object, changes: Object) -> None:
        """Fill in fields of the spec, as the operator does."""
        self._remember(await in_thread(lambda: self._kube.patch(item, {"spec": changes})))

    async def delete(self, item: Object) -> None:
        await in_thread(lambda: self._kube.delete(item))

    async def delete_others(self, items: list[Object]) -> None:
        """Delete objects of other kinds than the two served, where they exist."""
        for item in items:
            with contextlib.suppress(NotFound):
                await self.delete(item)

    async def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """An object of the core API."""
        return await in_thread(lambda: self._kube.find("v1", kind, name, namespace))

    async def apply(self, *items: Object) -> None:
        """Create or change objects, also those that another client has created."""
        for item in items:
            await in_thread(functools.partial(self._kube.apply, item, force=True))

    async def annotate(self, item: Object, name: str, value: str) -> None:
        if name not in item["metadata"].get("annotations", {}):
            with contextlib.suppress(NotFound):
                await in_thread(lambda: self._kube.patch(item, {"metadata": {"annotations": {name: value}}}, checked=False))

    async def apply_secret(self, owner: Object, name: str, data: dict[str, bytes]) -> None:
        """Create or change a secret with the labels of its owner, which the garbage collector removes with that."""
        metadata = owner["metadata"]
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "ownerReferences": [reference],
                "labels": metadata.get("labels", {}),
            },
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        await in_thread(lambda: self._kube.apply(secret, force=True))

    def _remember(self, item: Object) -> None:
        """Store the answer to a write. It is a change too: a status may be one step of several, and its watch event is not a newer one."""
        self._informer(item).remember(item)
        self._changed(item)

    def _informer(self, item: Object) -> Informer:
        return next(informer for informer in self.informers if informer.kind == item["kind"])


def unreachable_kubeconfig(name: str) -> bytes:
    """A kubeconfig of the right shape for a cluster that has no processes: nothing listens at its address."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        "users": [{"name": "admin", "user": {}}],
    }
    return json.dumps(content).encode()
