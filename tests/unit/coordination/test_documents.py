"""Keys, names and identities of documents."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import DocumentStore, WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.lease import Lease
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.state import StateStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors

from ..s3.memory_bucket import MemoryBucket
from .conftest import Clock
from .simulation import LOCK, STATE, WORKLOAD


def test_workloads_with_the_same_key_are_told_apart(documents: DocumentStore, clock: Clock) -> None:
    one, two = WorkloadRef("a-b", "c"), WorkloadRef("a", "b-c")
    assert one.key("lock") == two.key("lock")
    assert Lease(documents.store, one, "east", "east-1", 30, clock).try_acquire()
    with pytest.raises(s3_errors.WrongIdentity, match="Rename one of the two"):
        Lease(documents.store, two, "west", "west-1", 30, clock).try_acquire()


@pytest.mark.parametrize("name", ["", "A", "a/b", "-a", "a-", "a_b", "ü", "../x"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(s3_errors.BadOptions, match="is not a valid name"):
        WorkloadRef("shop", name)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"identity": {"namespace": "orders", "name": "demo"}, "epoch": "1"}'])
def test_object_of_another_writer_stops_coordination(bucket: MemoryBucket, documents: DocumentStore, clock: Clock, body: bytes) -> None:
    bucket.objects[LOCK] = bucket.objects[STATE] = body
    with pytest.raises(s3_errors.Malformed, match="Find out what wrote it"):
        Lease(documents.store, WORKLOAD, "east", "east-1", 30, clock).try_acquire()
    with pytest.raises(s3_errors.Malformed):
        StateStore(documents, WORKLOAD).read()
    assert bucket.objects[LOCK] == body
