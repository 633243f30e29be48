"""Flux in clusters is observed when it is time to, a cluster that does not answer less and less often, and another order never."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any
from unittest.mock import Mock

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import gitops_watch
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.gitops_watch import GitOpsWatch
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.conditions import unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.gitops import used_by
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ConditionState

from ..orders.order_samples import condition, order_object

TIMEOUT_SECONDS = 30
FINE = {"GitOpsInstalled": ConditionState("True", "ControllersAvailable")}


class Site:
    """Clusters that answer what `says` has for the name of their order, or hang until the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.asked: list[str] = []
        self.says: dict[str, Any] = {}
        self.enqueued: list[Key] = []
        self.over = threading.Event()
        monkeypatch.setattr(gitops_watch, "observe_gitops", self._observe)
        monkeypatch.setattr(gitops_watch, "time", Mock(monotonic=lambda: self.now))
        self.watch = GitOpsWatch(Mock(), self.enqueued.append, 60.0)

    def _observe(self, _kube: Any, order: ClusterOrder) -> Any:
        self.asked.append(order.name)
        answer = self.says.get(order.name, FINE)
        if answer == "hang":
            self.over.wait()
            return FINE
        return answer

    async def answers(self, of: ClusterOrder) -> None:
        """Follow the order until its cluster was asked."""
        before = len(self.enqueued)
        assert self.watch.follow(key(of), of) is None
        await until(lambda: len(self.enqueued) > before)


def order(name: str = "demo", status: str = "True", **metadata: Any) -> ClusterOrder:
    conditions = [condition("GitOpsInstalled", status)] if status else []
    stored = {"provider": {"type": "hypershift"}, "conditions": conditions}
    return ClusterOrder.from_object(order_object(stored, **{"name": name, "uid": f"uid-{name}"} | metadata))


def key(of: ClusterOrder) -> Key:
    return Key(of.namespace, of.name)


async def until(ready: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not ready():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def started(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    site = Site(monkeypatch)
    async with asyncio.TaskGroup() as tasks:
        site.watch.start(tasks)
        try:
            yield site
        finally:
            site.over.set()


def test_an_order_without_gitops_is_not_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with started(monkeypatch) as site:
            assert used_by(order(status="")) == ()
            assert site.watch.follow(key(order()), order(status="")) is None
            deleted = order(deletionTimestamp="2026-01-01T00:00:00Z")
            assert site.watch.follow(key(deleted), deleted) is None
            await asyncio.sleep(0.02)
            assert site.asked == []

    asyncio.run(run())


@pytest.mark.parametrize(("status", "pause"), [("True", 60.0), ("False", 10.0), ("Unknown", 10.0)])
def test_it_is_observed_more_often_while_something_is_not_true(monkeypatch: pytest.MonkeyPatch, status: str, pause: float) -> None:
    async def run() -> None:
        async with started(monkeypatch) as site:
            of = order(status=status)
            await site.answers(of)
            assert site.watch.answer(key(of), of) == FINE
            assert site.watch.follow(key(of), of) == pause
            site.now += pause
            await site.answers(of)
            assert site.asked == ["demo", "demo"]

    asyncio.run(run())


def test_what_was_observed_counts_once_and_for_its_order_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with started(monkeypatch) as site:
            of = order()
            await site.answers(of)
            assert site.watch.answer(key(of), order(uid="another")) is None
            site.watch.has_used(key(of))
            assert site.watch.answer(key(of), of) is None

    asyncio.run(run())


def test_a_cluster_that_does_not_answer_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with started(monkeypatch) as site:
            of = order(status="Unknown")
            site.says["demo"] = unreachable(["GitOpsInstalled"], "no answer")
            pauses = []
            for _each in range(9):
                await site.answers(of)
                pauses.append(site.watch.follow(key(of), of) or 0)
                site.now += pauses[-1]
            assert pauses == [20, 40, 80, 160, 320, 600, 600, 600, 600]
            site.says.clear()
            await site.answers(of)
            assert site.watch.follow(key(of), of) == 10

    asyncio.run(run())


def test_a_notification_observes_its_order_soon_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with started(monkeypatch) as site:
            mine, other = order("mine"), order("other")
            for each in (mine, other):
                await site.answers(each)
            site.enqueued.clear()
            site.watch.notify("unknown-uid")
            assert site.enqueued == []
            for _each in range(1000):
                site.watch.notify("uid-mine")
            assert set(site.enqueued) == {key(mine)}
            assert site.watch.follow(key(mine), mine) == 5, "however often it asks"
            assert site.watch.follow(key(other), other) == 60
            site.now += 5
            await site.answers(mine)
            assert site.watch.follow(key(mine), mine) == 60

    asyncio.run(run())


def test_clusters_that_hang_delay_neither_the_caller_nor_other_tenants(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with started(monkeypatch) as site:
            dead = [order(f"dead-{number}", namespace="evil") for number in range(50)]
            site.says |= {each.name: "hang" for each in dead}
            for each in dead:
                assert site.watch.follow(key(each), each) is None
            await site.answers(order("good"))
            await until(lambda: sum(name.startswith("dead") for name in site.asked) >= 2)
            assert sum(name.startswith("dead") for name in site.asked) == 2

    asyncio.run(run())


def test_an_order_that_is_deleted_while_it_is_observed_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with started(monkeypatch) as site:
            of = order()
            site.says["demo"] = "hang"
            site.watch.follow(key(of), of)
            await until(lambda: site.asked == ["demo"])
            site.watch.forget(key(of))
            site.over.set()
            await asyncio.sleep(0.05)
            assert site.enqueued == [] and site.watch.answer(key(of), of) is None

    asyncio.run(run())
