"""Providers that have to be asked: a namespace whose clusters hang occupies its own slots, and no worker."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import poller as poller_module
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import WORKERS, Controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.poller import POLLERS, POLLERS_A_NAMESPACE, Poller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster

from ..orders.hub_in_memory import HubInMemory
from ..orders.order_samples import Object, order_object
from ..orders.test_observe import PolledProvider

TIMEOUT_SECONDS = 30


class InTurn(Poller):
    """Records the turn of each order. Its thread may begin much later."""

    def __init__(self, answered: Callable[[Key], None]) -> None:
        super().__init__(answered)
        self.turns: list[Key] = []

    async def _ask(self, key: Key, ask: Callable[[], None]) -> None:
        self.turns.append(key)
        await super()._ask(key, ask)


class Site:
    """A poller whose providers hang in some namespaces until the end."""

    def __init__(self) -> None:
        self.asked: list[Key] = []
        self.answered: list[Key] = []
        self.over = threading.Event()
        self.poller = InTurn(self.answered.append)

    def ask(self, key: Key) -> Callable[[], None]:
        def work() -> None:
            self.asked.append(key)
            if key.namespace.startswith("evil"):
                self.over.wait()
            elif key.name == "broken":
                raise RecursionError

        return work

    def request(self, *keys: Key) -> None:
        for key in keys:
            self.poller.request(key, self.ask(key))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def started() -> Any:
    site = Site()
    async with asyncio.TaskGroup() as tasks:
        site.poller.start(tasks)
        try:
            yield site
        finally:
            site.over.set()


def test_namespace_that_hangs_occupies_its_own_slots_only() -> None:
    async def run() -> None:
        async with started() as site:
            site.request(*(Key("evil", str(number)) for number in range(1000)))
            good = [Key("good", str(number)) for number in range(10)]
            site.request(*good)
            await until(lambda: set(good) <= set(site.answered))
            await until(lambda: sum(key.namespace == "evil" for key in site.asked) >= POLLERS_A_NAMESPACE)
            assert sum(key.namespace == "evil" for key in site.asked) == POLLERS_A_NAMESPACE

    asyncio.run(run())


def test_with_all_slots_occupied_the_namespaces_take_turns() -> None:
    async def run() -> None:
        async with started() as site:
            hostile = POLLERS // POLLERS_A_NAMESPACE
            site.request(*(Key(f"evil-{number % hostile}", str(number)) for number in range(20 * hostile)))
            await until(lambda: len(site.asked) == POLLERS)
            site.request(Key("good", "a"))
            site.over.set()
            await until(lambda: Key("good", "a") in site.answered)
            before = site.poller.turns[: site.poller.turns.index(Key("good", "a"))]
            assert max(sum(key.namespace == f"evil-{number}" for key in before) for number in range(hostile)) <= 2 * POLLERS_A_NAMESPACE + 1

    asyncio.run(run())


def test_answer_is_used_once_however_old_and_for_a_while_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        key, broken = Key("good", "a"), Key("good", "broken")
        async with started() as site:
            assert not site.poller.use(key)
            site.request(key, key, broken)
            await until(lambda: {key, broken} <= set(site.answered))
            assert site.asked.count(key) == 1
            assert site.poller.use(broken), "an error of any kind is an answer, too"
            assert site.poller.use(key) and site.poller.use(key)
            monkeypatch.setattr(poller_module, "FRESH_SECONDS", -1.0)
            assert not site.poller.use(key)
            site.request(key)
            await until(lambda: site.answered.count(key) == 2)
            assert site.poller.use(key)
            site.poller.forget(key)
            assert not site.poller.use(key)

    asyncio.run(run())


def named(namespace: str, name: str, provider: str = "") -> Object:
    item = order_object({"provider": {"type": provider}} if provider else None)
    item["metadata"] |= {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}", "resourceVersion": "7"}
    return item


def test_engine_works_for_others_while_more_clusters_hang_than_it_has_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    over, asked = threading.Event(), set[str]()

    class Hanging(PolledProvider):
        def status(self, observed: ObservedCluster) -> ObservedCluster:
            asked.add(self.ref.name)
            over.wait()
            return observed

    get = ProviderFactory.get
    monkeypatch.setattr(ProviderFactory, "get", classmethod(lambda _cls, kind: Hanging if kind == "acme.site.slow" else get(kind)))
    hanging = [named("evil", f"a{number}", "acme.site.slow") for number in range(3 * WORKERS)]
    names = Settings().names
    namespaces = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": names.working_namespace("evil", item["metadata"]["name"]),
                "uid": "n",
                "resourceVersion": "3",
                "labels": ClusterOrder.from_object(item, names).labels,
            },
        }
        for item in hanging
    ]
    hub = HubInMemory(*hanging, *namespaces, named("good", "demo"))
    events: list[Object] = []

    async def emit(event: Object) -> None:
        events.append(event)

    async def run() -> None:
        connection = cast(Kube, hub)
        controller = Controller(Settings(batch_size=1), connection, connection, emit, Metrics(State))
        work = asyncio.create_task(controller.run())
        try:
            await until(lambda: len(asked) >= POLLERS_A_NAMESPACE)
            await until(lambda: any(event.get("order", {}).get("namespace") == "good" for event in events))
            assert len(asked) == POLLERS_A_NAMESPACE
        finally:
            over.set()
            hub.close()
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work

    asyncio.run(run())
