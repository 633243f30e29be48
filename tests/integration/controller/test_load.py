"""More than an engine can do at once: a thousand webhooks for two hundred orders, and hostile requests and objects, on a real engine."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.engines import Engine, running
from ..support.orders import GROUP, PULL_SECRET, Object, Orders

ORDERS, WEBHOOKS, SECONDS, SENDERS = 200, 1000, 10.0, 20
MAX_IN_FLIGHT = 2
READY_SECONDS = 1800
LEASES = ("coordination.k8s.io/v1", "Lease")
HOSTILE_REQUESTS = 5000
HOSTILE = ["{{ 7*7 }}", "{% raw %}", "{{ lookup('pipe', 'touch was-here') }}", "$(touch was-here)", "`id`", "'\"; x", "\u202e\u0001x", "💥"]


@pytest.fixture(scope="module")
def orders(new_sandbox: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orders]:
    sandbox = new_sandbox(status_only=True)
    with fresh_namespace(Access(sandbox.kubeconfig())) as namespace:
        yield Orders(Access(sandbox.kubeconfig()), namespace, tmp_path_factory.mktemp("load"))
    sandbox.down()


@pytest.fixture(scope="module")
def engine(orders: Orders) -> Iterator[Engine]:
    settings = {"batch_size": 50, "max_in_flight": MAX_IN_FLIGHT, "webhook": {"rate_limit": 10000}}
    with running(Engine(orders.hub, orders.folder, source=settings)) as engine:
        yield engine


def order(namespace: str, name: str, **parameters: str) -> Object:
    spec = {
        "templateID": "ocp_4_17_small",
        "templateParameters": json.dumps({"pull_secret": PULL_SECRET} | parameters),
        "nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 1}],
    }
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ClusterOrder", "metadata": metadata, "spec": spec}


class Runs:
    """Which runs hold locks of orders, by a watch, so that none is missed; `most` is how many did at a time.

    A holder's name ends with that of its run.
    """

    def __init__(self, orders: Orders) -> None:
        self.most = 0
        self.holders: dict[str, str] = {}
        kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
        since = kube.list_all(*LEASES, orders.namespace).resource_version
        self._events = kube.watch(*LEASES, orders.namespace, since=since, seconds=READY_SECONDS)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._events:
            if event.type == "BOOKMARK":
                continue
            run = re.search(r"local-\d+-\w+$", event.object["spec"].get("holderIdentity") or "")
            self.holders[event.object["metadata"]["name"]] = run[0] if run else ""
            self.most = max(self.most, len(set(filter(None, self.holders.values()))))
            if self.all_are_over():
                return

    def all_are_over(self) -> bool:
        return len(self.holders) == ORDERS and not any(self.holders.values())


def test_a_thousand_webhooks_are_all_answered_within_a_second_and_every_order_becomes_ready(orders: Orders, engine: Engine) -> None:
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    ordered = [order(orders.namespace, f"load-{number}") for number in range(ORDERS)]
    answers: list[tuple[int, float]] = []
    told: list[float] = []
    runs, started = Runs(orders), time.monotonic()

    def send(number: int) -> None:
        """In its turn, spread evenly over the time: a webhook whose order is there already, or is just being made."""
        time.sleep(max(0.0, started + number * SECONDS / WEBHOOKS - time.monotonic()))
        before = time.monotonic()
        code = engine.post("create-hosted-cluster", ordered[number % ORDERS], timeout=60)
        answers.append((code, time.monotonic() - before))

    def unready() -> list[str]:
        told.append(engine.metric("openfleet_orders_runs_in_flight"))
        found = {item["metadata"]["name"]: item.get("status", {}).get("phase") for item in items(kube, orders)}
        return [name for name in (item["metadata"]["name"] for item in ordered) if found.get(name) != "Ready"]

    with ThreadPoolExecutor(SENDERS + 1) as senders:
        made = senders.submit(kube.in_parallel, kube.create, ordered)
        list(senders.map(send, range(WEBHOOKS)))
        assert [answer for answer in made.result() if isinstance(answer, KubeError)] == []
    assert {code for code, _seconds in answers} == {202} and len(answers) == WEBHOOKS
    # Of a machine that stands still for a moment the slowest few would tell, and not of the engine.
    assert sorted(seconds for _code, seconds in answers)[WEBHOOKS * 9 // 10] < 1.0

    until(lambda: not unready(), f"all are Ready; the log is {engine.log}", READY_SECONDS)
    until(runs.all_are_over, "all locks are given back")
    assert 0 < runs.most <= MAX_IN_FLIGHT, "by the locks"
    assert 0 < max(told) <= MAX_IN_FLIGHT, "by the engine's own word"
    leases = kube.list_all(*LEASES, orders.namespace)
    assert {lease["spec"]["leaseTransitions"] for lease in leases} == {1}, "each was carried out once"
    assert len(leases) == ORDERS


def items(kube: Kube, orders: Orders) -> list[Object]:
    return kube.list_all(f"{GROUP}/v1alpha1", "ClusterOrder", orders.namespace)


def hostile_objects(orders: Orders, kube: Kube) -> int:
    """Orders that nobody in his right mind would write; some of them the API server itself refuses."""
    made = []
    for number, text in enumerate(HOSTILE):
        parameters = json.dumps({text: text, "pull_secret": text}) if number % 2 else text * 1000
        made += [order(orders.namespace, f"{kind}-{number}") for kind in ("hostile", "class", "template")]
        made[-3]["metadata"]["annotations"] = {"note": text * 100}
        made[-3]["spec"]["templateParameters"] = parameters
        made[-2]["spec"]["nodeRequests"][0]["resourceClass"] = text
        made[-1]["spec"]["templateID"] = f"no_such_{number}"
    return sum(isinstance(answer, dict) for answer in kube.in_parallel(kube.create, made))


def hostile_body(dice: random.Random, namespace: str) -> object:
    """The body of a webhook: no JSON, JSON of another shape, or an order whose parts are hostile."""
    text = dice.choice(HOSTILE)
    named = {"name": f"hostile-{dice.randrange(len(HOSTILE))}", "namespace": namespace}
    nested: object = text
    for _level in range(dice.choice((1, 10, 200))):
        nested = {text: nested} if dice.random() < 0.5 else [nested]
    return dice.choice(
        [
            text.encode("utf-8", "surrogatepass"),
            dice.randbytes(dice.randrange(1000)),
            b"[" * dice.choice((1, 10**5)),
            json.dumps(nested)[: dice.randrange(1, 50)].encode(),
            nested,
            {"metadata": nested},
            {"metadata": {"name": nested, "namespace": namespace}},
            {"metadata": {"name": text, "namespace": text}},
            {"metadata": named, "event": nested, "meta": {"hosts": HOSTILE}, "spec": nested},
            {"metadata": named | {"labels": nested, "uid": text}},
            {"payload": {"metadata": named}, "meta": nested},
            {"metadata": {"name": "x" * dice.choice((10, 300, 10**6)), "namespace": namespace}},
            None,
        ]
    )


def test_hostile_requests_and_objects_neither_stop_the_engine_nor_reach_a_shell_or_a_template(orders: Orders, engine: Engine) -> None:
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    dice = random.Random(23)  # noqa: S311 - the same every time
    made = hostile_objects(orders, kube)
    assert made > len(HOSTILE)
    bodies = [hostile_body(dice, orders.namespace) for _number in range(HOSTILE_REQUESTS)]
    endpoints = [dice.choice(["create-hosted-cluster", "delete-hosted-cluster"]) for _body in bodies]
    with ThreadPoolExecutor(SENDERS) as senders:
        answers = Counter(senders.map(engine.post, endpoints, bodies))
    assert set(answers) == {202, 400} and answers[400] > answers[202] > 0
    for _time in range(10):
        engine.cut_off("create-hosted-cluster", order("orders", "cut-off"), dice.random())
    orders.place("good", nodes={"fc430": 1})
    until(lambda: orders.status("good").get("phase") == "Ready", f"a good order still works; the log is {engine.log}", 300)
    assert engine.is_running

    def refused(kind: str) -> list[str]:
        failed = [item["metadata"]["name"] for item in items(kube, orders) if item.get("status", {}).get("phase") == "Failed"]
        return [name for name in failed if name.startswith(kind)]

    until(lambda: refused("template-") and refused("hostile-"), "the hostile ones say what is wrong with them")
    assert not list(orders.folder.rglob("was-here"))
