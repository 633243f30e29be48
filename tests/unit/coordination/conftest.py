"""A workload on a store in memory, with a clock that the test sets."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore

from ..s3.memory_bucket import MemoryBucket
from .simulation import WORKLOAD


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def documents(bucket: MemoryBucket) -> DocumentStore:
    return DocumentStore(ObjectStore(bucket), WORKLOAD.identity())


@pytest.fixture
def states(documents: DocumentStore) -> StateStore:
    return StateStore(documents, WORKLOAD, "east-1")
