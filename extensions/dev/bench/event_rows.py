"""What events cost: webhooks while playbooks run, an order until its first task, a change of a cluster until its order shows it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import urllib3
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names

from ...sandbox.access import until
from ...sandbox.processes import free_port
from ...sandbox.sandbox import Sandbox
from ..engine import RULEBOOK
from ..rules_engine import engine_arguments, engine_environment
from .floor import BareClient
from .order_rows import ORDERS, create_orders
from .timing import Row, at_most, paused, timed

FIFTY, THOUSAND, TEN_THOUSAND, CHANGING = 50, 1000, 10_000, 200
WEBHOOK_SECONDS, SENDERS = 10.0, 8
PACE_SECONDS = 0.02
BURST = 20
QUIET_SECONDS = 3.0
HYPERSHIFT = "hypershift.openshift.io/v1beta1"
API = "cloudkit.openshift.io/v1alpha1"
NOW = "2026-01-01T00:00:00Z"
WAIT_SECONDS = 900
SERVICES = ("APIServer", "OAuthServer", "Konnectivity", "Ignition")
# The event source alone, without a rules engine, so that only it is measured.
SOURCE = """
import asyncio, json, sys
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import serve
class Discard:
    async def put(self, event):
        pass
asyncio.run(serve(Discard(), json.loads(sys.argv[1])))
"""
# Another controller, which writes a condition of its own after each change of a HostedCluster, with optimistic locking.
RIVAL = f"""
import sys
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube, retry_on_conflict
kube = Kube.connect({{"kubeconfig": sys.argv[1]}})
since = kube.list_all("{HYPERSHIFT}", "HostedCluster").resource_version
print("ready", flush=True)
def write(name, version):
    order = kube.get("{API}", "ClusterOrder", name, "orders")
    condition = {{"type": "Rival", "status": "True", "reason": "Seen", "message": version, "lastTransitionTime": "{NOW}"}}
    conditions = {{item["type"]: item for item in order["status"].get("conditions", [])}} | {{"Rival": condition}}
    kube.replace(order | {{"status": order["status"] | {{"conditions": [*conditions.values()]}}}}, subresource="status")
for event in kube.watch("{HYPERSHIFT}", "HostedCluster", since=since, seconds=3600):
    if event.type == "MODIFIED":
        metadata = event.object["metadata"]
        retry_on_conflict(lambda: write(metadata["name"], metadata["resourceVersion"]))
"""


class Served:
    """A process with the event source in it, and its webhooks."""

    def __init__(self, command: list[str], environment: dict[str, str], port: int) -> None:
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        self.pool = urllib3.PoolManager(maxsize=SENDERS, retries=False, timeout=10)
        until(self._is_ready, "the event source leads and follows the hub", 120)

    def _is_ready(self) -> bool:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            return self.pool.request("GET", f"{self.url}/healthz").status == 200 and self.metric("leader") == 1
        return False

    def metric(self, name: str) -> float:
        text = self.pool.request("GET", f"{self.url}/metrics").data.decode()
        return sum(float(value) for value in re.findall(rf"^openfleet_orders_{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE))

    def post(self, name: str) -> int:
        body = json.dumps({"metadata": {"namespace": "orders", "name": name}})
        return self.pool.request("POST", f"{self.url}/create-hosted-cluster", body=body).status

    def memory(self) -> int:
        return int(re.findall(r"^VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text(), re.MULTILINE)[0]) // 1024

    def cpu(self) -> float:
        """Seconds of the process and of those of its children that have ended."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def source(load: Sandbox, **settings: Any) -> Iterator[Served]:
    port = free_port()
    arguments = {"kubeconfig": str(load.kubeconfig()), "webhook": {"port": port, "rate_limit": 10**6}} | settings
    served = Served([sys.executable, "-c", SOURCE, json.dumps(arguments)], dict(os.environ), port)
    try:
        yield served
    finally:
        served.process.kill()
        served.process.wait()


@contextlib.contextmanager
def engine(load: Sandbox) -> Iterator[Served]:
    port = free_port()
    settings = {"webhook": {"port": port, "rate_limit": 10**6}, "max_in_flight": 2, "batch_size": 25}
    command = ["ansible-rulebook", *engine_arguments(load.state, RULEBOOK, {"event_source": settings})]
    served = Served(command, engine_environment(load.state, K8S_AUTH_KUBECONFIG=str(load.kubeconfig())), port)
    try:
        yield served
    finally:
        served.process.kill()
        served.process.wait()


