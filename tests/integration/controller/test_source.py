"""The event source by itself on a real API server, without a rules engine: what it mirrors, what it asks for, and what that costs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import Controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.informer import Informer
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube, WatchEvent
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import acquire, release
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import OrderName

from ..support import samples
from ..support.orders import Orders

Object = dict[str, Any]


class Source:
    """A controller at work in a thread of its own; what it asks for is in `events`, and nobody does it."""

    def __init__(self, orders: Orders, **settings: Any) -> None:
        self.events: list[Object] = []
        self._namespace = orders.namespace
        self.is_busy = threading.Event()
        self._options = {"kubeconfig": str(orders.hub.kubeconfig)}
        self._settings = Settings.from_arguments(self._options | {"start_timeout": 600, "max_in_flight": 100} | settings)
        self._loop = asyncio.new_event_loop()

    async def _put(self, event: Object) -> None:
        while self.is_busy.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.01)
        if event["order"]["namespace"] == self._namespace:  # and not of what an earlier test has left
            self.events.append(event)

    async def _serve(self) -> None:
        metrics = self.metrics = Metrics(State)
        self.controller = Controller(self._settings, Kube.connect(self._options), Kube.connect(self._options), self._put, metrics)
        await self.controller.run()

    @contextlib.contextmanager
    def running(self) -> Iterator[Source]:
        task = self._loop.create_task(self._serve())

        def work() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(task)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            until(lambda: hasattr(self, "controller") and not self.controller.problems(), "the hub is followed")
            yield self
        finally:
            self._loop.call_soon_threadsafe(task.cancel)
            thread.join()

    @contextlib.contextmanager
    def held_up(self) -> Iterator[None]:
        """Keep its event loop from everything for as long as this lasts."""
        over = threading.Event()
        self._loop.call_soon_threadsafe(over.wait, 60)
        try:
            yield
        finally:
            over.set()

    def note(self, namespace: str, name: str) -> None:
        self._loop.call_soon_threadsafe(self.controller.enqueue, OrderName(namespace, name))

    def writes(self) -> int:
        return int(self.metrics.registry.get_sample_value("openfleet_orders_status_writes_total") or 0)

    def actions(self, name: str) -> list[str]:
        return [event["action"] for event in self.events if name in [order["name"] for order in event["orders"]]]


@pytest.fixture(scope="module")
def sandbox(new_sandbox: Callable[..., Sandbox]) -> Iterator[Sandbox]:
    sandbox = new_sandbox(status_only=True)
    yield sandbox
    sandbox.down()


@pytest.fixture
def orders(sandbox: Sandbox, tmp_path: Any) -> Iterator[Orders]:
    hub = Access(sandbox.kubeconfig())
    with fresh_namespace(hub) as namespace:
        place = Orders(hub, namespace, tmp_path)
        yield place
        place.clean_up()


@pytest.fixture
def source(orders: Orders) -> Iterator[Source]:
    with Source(orders).running() as source:
        yield source


def asked(source: Source, action: str, name: str = "demo", times: int = 1) -> None:
    until(lambda: source.actions(name).count(action) >= times, f"{action} of {name} is asked for", 30)


def test_an_action_is_asked_for_once_however_often_the_order_changes(orders: Orders, source: Source) -> None:
    orders.place()
    asked(source, "provision")
    for number in range(5):
        orders.patch({"metadata": {"labels": {"number": str(number)}}})
        source.note(orders.namespace, "demo")
    orders.place("other")
    asked(source, "provision", "other")
    assert source.actions("demo") == ["provision"]
    event = source.events[0]
    assert event["order"] == event["orders"][0] and event["order"]["uid"] == orders.get()["metadata"]["uid"]
    assert (event["reason"], event["meta"]["endpoint"]) == ("SpecNotApplied", "create-hosted-cluster")


def test_an_action_whose_run_never_comes_is_asked_for_again_and_that_is_said(orders: Orders, caplog: pytest.LogCaptureFixture) -> None:
    with Source(orders, start_timeout=5).running() as source:
        orders.place()
        asked(source, "provision", times=2)
    assert f"no run locked {orders.namespace}/demo for provision" in caplog.text


def test_nothing_is_asked_for_while_somebody_works_on_the_order(orders: Orders, source: Source) -> None:
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    lock = acquire(kube, orders.namespace, "demo", "somebody")
    orders.place()
    orders.place("other")
    asked(source, "provision", "other")
    assert source.actions("demo") == []
    release(kube, lock)
    asked(source, "provision")


@pytest.mark.parametrize("state", ["unmanaged", "manual"])
def test_an_order_that_is_taken_back_before_its_run_comes_keeps_no_place(orders: Orders, state: str) -> None:
    with Source(orders, max_in_flight=1).running() as source:
        orders.place()
        asked(source, "provision")
        orders.patch({"metadata": {"annotations": {f"{orders.group}/management-state": state}}})
        orders.place("other")
        asked(source, "provision", "other")


def test_what_a_write_brings_along_is_seen_though_no_event_tells_of_it(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order is taken back, and before the watch tells of it the status is written: that write meets the change, and is newer than it."""
    slowly = Informer._handle  # noqa: SLF001 - nothing else can be late by as much as is wanted

    def see(mirror: Informer, event: WatchEvent) -> None:
        asyncio.get_running_loop().call_later(1.0 if mirror.kind == "ClusterOrder" else 0.0, slowly, mirror, event)

    with Source(orders, max_in_flight=1).running() as source:
        orders.place()
        asked(source, "provision")
        monkeypatch.setattr(Informer, "_handle", see)
        orders.patch({"metadata": {"annotations": {f"{orders.group}/management-state": "manual"}}})
        labels = {f"{orders.group}/clusterorder": "demo", f"{orders.group}/clusterorder-namespace": orders.namespace}
        orders.hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": orders.working(), "labels": labels}})
        until(lambda: orders.condition("NamespaceCreated")["status"] == "True", "the status is written", 30)
        orders.place("other")
        asked(source, "provision", "other")


