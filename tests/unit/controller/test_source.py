"""The event source as a whole, without a hub: what ends it is what is raised, and webhooks wait for nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import Any, cast

import pytest
import urllib3
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import WORKERS, Controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.leader_election import LeaderElector
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import BadSettings, Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import Source, serve
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import Lock
from ansible_collections.openfleet.clusters.tests.unit.orders.hub_in_memory import HubInMemory
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import order

BLOCKED_SECONDS = 120.0  # longer than a webhook may take, and an end: a webhook that waits for the hub blocks the loop of this test too
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
    monkeypatch.setattr(LeaderElector, "_renew", nothing)
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


class BlockedHub(HubInMemory):
    """A hub that lists, and answers no other request before it is released. An order that is added after the lists is in no cache."""

    def __init__(self, *items: Object) -> None:
        super().__init__(*items)
        self.waiting = threading.Semaphore(0)  # grows by each blocked request
        self.released = threading.Event()

    def find(self, *arguments: Any, **options: Any) -> Object | None:
        self.waiting.release()
        self.released.wait(BLOCKED_SECONDS)
        return super().find(*arguments, **options)


class Events:
    """A rules engine that takes every event."""

    def __init__(self) -> None:
        self.orders: asyncio.Queue[str] = asyncio.Queue()

    async def put(self, event: Object) -> None:
        await self.orders.put(event["order"]["name"])


def test_webhooks_are_accepted_while_all_workers_wait_for_the_hub_and_reconciled_when_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = [order(name=f"busy-{number}", uid=f"b{number}").raw for number in range(2 * WORKERS)]
    hub, engine = BlockedHub(*busy), Events()
    monkeypatch.setattr(Kube, "connect", classmethod(lambda _cls, _options: cast(Kube, hub)))
    late = order(name="late", uid="l1").raw

    async def until_reconciled() -> None:
        source = Source(engine, Settings.from_arguments({"webhook": {"port": 0}, "batch_size": 1, "max_in_flight": 100}))
        running = asyncio.create_task(source.run())
        try:
            for _worker in range(WORKERS):
                await asyncio.to_thread(hub.waiting.acquire)
            hub.create(late)
            while not (port := source._webhooks.port):  # noqa: ASYNC110, SLF001 - the system chooses it, and only this test needs it
                await asyncio.sleep(0.01)
            with urllib3.PoolManager(retries=False, timeout=BLOCKED_SECONDS / 2) as pool:
                for _again in range(3):
                    url = f"http://127.0.0.1:{port}/create-hosted-cluster"
                    answer = await asyncio.to_thread(pool.request, "POST", url, body=json.dumps(late))
                    assert answer.status == 202
            assert engine.orders.empty()
            hub.released.set()
            while await engine.orders.get() != "late":
                pass
        finally:
            hub.released.set()
            hub.close()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(asyncio.wait_for(until_reconciled(), 5 * BLOCKED_SECONDS))