def busy_webhooks(load: Sandbox) -> Iterator[Row]:
    """Webhooks as fast as they are answered, while playbooks use both cores; and without playbooks."""
    client = BareClient(load.kubeconfig())
    with engine(load) as served:
        with timed("Webhooks to an idle engine"):
            idle = _answers(served)
        create_orders(client, [f"busy-{number}" for number in range(FIFTY)])
        until(lambda: served.metric("runs_in_flight") > 0, "playbooks run")
        with timed("Webhooks while playbooks run"):
            busy = _answers(served)
        _ready(client, "busy-", FIFTY)
    rate = f"{len(busy) / WEBHOOK_SECONDS:.0f} a second, p99 {percentile(busy, 99) * 1000:.0f} ms"
    reference = f"without playbooks: {len(idle) / WEBHOOK_SECONDS:.0f} a second, p99 {percentile(idle, 99) * 1000:.0f} ms"
    yield Row("webhooks answered while playbooks run", rate, reference, f"{len(busy) / len(idle):.2f} x")
    slowest = f"without playbooks: {max(idle) * 1000:.0f} ms"
    yield Row("the slowest answer to a webhook", f"{max(busy) * 1000:.0f} ms", slowest, goal=at_most(max(busy), 1, "s"))


def fifty_by_rulebook(load: Sandbox) -> Iterator[Row]:
    """From orders to clusters through the real rules engine, and the time from an event until its run begins."""
    client = BareClient(load.kubeconfig())
    with engine(load) as served:
        create_orders(client, ["first"])
        started = time.monotonic()
        until(lambda: _status(client, "first").get("job"), "the first task has begun", 60)
        first = time.monotonic() - started
        _ready(client, "first", 1)
        before = served.cpu()
        with timed(f"{FIFTY} orders through the rulebook until all are Ready") as taken:
            create_orders(client, [f"book-{number}" for number in range(FIFTY)])
            _ready(client, "book-", FIFTY)
        used = served.cpu() - before
    yield Row("an order until the first task of its run has begun", f"{first:.1f} s")
    yield Row(f"{FIFTY} orders through the rulebook until all are Ready", f"{taken[0]:.1f} s", f"{used / FIFTY:.2f} CPU seconds an order")


def keep_orders(load: Sandbox) -> None:
    """Create a thousand orders with clusters, without runs."""
    kube = Kube.connect({"kubeconfig": str(load.kubeconfig())})
    with timed(f"{THOUSAND} orders with clusters created"):
        _each(kube, lambda number: _create_fulfilled(kube, f"kept-{number}"), range(THOUSAND))


def thousand_orders(load: Sandbox) -> list[Row]:
    """The time and the memory of the event source, which has a thousand orders to write for the first time."""
    kube = Kube.connect({"kubeconfig": str(load.kubeconfig())})
    with paused(load, "hypershift-standin"), source(load) as served:
        with timed(f"A status pass over {THOUSAND} orders") as taken:
            until(lambda: served.metric("status_writes_total") >= THOUSAND, "the status of each order is written", WAIT_SECONDS)
        memory = served.memory()
        before = served.metric("status_writes_total")
        with timed(f"{THOUSAND} HostedClusters change at once"):
            _each(kube, lambda number: _change(kube, f"kept-{number}", "AllAtOnce"), range(THOUSAND))
            _each(kube, lambda number: _change(kube, f"kept-{number}", "AndAgain"), range(THOUSAND))
            until(lambda: _count(kube, "AndAgain") == THOUSAND, "each order shows the change", WAIT_SECONDS)
        writes = int(served.metric("status_writes_total") - before)
    return [
        Row(f"a status pass of {THOUSAND} orders, each written", f"{taken[0]:.1f} s", goal=at_most(taken[0], 5, "s")),
        Row(f"memory of the event source with {THOUSAND} orders", f"{memory} MB", goal=at_most(memory, 150, "MB")),
        Row(
            f"two changes each of {THOUSAND} HostedClusters",
            f"{writes} writes",
            f"{2 * THOUSAND} changes",
            f"{writes / 2 / THOUSAND:.2f} x",
        ),
    ]


