"""What an event source does before it leads: it waits for its bucket."""

from __future__ import annotations

import asyncio

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination import store_ready
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.s3 import errors
from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import ObjectStore

from ..s3.memory_bucket import MemoryBucket

SETTINGS = Settings([], "east", store={"bucket": "coordination", "endpoint_url": "https://s3.example.com"})


class Away(MemoryBucket):
    """Fails for the first requests, each in its way."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__()
        self.failures = list(failures)

    def write(self, key: str, body: bytes, match: str | None) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return super().write(key, body, match)


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []

    async def sleep(wait: float) -> None:
        seconds.append(wait)

    monkeypatch.setattr(store_ready.asyncio, "sleep", sleep)
    return seconds


def test_a_bucket_that_is_away_is_reported_and_asked_again_less_and_less_often(
    waited: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    away = [errors.Unreachable("It does not answer."), errors.NoSuchBucket("It does not exist."), errors.AccessDenied("It refuses.")]
    asyncio.run(store_ready.require_store(ObjectStore(Away(*away, *[errors.ServerError("It is busy.")] * 5)), SETTINGS))
    assert waited == [1, 2, 4, 8, 16, 30, 30, 30]
    first, second, third, *_others = caplog.messages
    assert first == ("Bucket coordination at https://s3.example.com: It does not answer. Nothing is led until then; retry in 1 s")
    assert "It does not exist." in second and "It refuses." in third


@pytest.mark.parametrize("error", [errors.BadOptions("no credentials"), errors.ConditionalWritesUnsupported("dropped")])
def test_what_no_time_heals_ends_the_event_source(waited: list[float], error: Exception) -> None:
    with pytest.raises(type(error)):
        asyncio.run(store_ready.require_store(ObjectStore(Away(error)), SETTINGS))
    assert waited == []
