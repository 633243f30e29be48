"""What the stand-in asks of the hub's API server: a mirror of the two kinds it serves, and a handful of writes."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable
from typing import Any

from kubernetes.aio import client, watch

from ....plugins.module_utils.controller.work_queue import Key, sentence

log = logging.getLogger("hypershift-standin")

Object = dict[str, Any]
GROUP, VERSION = "hypershift.openshift.io", "v1beta1"
HOSTED_CLUSTERS, NODE_POOLS = "hostedclusters", "nodepools"
FIELD_MANAGER = "hypershift-standin"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
WATCH_SECONDS = 300
RETRY_SECONDS = 0.5
NOT_FOUND, CONFLICT, GONE = 404, 409, 410


def key_of(item: Object) -> Key:
    return Key(item["metadata"]["namespace"], item["metadata"]["name"])


def is_deleting(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


class Hub:
    """A connection to the hub. `mirror` keeps a copy of each kind, which `items` holds by key."""

    def __init__(self, api: client.ApiClient) -> None:
        self._custom = client.CustomObjectsApi(api)
        self._core = client.CoreV1Api(api)
        self.items: dict[str, dict[Key, Object]] = {HOSTED_CLUSTERS: {}, NODE_POOLS: {}}
        self.listed = {plural: asyncio.Event() for plural in self.items}

    async def mirror(self, plural: str, changed: Callable[[Object], None]) -> None:
        """Follow a kind for ever: list, then watch from there, and list again whenever the watch is lost."""
        while True:
            try:
                version = await self._list(plural, changed)
                await self._watch(plural, version, changed)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever ends a watch, the next one must start
                if getattr(error, "status", None) != GONE:
                    log.warning("watch of %s: %s; retry in %.1f s", plural, sentence(error), RETRY_SECONDS)
                    await asyncio.sleep(RETRY_SECONDS)

    async def _list(self, plural: str, changed: Callable[[Object], None]) -> str:
        answer: Any = await self._custom.list_cluster_custom_object(GROUP, VERSION, plural)
        before = self.items[plural]
        self.items[plural] = {key_of(item): item for item in answer["items"]}
        for item in [*self.items[plural].values(), *(item for key, item in before.items() if key not in self.items[plural])]:
            changed(item)
        self.listed[plural].set()
        return str(answer["metadata"]["resourceVersion"])

    async def _watch(self, plural: str, version: str, changed: Callable[[Object], None]) -> None:
        arguments = {"resource_version": version, "timeout_seconds": WATCH_SECONDS, "allow_watch_bookmarks": True}
        async for event in watch.Watch().stream(self._custom.list_cluster_custom_object, GROUP, VERSION, plural, **arguments):
            item = event["raw_object"]
            if event["type"] == "DELETED":
                self.items[plural].pop(key_of(item), None)
            elif event["type"] in ("ADDED", "MODIFIED"):
                self.items[plural][key_of(item)] = item
            else:
                continue
            changed(item)

    async def write_status(self, plural: str, item: Object, status: Object) -> None:
        """Replace the status if it differs from what was last seen. A merge patch cannot write the nulls that are in it."""
        if status != item.get("status"):
            namespace, name = key_of(item)
            answer: Any = await self._custom.replace_namespaced_custom_object_status(
                GROUP, VERSION, namespace, plural, name, item | {"status": status}, field_manager=FIELD_MANAGER
            )
            self._remember(plural, answer)

    async def patch_metadata(self, plural: str, item: Object, changes: Object) -> None:
        """Change metadata lists, with a check that nobody else has changed the object since it was seen."""
        namespace, name = key_of(item)
        body = {"metadata": changes | {"resourceVersion": item["metadata"]["resourceVersion"]}}
        answer: Any = await self._custom.patch_namespaced_custom_object(
            GROUP, VERSION, namespace, plural, name, body, field_manager=FIELD_MANAGER, _content_type=MERGE
        )
        self._remember(plural, answer)

    def _remember(self, plural: str, item: Object) -> None:
        """Take over what a write has answered, so that the next look does not see the past."""
        key = key_of(item)
        known = self.items[plural].get(key)
        if (
            known
            and known["metadata"]["uid"] == item["metadata"]["uid"]
            and int(known["metadata"]["resourceVersion"]) < int(item["metadata"]["resourceVersion"])
        ):
            self.items[plural][key] = item

    async def delete(self, plural: str, item: Object) -> None:
        namespace, name = key_of(item)
        try:
            await self._custom.delete_namespaced_custom_object(GROUP, VERSION, namespace, plural, name)
        except client.ApiException as error:
            if error.status != NOT_FOUND:
                raise

    async def has_secret(self, namespace: str, name: str) -> bool:
        try:
            await self._core.read_namespaced_secret(name, namespace)
        except client.ApiException as error:
            if error.status == NOT_FOUND:
                return False
            raise
        return True

    async def apply_secret(self, owner: Object, name: str, data: dict[str, bytes]) -> None:
        """Create or change a secret that the garbage collector removes with its owner."""
        metadata = owner["metadata"]
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": metadata["namespace"], "ownerReferences": [reference]},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        await self._core.patch_namespaced_secret(
            name, metadata["namespace"], body, field_manager=FIELD_MANAGER, force=True, _content_type=APPLY
        )


def unreachable_kubeconfig(name: str) -> bytes:
    """A kubeconfig of the right shape for a cluster that has no processes: its address answers to nobody."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        "users": [{"name": "admin", "user": {}}],
    }
    return json.dumps(content).encode()