def test_an_order_that_is_deleted_before_its_run_comes_is_deleted_at_once(orders: Orders) -> None:
    with Source(orders).running() as source:
        orders.place()
        orders.patch({"metadata": {"finalizers": [f"{orders.group}/infrastructure"]}})
        asked(source, "provision")
        orders.hub.kubectl("delete", orders.kind, "demo", "-n", orders.namespace, "--wait=false")
        asked(source, "delete")


def test_an_order_for_clusters_that_the_hub_does_not_know_troubles_no_other(orders: Orders, source: Source) -> None:
    orders.place()
    provider = ("--subresource=status", "--type=merge", "-p", '{"status": {"provider": {"type": "capi"}}}')
    orders.hub.kubectl("patch", orders.kind, "demo", "-n", orders.namespace, *provider)
    until(lambda: "cluster.x-k8s.io" in str(orders.status().get("conditions")), "the order says what is missing", 30)
    orders.place("other")
    asked(source, "provision", "other")
    assert source.controller.problems() == []
    orders.patch({"metadata": {"finalizers": [f"{orders.group}/infrastructure"]}})
    orders.hub.kubectl("delete", orders.kind, "demo", "-n", orders.namespace, "--wait=false")
    asked(source, "delete")


@pytest.mark.usefixtures("source")
def test_of_two_orders_that_mean_one_namespace_neither_hides_the_other(orders: Orders, tmp_path: Path) -> None:
    """`a/b-c` and `a-b/c`: both work in the namespace `a-b-c`."""
    place = f"{orders.namespace}-b"
    orders.hub.kubectl("create", "namespace", place)
    try:
        other = Orders(orders.hub, place, tmp_path)
        orders.place("b-c", annotations={f"{orders.group}/management-state": "manual"})
        until(lambda: orders.status("b-c"), "the first is looked at")
        other.place("c", annotations={f"{orders.group}/management-state": "manual"})
        until(lambda: other.status("c"), "the second is looked at")
        other.hub.kubectl("delete", other.kind, "c", "-n", place)
        labels = {f"{orders.group}/clusterorder": "b-c", f"{orders.group}/clusterorder-namespace": orders.namespace}
        orders.hub.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": orders.working("b-c"), "labels": labels}})
        until(lambda: orders.condition("NamespaceCreated", "b-c")["status"] == "True", "the first is still followed", 30)
    finally:
        orders.hub.kubectl("delete", "namespace", place, "--wait=false")