def ten_thousand_orders(load: Sandbox) -> Iterator[Row]:
    """The memory of the event source with ten thousand orders, after it has written the status of each new one."""
    kube = Kube.connect({"kubeconfig": str(load.kubeconfig())})
    with paused(load, "hypershift-standin", "kube-controller-manager"):
        with timed(f"{TEN_THOUSAND - THOUSAND} more orders with clusters created"):
            _each(kube, lambda number: _create_fulfilled(kube, f"kept-{number}"), range(THOUSAND, TEN_THOUSAND))
        with source(load) as served, timed(f"A status pass over {TEN_THOUSAND} orders") as taken:
            until(
                lambda: served.metric("status_writes_total") >= TEN_THOUSAND - THOUSAND, "the status of each order is written", WAIT_SECONDS
            )
            memory = served.memory()
    passed = f"its status pass: {taken[0]:.1f} s"
    yield Row(f"memory of the event source with {TEN_THOUSAND} orders", f"{memory} MB", passed, goal=at_most(memory, 600, "MB"))


def status_lag(load: Sandbox) -> Iterator[Row]:
    """The lag while this collection alone writes the status of orders."""
    lags = _lags(load)
    for percent, limit in ((50, 20), (95, 60)):
        lag = percentile(lags, percent) * 1000
        yield Row(f"a HostedCluster's change until its order shows it, p{percent}", f"{lag:.0f} ms", goal=at_most(lag, limit, "ms"))


def status_lag_beside(load: Sandbox) -> Iterator[Row]:
    """The lag while another controller writes to the same status after the same changes."""
    alone = percentile(_lags(load), 50) * 1000
    rival = subprocess.Popen([sys.executable, "-c", RIVAL, str(load.kubeconfig())], stdout=subprocess.PIPE)
    try:
        if not rival.stdout or not rival.stdout.readline():
            raise RuntimeError("the other controller does not start")
        lag = percentile(_lags(load, controller="external"), 50) * 1000
    finally:
        rival.kill()
        rival.wait()
    name = "a HostedCluster's change until its order shows it with another controller, p50"
    yield Row(name, f"{lag:.0f} ms", f"alone: {alone:.0f} ms", f"{lag / alone:.2f} x", goal=at_most(lag, 30, "ms"))


def _lags(load: Sandbox, **settings: Any) -> list[float]:
    """From the response to the write of a HostedCluster until a watch shows it on the order, for many that change one after the other."""
    kube = Kube.connect({"kubeconfig": str(load.kubeconfig())})
    names = [f"kept-{number}" for number in range(CHANGING)]
    shown: dict[str, float] = {}
    reason = f"Lag{secrets.token_hex(2)}"
    since = kube.list_all(API, "ClusterOrder").resource_version

    def watch() -> None:
        for event in kube.watch(API, "ClusterOrder", since=since):
            if reason in json.dumps(event.object.get("status", {})):
                shown.setdefault(event.object["metadata"]["name"], time.monotonic())
            if len(shown) == CHANGING:
                return

    with paused(load, "hypershift-standin"), source(load, **settings) as served:
        _settled(served)
        threading.Thread(target=watch, daemon=True).start()
        sent = {}
        with timed(f"{CHANGING} HostedClusters change one after the other"):
            for name in names:
                _change(kube, name, reason)
                sent[name] = time.monotonic()
                time.sleep(PACE_SECONDS)
            until(lambda: len(shown) == CHANGING, "each order shows the change", WAIT_SECONDS)
    return sorted(shown[name] - sent[name] for name in names)


def coalesced(load: Sandbox) -> Iterator[Row]:
    """A burst of changes of one HostedCluster: the first is written at once, the others are coalesced."""
    kube = Kube.connect({"kubeconfig": str(load.kubeconfig())})
    with paused(load, "hypershift-standin"), source(load) as served:
        _settled(served)
        before, started = served.metric("status_writes_total"), time.monotonic()
        for number in range(BURST):
            _change(kube, "kept-0", f"Burst{number}")
        lasted = time.monotonic() - started
        until(lambda: f"Burst{BURST - 1}" in json.dumps(kube.get(API, "ClusterOrder", "kept-0", "orders")), "the last shows")
        writes = int(served.metric("status_writes_total") - before)
    goal = at_most(writes, 3, f"for a burst of {lasted * 1000:.0f} ms")
    yield Row(f"a burst of {BURST} changes of one HostedCluster", f"{writes} writes", f"{BURST} changes", goal=goal)


