"""What carrying out orders costs: against the usual way, a task an object, and against the floor, the bare requests."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.kube import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lease import LockHeld, acquire, release

from ...sandbox.access import Access, until
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import UserError
from .floor import BareClient, Object
from .timing import Row, paused, ratio, seconds, timed

HERE = Path(__file__).parent
ORDERS = "/apis/cloudkit.openshift.io/v1alpha1/namespaces/orders/clusterorders"
FIFTY = 50
CONTENDERS = (1, 8, 32)
CONTENTION_SECONDS = 5.0
EMPTY = "- name: Nothing\n  hosts: localhost\n  gather_facts: false\n  tasks: []\n"


def usual_way(load: Sandbox) -> list[float]:
    """One order as one ansible-playbook run with a task an object: what the others are compared with."""
    Access(load.kubeconfig()).kubectl("create", "namespace", "orders")
    create_orders(BareClient(load.kubeconfig()), ["usual"])
    with timed("One order the usual way, a task an object") as taken:
        run(load, str(HERE / "usual_way.yml"), order_name="usual", order_namespace="orders")
    return taken


def one_order(load: Sandbox, usual_time: list[float]) -> Iterator[Row]:
    """One order as one ansible-playbook run, against an empty playbook and against the usual way."""
    client = BareClient(load.kubeconfig())
    empty = load.state / "empty.yml"
    empty.write_text(EMPTY)
    run(load, str(empty))
    with timed("An empty playbook") as empty_time:
        run(load, str(empty))
    create_orders(client, ["one"])
    with counted(load, client) as sent, timed("One order by create_cluster") as order_time:
        run(load, "openfleet.clusters.create_cluster", cluster_order_name="one", cluster_order_namespace="orders")
    with counted(load, client) as sent_again, timed("The same order again") as again_time:
        run(load, "openfleet.clusters.create_cluster", cluster_order_name="one", cluster_order_namespace="orders")
    above = f"{order_time[0] - empty_time[0]:.2f} s"
    yield (
        "one order, above an empty playbook",
        above,
        f"the usual way: {usual_time[0] - empty_time[0]:.2f} s",
        ratio(order_time, usual_time),
    )
    yield "API requests of one order", f"{sent[0]}", f"of a second run: {sent_again[0]}", ""
    yield "the same order again", seconds(again_time), f"an empty playbook: {seconds(empty_time)}", ratio(again_time, empty_time)


def fifty_orders(load: Sandbox, usual_time: list[float]) -> Iterator[Row]:
    """Fifty orders in one run until the last HostedCluster exists, against fifty usual runs, and against the bare requests."""
    client = BareClient(load.kubeconfig())
    names = [f"many-{number}" for number in range(FIFTY)]
    create_orders(client, names)
    with counted(load, client) as sent, timed(f"{FIFTY} orders in one run of create_cluster") as many_time:
        run(load, "openfleet.clusters.create_cluster", cluster_orders=[f"orders/{name}" for name in names])
    until(lambda: count_clusters(client, "orders-many-") == FIFTY, f"{FIFTY} HostedClusters exist")
    with timed(f"The same {sent[0]} requests from one bare process") as floor_time:
        send_bare(client, sent[0])
    usual = usual_time[0] * FIFTY
    yield (
        f"{FIFTY} orders in one run",
        seconds(many_time),
        f"{FIFTY} usual runs, from one: {usual:.0f} s",
        f"{usual / many_time[0]:.0f} x the throughput",
    )
    yield (
        f"{FIFTY} orders against the floor",
        seconds(many_time),
        f"{sent[0]} bare requests: {seconds(floor_time)}",
        ratio(many_time, floor_time),
    )


@contextlib.contextmanager
def counted(load: Sandbox, client: BareClient) -> Iterator[list[int]]:
    """The requests of whoever is at work meanwhile, in the list afterwards; all others who ask the API server are paused."""
    sent: list[int] = []
    with paused(load, "hypershift-standin", "kube-controller-manager"):
        before = client.requests()
        yield sent
        sent.append(client.requests() - before)


def contention(load: Sandbox) -> Iterator[Row]:
    """Take and give back one lock, by several processes at once."""
    for contenders in CONTENDERS:
        with timed(f"One lock, {contenders} contenders"):
            command = [sys.executable, "-m", __spec__.name, str(load.kubeconfig()), str(CONTENTION_SECONDS)]
            processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _each in range(contenders)]
            rounds = sum(int(process.communicate()[0]) for process in processes)
        yield f"lock taken and given back, {contenders} contenders", f"{rounds / CONTENTION_SECONDS:.0f} a second", "", ""


def contend(kubeconfig: str, duration: float) -> int:
    """Take the lock as often as it can be had for so long."""
    kube = Kube.connect({"kubeconfig": kubeconfig})
    rounds, deadline, holder = 0, time.monotonic() + duration, f"bench-{os.getpid()}"
    while time.monotonic() < deadline:
        try:
            lock = acquire(kube, "orders", "contended", holder)
        except LockHeld:
            continue
        release(kube, lock)
        rounds += 1
    return rounds


def run(load: Sandbox, playbook: str, **variables: Any) -> None:
    environment = os.environ | {"K8S_AUTH_KUBECONFIG": str(load.kubeconfig()), "ANSIBLE_FORKS": "4"}
    command = ["ansible-playbook", playbook, "-e", json.dumps(variables)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(f"{' '.join(command)} failed:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")


def create_orders(client: BareClient, names: list[str]) -> None:
    for name in names:
        spec = {
            "templateID": "ocp_4_17_small",
            "templateParameters": json.dumps({"pull_secret": "{}", "ssh_public_key": "ssh-ed25519 none"}),
            "nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 2}],
        }
        metadata = {"name": name, "namespace": "orders"}
        client.send(
            "POST", ORDERS, {"apiVersion": "cloudkit.openshift.io/v1alpha1", "kind": "ClusterOrder", "metadata": metadata, "spec": spec}
        )


def count_clusters(client: BareClient, prefix: str) -> int:
    listed = json.loads(client.send("GET", "/apis/hypershift.openshift.io/v1beta1/hostedclusters"))["items"]
    return sum(item["metadata"]["namespace"].startswith(prefix) for item in listed)


def send_bare(client: BareClient, requests: int) -> None:
    """As many requests, half of them writes of an object of the usual size, half of them reads."""
    body: Object = {"metadata": {"name": "floor"}, "data": {"text": "x" * 1000}}
    client.send("POST", "/api/v1/namespaces/orders/configmaps", body)
    path = "/api/v1/namespaces/orders/configmaps/floor"
    for number in range(requests // 2):
        client.send("PATCH", path, {"data": {"number": f"{number}"}}, "application/merge-patch+json")
        client.send("GET", path)


if __name__ == "__main__":
    print(contend(sys.argv[1], float(sys.argv[2])))
