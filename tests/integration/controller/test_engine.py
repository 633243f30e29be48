"""A real ansible-rulebook process with a site's own rulebook and real playbooks below it: what only it can show of the closed loop."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..support.engines import AtWork, Engine, running
from ..support.hostile import HOSTILE, hostile_body, hostile_orders
from ..support.orders import Orders, order
from ..support.samples import FAULT

EXAMPLE = Path(__file__).parents[3] / "docs/examples/site_rulebook.yml"
GATE = """
- name: Show that a run has reached the gate
  ansible.builtin.file:
    path: "{folder}/here-{{{{ cluster_order.metadata.name }}}}"
    state: touch
    mode: "0600"
  when: cluster_order.metadata.name is match('gated')
- name: Wait until it is resumed
  ansible.builtin.wait_for:
    path: "{folder}/resume-{{{{ cluster_order.metadata.name }}}}"
    sleep: 1
  when: cluster_order.metadata.name is match('gated')
"""
MAX_IN_FLIGHT, ORDERS, WEBHOOKS, SENDERS = 2, 12, 120, 20
HOSTILE_REQUESTS = 300


class Loop(AtWork):
    folder: Path

    def full(self, name: str) -> str:
        return f"{self.orders.namespace}/{name}"


@pytest.fixture(scope="module")
def loop(quick_hub: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    folder = tmp_path_factory.mktemp("loop")
    with fresh_namespace(quick_hub) as namespace:
        orders = Orders(quick_hub, namespace, folder)
        gate = orders.role("gate", {"tasks/main.yml": GATE.format(folder=folder)})
        orders.template("finished", post_install="[]\n")
        source = {"start_timeout": 300, "max_in_flight": MAX_IN_FLIGHT, "webhook": {"rate_limit": 10000}}
        # As below nohup: runs do not end with the terminal that the engine is for them.
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with running(Engine(quick_hub, folder, str(EXAMPLE), hooks={"pre_install": [gate]}, source=source)) as engine:
                yield Loop(hub=quick_hub, orders=orders, engine=engine, folder=folder)
        finally:
            signal.signal(signal.SIGHUP, before)
        orders.clean_up()


def test_an_order_becomes_ready_in_steps_and_each_transition_is_reported_once(loop: Loop) -> None:
    orders, engine = loop.orders, loop.engine

    def reported() -> list[str]:
        return [line for line in engine.said(r"^(?:\*\* .*)?((?:Ready|Degraded): .*)$") if loop.full("steps") in line]

    orders.apply("steps", nodes={"fc430": 2}, template="acme.site.finished")
    loop.until_phase("Ready", "steps")
    assert engine.actions(loop.full("steps")) == ["provision", "post_install"]
    assert orders.lease("steps")["leaseTransitions"] == 2
    until(lambda: len(reported()) == 1, "the transition is reported")
    orders.patch_cluster({"metadata": {"annotations": {FAULT: "degraded"}}}, "steps")
    loop.until_phase("Degraded", "steps")
    until(lambda: len(reported()) == 2, "the transition is reported")
    orders.patch_cluster({"metadata": {"annotations": {FAULT: None}}}, "steps")
    loop.until_phase("Ready", "steps")
    until(lambda: len(reported()) == 3, "the transition is reported")
    orders.ask_to_delete("steps")
    until(lambda: orders.is_deleted("steps"), f"it is deleted; the log is {engine.log}")
    until(lambda: engine.metric("openfleet_orders_events_total", action="deleted") == 1, "its end is reported once")
    assert reported() == [
        f"Ready: {loop.full('steps')}",
        f"Degraded: {loop.full('steps')} (ClusterDegraded)",
        f"Ready: {loop.full('steps')}",
    ]
    assert set(engine.actions(loop.full("steps"))[2:]) == {"delete"}


def test_a_run_that_was_killed_is_noticed_by_its_lock_and_done_again(loop: Loop) -> None:
    orders, engine = loop.orders, loop.engine
    orders.apply("gated", nodes={"fc430": 1})
    until((loop.folder / "here-gated").exists, f"a run holds the lock; the log is {engine.log}")
    for process in engine.playbooks():
        with contextlib.suppress(ProcessLookupError):  # some end with the first
            os.kill(process, signal.SIGKILL)
    assert orders.status("gated")["phase"] == "Progressing"
    (loop.folder / "resume-gated").touch()
    until(lambda: not engine.processes("renewer"), "the renewer of the lock ends with its run")
    orders.expire_lock("gated")
    loop.until_phase("Ready", "gated")
    assert engine.actions(loop.full("gated")) == ["provision", "provision"]
    assert orders.lease("gated")["leaseTransitions"] == 2


def test_a_run_that_outlives_its_engine_is_ended_and_done_again(loop: Loop) -> None:
    orders, engine = loop.orders, loop.engine
    orders.apply("gated-engine", nodes={"fc430": 1})
    until((loop.folder / "here-gated-engine").exists, f"a run holds the lock; the log is {engine.log}")
    engine.kill()
    until(lambda: not engine.processes(), "neither the run nor its renewer is left")
    assert orders.lease("gated-engine")["holderIdentity"], "it expires, which shows that its run was lost"
    (loop.folder / "resume-gated-engine").touch()
    orders.expire_lock("gated-engine")
    engine.start()
    loop.until_phase("Ready", "gated-engine")
    assert orders.lease("gated-engine")["leaseTransitions"] == 2


class Runs:
    """Which runs hold locks of orders, by a watch, so that none is missed; `most` is how many did at a time.

    A holder's name ends with that of its run.
    """

    LEASES = ("coordination.k8s.io/v1", "Lease")

    def __init__(self, orders: Orders, prefix: str) -> None:
        self.most = 0
        self.holders: dict[str, str] = {}
        self._prefix = f"{orders.namespace}.{prefix}"
        kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
        since = kube.list_all(*self.LEASES, SITE_NAMESPACE).resource_version
        self._events = kube.watch(*self.LEASES, SITE_NAMESPACE, since=since, seconds=1800)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._events:
            if event.type == "BOOKMARK" or not event.object["metadata"]["name"].startswith(self._prefix):
                continue
            run = re.search(r"local-\d+-\w+$", event.object["spec"].get("holderIdentity") or "")
            self.holders[event.object["metadata"]["name"]] = run[0] if run else ""
            self.most = max(self.most, len(set(filter(None, self.holders.values()))))
            if self.all_are_over():
                return

    def all_are_over(self) -> bool:
        return len(self.holders) == ORDERS and not any(self.holders.values())


def test_webhooks_for_more_orders_than_runs_may_be_in_flight_are_all_answered_and_each_order_runs_once(loop: Loop) -> None:
    """With more orders and a thousand webhooks: test_load."""
    orders, engine = loop.orders, loop.engine
    ordered = [order(orders.namespace, f"load-{number}") for number in range(ORDERS)]
    in_flight: list[float] = []
    runs = Runs(orders, "load-")

    def is_over() -> bool:
        in_flight.append(engine.metric("openfleet_orders_runs_in_flight"))
        return runs.all_are_over()

    with ThreadPoolExecutor(SENDERS + 1) as senders:
        created = senders.submit(orders.kube.in_parallel, orders.kube.create, ordered)
        # A webhook whose order exists already, or is just being created.
        answers = Counter(senders.map(lambda number: engine.post("create-hosted-cluster", ordered[number % ORDERS]), range(WEBHOOKS)))
        assert [answer for answer in created.result() if isinstance(answer, KubeError)] == []
    assert answers == {202: WEBHOOKS}
    until(is_over, f"all locks are released; the log is {engine.log}", 1800)
    for item in ordered:
        loop.until_phase("Ready", item["metadata"]["name"])
    assert 0 < runs.most <= MAX_IN_FLIGHT, "by the locks"
    assert 0 < max(in_flight) <= MAX_IN_FLIGHT, "by the engine's own metric"
    assert {orders.lease(item["metadata"]["name"])["leaseTransitions"] for item in ordered} == {1}, "each was run once"


def test_hostile_requests_and_objects_neither_stop_the_engine_nor_reach_a_shell_or_a_template(loop: Loop, soak: int) -> None:
    orders, engine = loop.orders, loop.engine
    dice = random.Random(23)  # noqa: S311 - the same every time
    created = [it for it in orders.kube.in_parallel(orders.kube.create, hostile_orders(orders.namespace)) if isinstance(it, dict)]
    assert len(created) > len(HOSTILE), "some of them the API server itself refuses"
    bodies = [hostile_body(dice, orders.namespace) for _number in range(HOSTILE_REQUESTS * soak)]
    endpoints = [dice.choice(["create-hosted-cluster", "delete-hosted-cluster"]) for _body in bodies]
    with ThreadPoolExecutor(SENDERS) as senders:
        answers = Counter(senders.map(engine.post, endpoints, bodies))
    assert set(answers) == {202, 400} and answers[400] > answers[202] > 0
    for _time in range(10):
        engine.cut_off("create-hosted-cluster", order("orders", "cut-off"), dice.random())
    orders.apply("good", nodes={"fc430": 1})
    loop.until_phase("Ready", "good")
    assert engine.is_running

    def refused(kind: str) -> list[str]:
        items = orders.kube.list_all(orders.api_version, "ClusterOrder", orders.namespace)
        failed = [item["metadata"]["name"] for item in items if item.get("status", {}).get("phase") == "Failed"]
        return [name for name in failed if name.startswith(kind)]

    until(lambda: refused("template-") and refused("hostile-"), "the hostile ones say what is wrong with them")
    assert not list(orders.folder.rglob("was-here"))
    assert json.dumps("was-here") not in engine.text()
