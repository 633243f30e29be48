"""The event source by itself on a real API server, without a rules engine: what it observes, what it asks for, and what that costs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import parse_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import Controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.informer import Informer
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import WatchEvent
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import acquire, release
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import model
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status_writer import StatusWriter

from ..support import samples
from ..support.orders import Orders
from ..support.sources import Source


def namespace_named(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def create_working_namespace(orders: Orders, name: str = "demo") -> None:
    orders.kube.create(namespace_named(orders.working(name), **ClusterOrder.from_object(orders.get(name)).labels))


@pytest.fixture
def source(orders: Orders) -> Iterator[Source]:
    with Source(orders).running() as source:
        yield source


def test_an_action_is_asked_for_once_however_often_the_order_changes(orders: Orders, source: Source) -> None:
    orders.apply()
    source.until_asked("provision")
    for number in range(5):
        orders.patch({"metadata": {"labels": {"number": str(number)}}})
        source.enqueue(orders.namespace, "demo")
    orders.apply("other")
    source.until_asked("provision", "other")
    assert source.actions("demo") == ["provision"]
    event = source.events[0]
    assert event["order"] == event["orders"][0] and event["order"]["uid"] == orders.get()["metadata"]["uid"]
    assert (event["reason"], event["meta"]["endpoint"]) == ("SpecNotApplied", "create-hosted-cluster")


def test_an_action_whose_run_never_comes_is_reported_on_the_order_and_asked_for_again_ever_later(
    orders: Orders, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "FIRST_RETRY", timedelta(hours=1))  # the test decides when it has passed
    with Source(orders, start_timeout=1).running() as source:
        orders.apply()
        until(lambda: "failure" in orders.status(), "the order says that no run has begun")
        failure, first = orders.status()["failure"], source.events[0]["meta"]["uuid"]
        assert (failure["reason"], failure["attempts"]) == ("RunNotStarted", 1)
        assert f"eda-event-uuid-{first}" in failure["message"]
        orders.patch({"status": {"failure": {"nextAttempt": "2020-01-01T00:00:00Z"}}}, subresource="status")
        source.until_asked("provision", times=2)
        until(lambda: orders.status()["failure"]["attempts"] == 2, "and again")
        again = orders.status()["failure"]
        waits = [parse_time(each["nextAttempt"]) for each in (failure, again)]
        assert waits[0] and waits[1] and waits[0] < waits[1]
        assert source.transitions("demo") == [("failed", "RunNotStarted")]
    assert f"no run locked {orders.namespace}/demo for provision" in caplog.text


def test_a_job_that_is_pending_is_not_launched_again_and_keeps_its_slot(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "FIRST_RETRY", timedelta(seconds=0))
    with Source(orders, start_timeout=1, pending_timeout=600, max_in_flight=1).running() as source:
        orders.apply()
        until(lambda: "failure" in orders.status(), "the order says that no run has begun")
        orders.apply("other")
        until(lambda: orders.status("other").get("phase"), "the other one is observed")
        for _each in range(5):
            source.enqueue(orders.namespace, "demo")
            time.sleep(0.3)
        assert [event["order"]["name"] for event in source.events if event["action"] == "provision"] == ["demo"]
        release(orders.kube, acquire(orders.kube, orders.namespace, "demo", "the job"))  # it has begun, and ended
        source.until_asked("provision", "other")
        assert source.actions("demo") == ["provision"]


def test_nothing_is_asked_for_while_a_run_holds_the_lock_of_the_order(orders: Orders, source: Source) -> None:
    lock = acquire(orders.kube, orders.namespace, "demo", "another run")
    orders.apply()
    orders.apply("other")
    source.until_asked("provision", "other")
    assert source.actions("demo") == []
    release(orders.kube, lock)
    source.until_asked("provision")


def test_an_order_that_is_deleted_while_its_action_is_confirmed_blocks_no_other(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed = Controller._confirmed  # noqa: SLF001 - to delete the order at that moment

    def while_it_is_deleted(self: Controller, key: Key, *rest: Any) -> Any:
        answer = confirmed(self, key, *rest)
        if key == Key(orders.namespace, "demo"):
            orders.kube.delete(orders.get())
            until(lambda: self._cache.order(key) is None, "the source knows")
        return answer

    monkeypatch.setattr(Controller, "_confirmed", while_it_is_deleted)
    with Source(orders, max_in_flight=1).running() as source:
        orders.apply()
        until(orders.is_deleted, "it is deleted")
        orders.apply("other")
        source.until_asked("provision", "other")


@pytest.mark.parametrize("state", ["unmanaged", "manual"])
def test_an_order_that_is_no_longer_managed_when_its_run_comes_blocks_no_other(orders: Orders, state: str) -> None:
    with Source(orders, max_in_flight=1).running() as source:
        orders.apply()
        source.until_asked("provision")
        orders.patch({"metadata": {"annotations": {f"{orders.group}/management-state": state}}})
        orders.apply("other")
        source.until_asked("provision", "other")


def test_the_answer_to_a_write_is_observed_before_the_watch_brings_the_change(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order is no longer managed, and before the watch brings that its status is written: the answer has the change in it."""
    slowly = Informer._handle  # noqa: SLF001 - nothing else makes a watch late

    def late(informer: Informer, event: WatchEvent) -> None:
        asyncio.get_running_loop().call_later(1.0 if informer.kind == "ClusterOrder" else 0.0, slowly, informer, event)

    with Source(orders, max_in_flight=1).running() as source:
        orders.apply()
        source.until_asked("provision")
        monkeypatch.setattr(Informer, "_handle", late)
        orders.patch({"metadata": {"annotations": {f"{orders.group}/management-state": "manual"}}})
        create_working_namespace(orders)
        until(lambda: orders.condition("NamespaceCreated")["status"] == "True", "the status is written")
        orders.apply("other")
        source.until_asked("provision", "other")


