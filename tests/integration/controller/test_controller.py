"""The loop closed: an event source on a real API server and the runs that it asks for, all in this process.

The same with a real rules engine and real playbooks is in `test_engine`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time

from ..support.orders import NEXT_RELEASE, RELEASE, Orders
from ..support.samples import FAULT
from ..support.sources import InProcessEngine


@pytest.fixture
def engine(orders: Orders) -> Iterator[InProcessEngine]:
    with InProcessEngine(orders).running() as engine:
        yield engine


def test_an_order_becomes_ready_in_steps_and_no_run_waits_between_them(
    quick_sandbox: Sandbox, orders: Orders, engine: InProcessEngine
) -> None:
    standin = next(process.pid for process in quick_sandbox.status() if process.owner == "hypershift-standin")
    os.kill(standin, signal.SIGSTOP)  # a control plane that takes its time
    try:
        orders.apply(nodes={"fc430": 2}, template=orders.template("finished", post_install="[]\n"))
        until(lambda: orders.status().get("configVersion") and not orders.lease().get("holderIdentity"), "the run has ended")
        assert orders.status()["phase"] == "Progressing"
        assert orders.condition("TemplateApplied")["reason"] == "PostInstallPending"
    finally:
        os.kill(standin, signal.SIGCONT)
    engine.until_phase("Ready")
    assert engine.actions("demo") == ["provision", "post_install"]
    assert orders.lease()["leaseTransitions"] == 2


def test_a_cluster_that_degrades_is_reported_once_and_so_is_its_recovery(orders: Orders, engine: InProcessEngine) -> None:
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")
    until(lambda: len(engine.transitions("demo")) == 1, "it is reported")
    orders.patch_cluster({"metadata": {"annotations": {FAULT: "degraded"}}})
    engine.until_phase("Degraded")
    until(lambda: len(engine.transitions("demo")) == 2, "it is reported")
    orders.patch_cluster({"metadata": {"annotations": {FAULT: None}}})
    engine.until_phase("Ready")
    until(lambda: len(engine.transitions("demo")) == 3, "it is reported")
    orders.apply("other", nodes={"fc430": 1})
    until(lambda: engine.transitions("other"), "another is reported")
    transitions = engine.transitions("demo")
    assert [kind for kind, _reason in transitions] == ["ready", "degraded", "ready"] and transitions[1][1] == "ClusterDegraded"
    assert engine.actions("demo") == ["provision"]


def test_a_hosted_cluster_deleted_by_hand_is_created_again(orders: Orders, engine: InProcessEngine) -> None:
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")
    first = orders.hosted_cluster()
    orders.kube.delete(first)
    until(lambda: (orders.hosted_cluster() or first)["metadata"]["uid"] != first["metadata"]["uid"], "another is created")
    engine.until_phase("Ready")


def test_a_spec_that_failed_is_tried_at_once_when_it_changes(orders: Orders, engine: InProcessEngine) -> None:
    engine.failing.add("demo")
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Failed")
    failure = orders.status()["failure"]
    assert failure["reason"] == "TaskFailed" and "The site is broken" in failure["message"] and failure["retryable"]
    orders.patch({"status": {"failure": {"nextAttempt": "2099-01-01T00:00:00Z"}}}, subresource="status")
    engine.failing.clear()
    orders.apply(nodes={"fc430": 2})
    engine.until_phase("Ready")
    assert "failure" not in orders.status()
    assert engine.actions("demo").count("provision") == 2


def test_a_failure_is_retried_when_its_time_has_come_and_not_before(orders: Orders, engine: InProcessEngine) -> None:
    engine.failing.add("demo")
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Failed")
    assert orders.status()["failure"]["attempts"] == 1 and orders.status()["failure"]["nextAttempt"]
    engine.failing.clear()
    orders.patch({"status": {"failure": {"nextAttempt": "2099-01-01T00:00:00Z"}}}, subresource="status")
    orders.apply("other", nodes={"fc430": 1})
    engine.until_phase("Ready", "other")
    assert engine.actions("demo") == ["provision"]
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    orders.patch({"status": {"failure": {"nextAttempt": format_time(soon)}}}, subresource="status")
    engine.until_phase("Ready")
    assert engine.actions("demo") == ["provision", "provision"]
    assert orders.status()["job"]["startedAt"] >= format_time(soon)


def test_an_order_that_is_invalid_waits_for_its_tenant(orders: Orders, engine: InProcessEngine) -> None:
    orders.apply(nodes={"no-such-class": 1})
    engine.until_phase("Failed")
    assert orders.status()["failure"]["retryable"] is False and "no-such-class" in orders.condition("Accepted")["message"]
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")


def test_a_lost_run_is_noticed_by_its_lock_and_done_again(orders: Orders, engine: InProcessEngine) -> None:
    gate = engine.gate("demo")
    engine.lost.add("demo")
    orders.apply(nodes={"fc430": 1})
    gate.until_reached()
    gate.resume.set()
    until(lambda: not engine.lost, "the run is lost")
    assert orders.status()["phase"] == "Progressing"
    assert engine.actions("demo") == ["provision"]
    orders.expire_lock()
    engine.until_phase("Ready")
    assert engine.actions("demo") == ["provision", "provision"]
    assert orders.lease()["leaseTransitions"] == 2


def test_an_order_that_is_deleted_while_it_is_provisioned_is_deleted_after_that(orders: Orders, engine: InProcessEngine) -> None:
    gate = engine.gate("demo")
    orders.apply(nodes={"fc430": 1})
    gate.until_reached()
    orders.ask_to_delete()
    engine.until_phase("Deleting")
    assert engine.actions("demo") == ["provision"]
    gate.resume.set()
    until(orders.is_deleted, "it is deleted")
    assert set(engine.actions("demo")[1:]) == {"delete"}
    until(lambda: engine.transitions("demo") == [("deleted", "Deleted")], "its end is reported once")


def test_a_namespace_that_is_deleted_with_orders_in_it_loses_them(orders: Orders, engine: InProcessEngine) -> None:
    with fresh_namespace(orders.hub) as namespace:
        inside = Orders(orders.hub, namespace, orders.folder)
        inside.apply(nodes={"fc430": 1})
        until(lambda: inside.status().get("phase") == "Ready", "it is Ready")
        inside.kube.delete(inside.kube.get("v1", "Namespace", namespace))
        until(inside.is_deleted, "the order is deleted")
    assert engine.controller.problems() == []


def test_orders_that_are_not_managed_are_not_run(orders: Orders, engine: InProcessEngine) -> None:
    state = f"{orders.group}/management-state"
    orders.apply("manual", nodes={"fc430": 1}, annotations={state: "manual"})
    orders.apply("unmanaged", nodes={"fc430": 1}, annotations={state: "unmanaged"})
    engine.until_phase("Progressing", "manual")
    orders.apply("managed", nodes={"fc430": 1})
    engine.until_phase("Ready", "managed")
    assert orders.status("unmanaged") == {}
    assert engine.actions("manual") == engine.actions("unmanaged") == []
    orders.patch({"metadata": {"annotations": {state: None}}}, "manual")
    engine.until_phase("Ready", "manual")


def test_drift_is_repaired_at_the_resync_also_after_a_restart(orders: Orders) -> None:
    """Drift of the observed cluster, and drift of a Secret, which is not observed."""
    for name in ("demo", "manual"):
        orders.apply(name, nodes={"fc430": 1})
        orders.provision(name)
    orders.patch({"metadata": {"annotations": {f"{orders.group}/management-state": "manual"}}}, "manual")
    orders.patch_cluster({"spec": {"release": {"image": NEXT_RELEASE}}})
    pull_secret = ("v1", "Secret", "demo-pull-secret", orders.working())
    orders.kube.delete(orders.kube.get(*pull_secret))
    with InProcessEngine(orders, resync=4).running() as engine:
        until(lambda: orders.kube.find(*pull_secret), "the Secret exists again")
        until(lambda: orders.hosted_cluster()["spec"]["release"]["image"] == RELEASE, "the release is as ordered again")
        until(lambda: engine.actions("demo").count("provision") >= 2, "a settled order is reconciled again at the next resync")
        assert engine.actions("manual") == [], "what is managed by hand is skipped"
        engine.until_phase("Ready")


def test_an_order_that_is_deleted_is_removed_with_all_that_was_created_for_it(orders: Orders, engine: InProcessEngine) -> None:
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")
    orders.ask_to_delete()
    until(orders.is_deleted, "it is deleted")
    assert set(engine.actions("demo")) == {"provision", "delete"}
    until(lambda: engine.transitions("demo")[-1:] == [("deleted", "Deleted")], "its end is reported")
