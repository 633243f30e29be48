"""The S3 stores of a cluster, as Ramen's configuration on it names them, and what is kept in them for a group. It blocks.

The keys and their content are Ramen's, so that a reader of Ramen's stores understands them: JSON, compressed with gzip.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable

import yaml

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.s3.errors import S3Error
from ....plugins.module_utils.s3.store import ObjectStore, connect
from .setup import CONFIG_MAP, KEY, NAMESPACE
from .volumes import portable

CONNECTIONS = 4


class StoreError(Exception):
    """A profile is unknown, or its store does not answer or refuses."""


class Stores:
    """The stores that the profiles of a cluster name. A profile is read again for every use: a test may replace its address."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._connected: dict[tuple[str, ...], ObjectStore] = {}

    def upload(self, vrg: Object, items: Iterable[Object]) -> str:
        """Store the items for the group in each of its stores; returns what failed, and goes on with the others."""
        bodies = {key_of(vrg, item): _packed(item) for item in items}
        failures = []
        for profile in vrg["spec"]["s3Profiles"]:
            try:
                store = self._store(profile)
                for key, body in bodies.items():
                    _put(store, key, body)
                for key in set(store.keys(prefix_of(vrg))) - bodies.keys():
                    store.delete(key)  # of a claim that is no longer protected
            except (StoreError, S3Error) as error:
                failures.append(f"{profile}: {error}")
        return "; ".join(failures)

    def download(self, vrg: Object) -> list[Object]:
        """The PVs and PVCs of the group, from the first of its stores that has some. A StoreError if no store answers."""
        failures = []
        for profile in vrg["spec"]["s3Profiles"]:
            try:
                store = self._store(profile)
                found = [store.get(key) for key in store.keys(prefix_of(vrg)) if "/v1.PersistentVolume" in key]
            except (StoreError, S3Error) as error:
                failures.append(f"{profile}: {error}")
                continue
            if found:
                return [json.loads(gzip.decompress(item.body)) for item in found if item]
        if failures and len(failures) == len(vrg["spec"]["s3Profiles"]):
            raise StoreError("; ".join(failures))
        return []

    def remove(self, vrg: Object) -> None:
        """Delete everything of the group from all of its stores; a StoreError if one does not answer."""
        for profile in vrg["spec"]["s3Profiles"]:
            store = self._store(profile)
            try:
                for key in store.keys(prefix_of(vrg)):
                    store.delete(key)
            except S3Error as error:
                raise StoreError(f"{profile}: {error}") from error

    def _store(self, profile: str) -> ObjectStore:
        config = self._kube.find("v1", "ConfigMap", CONFIG_MAP, NAMESPACE)
        profiles = (yaml.safe_load((config or {}).get("data", {}).get(KEY, "")) or {}).get("s3StoreProfiles") or []
        entry = next((entry for entry in profiles if entry["s3ProfileName"] == profile), None)
        if entry is None:
            raise StoreError(f"the ConfigMap {NAMESPACE}/{CONFIG_MAP} has no such profile")
        reference = entry["s3SecretRef"]
        secret = self._kube.get("v1", "Secret", reference["name"], reference.get("namespace", NAMESPACE))["data"]
        keys = [base64.b64decode(secret[name]).decode() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
        names = ("bucket", "endpoint_url", "region", "access_key", "secret_key")
        values = (entry["s3Bucket"], entry["s3CompatibleEndpoint"], entry["s3Region"], *keys)
        if values not in self._connected:
            self._connected[values] = connect(dict(zip(names, values, strict=True)), CONNECTIONS)
        return self._connected[values]


def prefix_of(vrg: Object) -> str:
    return f"{vrg['metadata']['namespace']}/{vrg['metadata']['name']}/"


def key_of(vrg: Object, item: Object) -> str:
    kind, metadata = item["kind"], item["metadata"]
    if kind == "VolumeReplicationGroup":
        return f"{prefix_of(vrg)}v1alpha1.{kind}/a"
    name = f"{metadata['namespace']}/{metadata['name']}" if kind == "PersistentVolumeClaim" else metadata["name"]
    return f"{prefix_of(vrg)}v1.{kind}/{name}"


def _packed(item: Object) -> bytes:
    content = portable(item) if item["kind"].startswith("PersistentVolume") else item
    return gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0)


def _put(store: ObjectStore, key: str, body: bytes) -> None:
    known = store.get(key)
    if known is None:
        store.create(key, body)
    elif known.body != body:
        store.replace(key, body, known)