@pytest.mark.parametrize("another_writer", [False, True])
def test_a_status_that_changes_during_a_reconcile_is_observed_again_unless_the_reconcile_wrote_it(
    orders: Orders, source: Source, monkeypatch: pytest.MonkeyPatch, another_writer: bool
) -> None:
    orders.apply()
    orders.patch({"metadata": {"annotations": {f"{orders.group}/management-state": "manual"}}})
    until_settled(source)
    reconciled: list[str] = []
    write = StatusWriter.sync

    def late(writer: StatusWriter, order: ClusterOrder, *arguments: Any) -> ClusterOrder:
        """The answer to the write comes after its event, and so does that of another writer."""
        written = write(writer, order, *arguments)
        if order.namespace == orders.namespace:
            reconciled.append(written.resource_version)
            if another_writer and len(reconciled) == 1:
                orders.kube.patch(written.raw, {"status": {"job": {"id": "another"}}}, subresource="status", checked=False)
            time.sleep(1.0)
        return written

    monkeypatch.setattr(StatusWriter, "sync", late)
    create_working_namespace(orders)
    until(lambda: orders.condition("NamespaceCreated")["status"] == "True", "the status is written")
    if another_writer:
        until(lambda: len(reconciled) > 1, "it is reconciled again")
    else:
        time.sleep(2.0)
        assert len(reconciled) == 1, "the event of its own write is no change"


def test_an_order_that_is_deleted_before_its_run_comes_is_deleted_at_once(orders: Orders) -> None:
    with Source(orders).running() as source:
        orders.apply()
        orders.patch({"metadata": {"finalizers": [f"{orders.group}/infrastructure"]}})
        source.until_asked("provision")
        orders.ask_to_delete()
        source.until_asked("delete")


def test_an_order_for_clusters_that_the_hub_does_not_know_harms_no_other(orders: Orders, source: Source) -> None:
    orders.apply()
    orders.patch({"status": {"provider": {"type": "capi"}}}, subresource="status")
    until(lambda: "cluster.x-k8s.io" in str(orders.status().get("conditions")), "the order says what is missing")
    orders.apply("other")
    source.until_asked("provision", "other")
    assert source.controller.problems() == []
    orders.patch({"metadata": {"finalizers": [f"{orders.group}/infrastructure"]}})
    orders.ask_to_delete()
    source.until_asked("delete")


def test_of_two_orders_with_the_same_working_namespace_neither_hides_the_other(orders: Orders, tmp_path: Path) -> None:
    """`a/b-c` and `a-b/c` beside an external controller: both are to work in the namespace `a-b-c`."""
    manual = {f"{orders.group}/management-state": "manual"}
    first = replace(orders, external=True)
    namespace = orders.kube.create(namespace_named(f"{orders.namespace}-b"))
    try:
        second = Orders(orders.hub, namespace["metadata"]["name"], tmp_path, external=True)
        with Source(first, controller="external").running():
            for each, name in ((first, "b-c"), (second, "c")):
                each.apply(name, annotations=manual)
                until(lambda each=each, name=name: each.status(name), "it is observed")  # type: ignore[misc]
            second.ask_to_delete("c")
            orders.kube.create(namespace_named(first.working("b-c"), **{f"{orders.group}/clusterorder": "b-c"}))
            kind = "openfleet.clusters/NamespaceCreated"
            until(lambda: first.condition(kind, "b-c")["status"] == "True", "the first is still followed")
    finally:
        orders.kube.delete(namespace)