def test_orders_that_come_while_the_engine_is_busy_go_into_few_events(orders: Orders, source: Source) -> None:
    source.is_busy.set()
    names = [f"order-{number}" for number in range(12)]
    for name in names:
        orders.place(name)
    until(lambda: all(orders.status(name).get("phase") for name in names), "all are looked at")
    source.is_busy.clear()
    for name in names:
        asked(source, "provision", name)
    assert len(source.events) <= 3


def test_what_was_to_be_done_is_asked_for_again_after_a_restart(orders: Orders) -> None:
    orders.place()
    for _each in range(2):
        with Source(orders).running() as source:
            asked(source, "provision")


def test_a_burst_of_changes_of_a_cluster_costs_one_write_and_none_where_nothing_shows(
    sandbox: Sandbox, orders: Orders, source: Source
) -> None:
    orders.place(nodes={"fc430": 2})
    orders.create()
    until(lambda: orders.status().get("phase") == "Ready", "it is Ready")
    standin = next(process.pid for process in sandbox.status() if process.owner == "hypershift-standin")
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    os.kill(standin, signal.SIGSTOP)
    try:
        cluster = kube.get("hypershift.openshift.io/v1beta1", "HostedCluster", "demo", orders.working())
        time.sleep(0.5)  # whatever its creation has caused is over
        before = source.writes()
        with source.held_up():
            for number in range(20):
                conditions = [entry for entry in cluster["status"]["conditions"] if entry["type"] != "Degraded"]
                conditions.append(
                    {"type": "Degraded", "status": "True", "reason": f"Reason{number}", "message": f"{number}", "lastTransitionTime": NOW}
                )
                cluster = kube.replace(cluster | {"status": cluster["status"] | {"conditions": conditions}}, subresource="status")
            time.sleep(1)  # the watch has brought them
        until(lambda: "Reason19" in str(orders.status()), "the last change shows", 30)
        assert orders.status()["phase"] == "Degraded"
        until(lambda: source.writes() > before, "the write is counted")
        assert source.writes() - before <= 3  # one, unless the watch was late with some of them
        before = source.writes()
        kube.patch(cluster, {"metadata": {"labels": {"nobody": "cares"}}})
        orders.place("other")
        asked(source, "provision", "other")
        until(lambda: source.writes() > before, "the other is looked at")
        assert source.writes() - before == 1  # that of the other
    finally:
        os.kill(standin, signal.SIGCONT)


NOW = "2026-01-01T00:00:00Z"


def test_a_webhook_for_an_order_that_is_not_there_is_no_more_than_a_look(orders: Orders, source: Source) -> None:
    source.note(orders.namespace, "absent")
    source.note("no-such-namespace", "absent")
    orders.place()
    asked(source, "provision")
    assert source.actions("absent") == []


def test_orders_of_others_clusters_are_not_confused(orders: Orders, source: Source) -> None:
    """A HostedCluster in a namespace that belongs to no order changes nothing."""
    with fresh_namespace(orders.hub) as elsewhere:
        orders.hub.apply(samples.pull_secret(elsewhere), samples.hosted_cluster(elsewhere))
        orders.place()
        asked(source, "provision")
        assert orders.status()["phase"] == "Progressing"


def test_a_run_that_comes_late_leaves_another_order_of_that_name_alone(orders: Orders) -> None:
    """An event to delete an order that is gone must not delete the next one."""
    orders.place()
    before = orders.get()
    event = {"action": "delete", "orders": [{"namespace": orders.namespace, "name": "demo", "uid": "of-the-one-before"}]}
    run = orders.play("delete_cluster", None, ansible_eda={"event": event}).successful()
    assert "There is no ClusterOrder" in run.output and orders.get() == before


def test_a_limit_that_would_skip_the_templates_is_refused(orders: Orders) -> None:
    orders.place()
    before = orders.get()
    run = orders.play("create_cluster", "demo", "--limit", "localhost")
    assert run.code != 0 and "leaves out the hosts that orders become" in run.output and orders.get() == before
    orders.play("create_cluster", "demo", "--limit", "localhost,cluster_orders").successful()
    assert orders.status()["configVersion"]