def _settled(served: Served) -> None:
    """Wait until the source has reconciled every order: its queue is empty and it writes nothing for a while."""

    def is_quiet() -> bool:
        before = served.metric("status_writes_total")
        time.sleep(QUIET_SECONDS)
        return served.metric("workqueue_depth") == 0 and served.metric("status_writes_total") == before

    until(is_quiet, "every order is reconciled", WAIT_SECONDS)


def _answers(served: Served) -> list[float]:
    """The seconds of each response, of as many as came in the time."""
    deadline = time.monotonic() + WEBHOOK_SECONDS
    taken: list[float] = []

    def send(sender: int) -> None:
        number = 0
        while time.monotonic() < deadline:
            before = time.monotonic()
            code = served.post(f"busy-{(sender * 7 + number) % FIFTY}")
            if code != 202:
                raise RuntimeError(f"the response to a webhook was {code}")
            taken.append(time.monotonic() - before)
            number += 1

    with ThreadPoolExecutor(SENDERS) as senders:
        list(senders.map(send, range(SENDERS)))
    return taken


def _status(client: BareClient, name: str) -> Object:
    status: Object = json.loads(client.send("GET", f"{ORDERS}/{name}")).get("status", {})
    return status


def _ready(client: BareClient, prefix: str, count: int) -> None:
    def reached() -> bool:
        items = json.loads(client.send("GET", ORDERS))["items"]
        mine = [item.get("status", {}).get("phase") for item in items if item["metadata"]["name"].startswith(prefix)]
        return mine.count("Ready") >= count

    until(reached, f"{count} orders are Ready", WAIT_SECONDS)


def _create_fulfilled(kube: Kube, name: str) -> None:
    """An order and its cluster as a run would have created them."""
    spec: Object = {"templateID": "ocp_4_17_small", "nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 1}]}
    # Management state manual: the source expects no run for it.
    annotations = {"cloudkit.openshift.io/management-state": "manual"}
    about = {"name": name, "namespace": "orders", "annotations": annotations}
    order = kube.create({"apiVersion": API, "kind": "ClusterOrder", "metadata": about, "spec": spec})
    made = ClusterOrder.from_object(order)
    kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made.working_namespace, "labels": made.labels}})
    cluster = {
        "release": {"image": "quay.io/openshift-release-dev/ocp-release:4.17.0-multi"},
        "pullSecret": {"name": "pull-secret"},
        "networking": {"clusterNetwork": [{"cidr": "10.132.0.0/14"}], "serviceNetwork": [{"cidr": "172.31.0.0/16"}]},
        "etcd": {"managementType": "Managed", "managed": {"storage": {"type": "PersistentVolume"}}},
        "platform": {"type": "None"},
        "services": [{"service": name, "servicePublishingStrategy": {"type": "Route"}} for name in SERVICES],
    }
    metadata = {"name": name, "namespace": made.working_namespace, "labels": made.labels}
    kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata | {"name": "pull-secret"}})
    kube.create({"apiVersion": HYPERSHIFT, "kind": "HostedCluster", "metadata": metadata, "spec": cluster})
    kube.replace(order | {"status": {"provider": {"type": "hypershift"}}}, subresource="status")


def _change(kube: Kube, name: str, reason: str) -> None:
    """Change the conditions of a HostedCluster."""
    degraded = {"type": "Degraded", "status": "True", "reason": reason, "message": reason, "lastTransitionTime": NOW}
    available = {"type": "Available", "status": "True", "reason": reason, "message": "", "lastTransitionTime": NOW}
    metadata = {"name": name, "namespace": Names().working_namespace("orders", name)}
    patch = {"status": {"conditions": [available, degraded]}}
    kube.patch({"apiVersion": HYPERSHIFT, "kind": "HostedCluster", "metadata": metadata}, patch, subresource="status", checked=False)


def _each(kube: Kube, work: Callable[[int], None], numbers: range) -> None:
    for result in kube.in_parallel(work, numbers):
        if isinstance(result, KubeError):
            raise result


def _count(kube: Kube, reason: str) -> int:
    return sum(reason in json.dumps(item.get("status", {})) for item in kube.list_all(API, "ClusterOrder", "orders"))


def percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