def test_orders_that_come_while_the_engine_is_busy_are_in_few_events(orders: Orders, source: Source) -> None:
    source.is_busy.set()
    names = [f"order-{number}" for number in range(12)]
    for name in names:
        orders.apply(name)
    until(lambda: all(orders.status(name).get("phase") for name in names), "all are observed")
    source.is_busy.clear()
    for name in names:
        source.until_asked("provision", name)
    assert len(source.events) <= 3


def test_a_pending_action_is_asked_for_again_after_a_restart(orders: Orders) -> None:
    orders.apply()
    for _each in range(2):
        with Source(orders).running() as source:
            source.until_asked("provision")


def test_a_burst_of_changes_of_a_cluster_costs_one_write_and_none_where_nothing_shows(
    quick_sandbox: Sandbox, orders: Orders, source: Source
) -> None:
    orders.apply(nodes={"fc430": 2})
    orders.provision()
    until(lambda: orders.status().get("phase") == "Ready", "it is Ready")
    standin = next(process.pid for process in quick_sandbox.status() if process.owner == "hypershift-standin")
    os.kill(standin, signal.SIGSTOP)
    try:
        cluster = orders.hosted_cluster()
        until_settled(source)
        before = source.writes()
        with source.blocked(changes=20):
            for number in range(20):
                conditions = [entry for entry in cluster["status"]["conditions"] if entry["type"] != "Degraded"]
                change = {"type": "Degraded", "status": "True", "reason": f"Reason{number}", "message": f"{number}"}
                conditions.append(change | {"lastTransitionTime": "2026-01-01T00:00:00Z"})
                cluster = orders.kube.replace(cluster | {"status": cluster["status"] | {"conditions": conditions}}, subresource="status")
        until(lambda: "Reason19" in str(orders.status()), "the last change shows")
        assert orders.status()["phase"] == "Degraded"
        until(lambda: source.writes() > before, "the write is counted")
        assert source.writes() - before <= 3  # one, unless other objects changed as well
        until_settled(source)
        before = source.writes()
        orders.kube.patch(cluster, {"metadata": {"labels": {"no": "matter"}}})
        orders.apply("other")
        source.until_asked("provision", "other")
        until(lambda: source.writes() > before, "the other is observed")
        assert source.writes() - before == 1  # that of the other
    finally:
        os.kill(standin, signal.SIGCONT)


def until_settled(source: Source) -> None:
    """Wait until whatever was changed before has had its effects: the source knows it, has no work, and writes nothing for a while."""
    orders, cache = source.orders, source.controller._cache  # noqa: SLF001 - nothing else shows how late a watch is

    def is_known(item: Object) -> bool:
        known = cache.order(Key(orders.namespace, item["metadata"]["name"]))
        return bool(known) and known["metadata"]["resourceVersion"] == item["metadata"]["resourceVersion"]

    def is_settled() -> bool:
        before = source.writes()
        time.sleep(0.5)
        items = orders.kube.list_all(orders.api_version, "ClusterOrder", orders.namespace)
        return all(map(is_known, items)) and not source.state().queue and source.writes() == before

    until(is_settled, "the source is settled")


def test_a_webhook_for_an_order_that_does_not_exist_asks_for_nothing(orders: Orders, source: Source) -> None:
    source.enqueue(orders.namespace, "absent")
    source.enqueue("no-such-namespace", "absent")
    orders.apply()
    source.until_asked("provision")
    assert source.actions("absent") == []


def test_a_cluster_without_an_order_changes_no_order(orders: Orders, source: Source) -> None:
    """A HostedCluster in a namespace that belongs to no order changes nothing."""
    with fresh_namespace(orders.hub) as elsewhere:
        orders.hub.apply(samples.pull_secret(elsewhere), samples.hosted_cluster(elsewhere))
        orders.apply()
        source.until_asked("provision")
        assert orders.status()["phase"] == "Progressing"
