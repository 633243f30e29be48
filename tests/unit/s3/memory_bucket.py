"""A bucket in memory with the rules of S3. It has no faults and no latency."""

from __future__ import annotations

import hashlib

from ansible_collections.openfleet.clusters.plugins.module_utils.s3.errors import NoSuchKey, PreconditionFailed
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import StoredObject


class MemoryBucket:
    """An ETag is the hash of the content, as on real stores."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    @staticmethod
    def etag(body: bytes) -> str:
        return hashlib.md5(body, usedforsecurity=False).hexdigest()

    def read(self, key: str, known: StoredObject | None = None) -> StoredObject | None:
        body = self.objects.get(key)
        if body is None:
            return None
        etag = self.etag(body)
        return known if known and known.etag == etag else StoredObject(body, etag)

    def write(self, key: str, body: bytes, match: str | None) -> str:
        there = self.objects.get(key)
        if match is None and there is not None:
            raise PreconditionFailed("412")
        if match is not None and there is None:
            raise NoSuchKey("404")
        if match is not None and there is not None and self.etag(there) != match:
            raise PreconditionFailed("412")
        self.objects[key] = body
        return self.etag(body)

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)
