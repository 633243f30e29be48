"""The event source as a whole, without a hub: what ends it is what is raised."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import Controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.leader_election import LeaderElector
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import BadSettings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import serve
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock

HUB = {"host": "https://127.0.0.1:1", "api_key": "unused"}


class NoEngine:
    async def put(self, event: Object) -> None:
        raise AssertionError(event)


@pytest.fixture(autouse=True)
def leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Lease, so that no request is sent."""

    async def nothing(_self: Any, _lock: Lock) -> None:
        return

    monkeypatch.setattr(LeaderElector, "_acquire", lambda _self: Lock("default", "it", "us", 1, 15, "", "1"))
    monkeypatch.setattr(LeaderElector, "_release", nothing)


def test_a_fault_of_ours_is_raised_as_it_is_however_deep_it_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_self: Any) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.to_thread(int, "no number"))

    monkeypatch.setattr(Controller, "run", broken)
    with pytest.raises(ValueError, match="no number"):
        asyncio.run(serve(NoEngine(), HUB | {"webhook": {"port": 0}}))


def test_an_address_in_use_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Controller, "run", lambda _self: asyncio.sleep(60))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(BadSettings, match="Address already in use"):
            asyncio.run(serve(NoEngine(), HUB | {"webhook": {"port": other.getsockname()[1]}}))
