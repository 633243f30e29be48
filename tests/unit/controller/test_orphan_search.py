"""The search for what deleted orders left behind goes on after an error, and counts what is confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from unittest.mock import Mock

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import orphan_search
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.orphan_search import OrphanSearch
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import ObjectList
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Unexpected
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.orphans import KINDS, Orphan
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.run import Run
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.sweep import Sweep
from ansible_collections.openfleet.clusters.tests.unit.orders.hub_in_memory import HubInMemory

NAMES = Names()


class Hub(HubInMemory):
    """It has a namespace of a deleted order. The first request fails."""

    def __init__(self) -> None:
        labels = {NAMES.order_label: "demo", NAMES.order_namespace_label: "team", NAMES.order_uid_label: "1"}
        super().__init__({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-demo", "labels": labels}})
        self.requests = 0

    def list_all(self, *arguments: Any, **options: Any) -> ObjectList:
        self.requests += 1
        if self.requests == 1:
            raise Unexpected(RuntimeError("no answer"))
        return super().list_all(*arguments, **options)


@pytest.mark.parametrize("confirmed", [1, 0])
def test_an_error_does_not_end_the_search_and_what_is_confirmed_is_counted(
    confirmed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    swept: list[list[str]] = []

    def sweep(_sweep: Sweep, found: Sequence[Orphan]) -> list[Orphan]:
        swept.append([orphan.item["metadata"]["name"] for orphan in found])
        return list(found)[:confirmed]

    monkeypatch.setattr(Sweep, "sweep", sweep)
    monkeypatch.setattr(orphan_search, "SWEEP_SECONDS", 0.01)

    async def scenario() -> None:
        cache = Mock()
        cache.orders.return_value, cache.leases.return_value = [], []
        with ThreadPoolExecutor(1) as pool:
            search = OrphanSearch(Run(cast(Any, Hub()), NAMES), cache, pool, 0)
            assert search.counts == dict.fromkeys(KINDS, 0), "each kind has a metric from the beginning"
            task = asyncio.create_task(search.run())
            async with asyncio.timeout(60):
                while len(swept) < 2:  # noqa: ASYNC110 - it has no event for this
                    await asyncio.sleep(0.01)
            task.cancel()
        assert search.counts == dict.fromkeys(KINDS, 0) | ({"Namespace": 1} if confirmed else {})

    asyncio.run(scenario())
    assert swept[0] == ["team-demo"]
    assert "the hub was not searched" in caplog.text
