"""The check of a store, on stores in memory that honour or ignore conditions."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors as s3_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store_check import (
    PERMANENT_KEY,
    full_check,
    quick_check,
    require_passed,
)

from .memory_bucket import MemoryBucket


def test_each_ignored_condition_is_found() -> None:
    class NoCreate(MemoryBucket):
        def write(self, key: str, body: bytes, match: str | None) -> str:
            if match is None:
                self.objects.pop(key, None)
            return super().write(key, body, match)

    class NoMatch(MemoryBucket):
        def write(self, key: str, body: bytes, match: str | None) -> str:
            return super().write(key, body, self.etag(self.objects[key]) if match and key in self.objects else match)

    for kind, case in ((NoCreate, "create an existing object"), (NoMatch, "replace a changed object")):
        results = full_check(ObjectStore(kind()))
        assert case in {result.case for result in results if not result.passed}
        with pytest.raises(s3_errors.ConditionalWritesUnsupported, match=case):
            require_passed(results, "the store")
        assert [result.case for result in quick_check(ObjectStore(kind())) if not result.passed] == [case]
    conforming = ObjectStore(MemoryBucket())
    require_passed(full_check(conforming), "the store")
    assert conforming.keys("") == []
    for _task in range(2):
        require_passed(quick_check(conforming), "the store")
    assert conforming.keys("") == [PERMANENT_KEY]
