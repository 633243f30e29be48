"""Records of clusters that were deleted at once: what one of them is like does not end the records of others."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import record_writer
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.record_writer import RecordWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import FleetCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Unreachable


def cluster(name: str, **more: Any) -> Object:
    metadata = {"name": name, "namespace": "team-a", "uid": name, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata | more, "spec": {"template": "small", "nodeSets": {}}}


def test_cluster_that_cannot_be_recorded_ends_no_other_record(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    both = threading.Event()
    answers: list[Exception] = [Unreachable("The home cluster is unreachable.")]

    def write(_home: Any, found: FleetCluster, *_more: Any) -> None:
        if answers:
            raise answers.pop()
        written.append(found.name)
        if len(written) == 2:
            both.set()

    monkeypatch.setattr(record_writer, "write_record", write)
    monkeypatch.setattr(record_writer, "server_time", lambda _home: None)
    monkeypatch.setattr(record_writer, "RETRY_SECONDS", 0.0)

    async def record() -> None:
        writer = RecordWriter(None)  # type: ignore[arg-type]
        for item in ({"metadata": {"name": "broken", "namespace": "team-b"}}, cluster("one"), cluster("two")):
            writer.deleted(item)
        writer.deleted(cluster("recorded", deletionTimestamp="2026-01-01T00:00:01Z"))
        running = asyncio.create_task(writer.run())
        finished = asyncio.create_task(asyncio.to_thread(both.wait, 60))
        await asyncio.wait({running, finished}, return_when=asyncio.FIRST_COMPLETED)
        both.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(record())
    assert sorted(written) == ["one", "two"]
