"""What orders cost: against the usual way, a task an object, and against the floor, the bare requests."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LockHeld, acquire, release

from ...sandbox.access import Access, until
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import UserError
from .floor import BareClient
from .recorder import Recorder, Request
from .replay import CONNECTIONS, Replay
from .timing import Row, at_least, at_most, paused, ratio, seconds, timed

HERE = Path(__file__).parent
ORDERS = "/apis/cloudkit.openshift.io/v1alpha1/namespaces/orders/clusterorders"
FIFTY = 50
TIMES = 3
CREATE = "openfleet.clusters.create_cluster"
OTHERS = ("hypershift-standin", "kube-controller-manager")  # the other clients of the API server, paused while one is measured
CONTENDERS = (1, 8, 32)
CONTENTION_SECONDS = 5.0
EMPTY = "- name: Nothing\n  hosts: localhost\n  gather_facts: false\n  tasks: []\n"


def create_namespace(load: Sandbox) -> None:
    """The namespace of all orders."""
    Access(load.kubeconfig()).kubectl("create", "namespace", "orders")


def usual_way(load: Sandbox) -> list[float]:
    """One order as one ansible-playbook run with a task an object: the reference of the others."""
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
    empty_time = median_of("An empty playbook", lambda _number: run(load, str(empty)))
    create_orders(client, [f"one-{number}" for number in range(TIMES)])

    def provision(number: int) -> None:
        run(load, CREATE, cluster_order_name=f"one-{number}", cluster_order_namespace="orders")

    with paused(load, *OTHERS):
        order_time = median_of("One order by create_cluster", provision)
        again_time = median_of("The same order again", provision)
    create_orders(client, ["counted"])
    with timed("The requests of such runs, counted by a proxy"):
        # The server's own count also has its requests to itself, which are many compared with so few.
        sent = len(recorded(load, ["counted"]))
        run(load, CREATE, cluster_orders=["orders/counted"], cluster_wait_timeout=60)  # until it is Ready
        again = len(recorded(load, ["counted"]))
    above = order_time[0] - empty_time[0]
    yield Row(
        "one order, above an empty playbook",
        f"{above:.2f} s",
        f"the usual way: {usual_time[0] - empty_time[0]:.2f} s",
        ratio(order_time, usual_time),
        at_most(above, 0.7, "s"),
    )
    yield Row("API requests of one order", f"{sent}")
    yield Row("API requests of a second run", f"{again}", goal=at_most(again, 14, "requests"))
    yield Row("the same order again", seconds(again_time), f"an empty playbook: {seconds(empty_time)}", ratio(again_time, empty_time))


def fifty_orders(load: Sandbox, usual_time: list[float]) -> Iterator[Row]:
    """Fifty orders in one run until the last HostedCluster exists, against fifty usual runs, and against the requests alone."""
    client = BareClient(load.kubeconfig())
    create_orders(client, many("many"))
    with counted(load, client) as sent, timed(f"{FIFTY} orders in one run of create_cluster") as many_time:
        run(load, CREATE, cluster_orders=[f"orders/{name}" for name in many("many")])
    until(partial(has_clusters, client, "orders-many-"), f"{FIFTY} HostedClusters exist")
    create_orders(client, [*many("recorded"), *many("concurrent"), *many("serial")])
    with paused(load, *OTHERS):
        with timed("Such a run again, its requests recorded"):
            requests = recorded(load, many("recorded"))
        with timed(f"Its {len(requests)} requests for other orders from one bare process, {CONNECTIONS} at a time") as floor_time:
            Replay(requests, "recorded-", "concurrent-").concurrent(lambda: BareClient(load.kubeconfig()))
        with timed("The same, one after the other") as serial_time:
            Replay(requests, "recorded-", "serial-").serial(client)
        with timed(f"{FIFTY} hosts with the same tasks and arguments, which do nothing") as ansible_time:
            run(load, str(HERE / "ansible_alone.yml"), order_count=FIFTY)
    for prefix in ("concurrent-", "serial-"):
        until(partial(has_clusters, client, f"orders-{prefix}"), f"{FIFTY} HostedClusters exist by the replay for {prefix}")
    usual = usual_time[0] * FIFTY
    # A template is a role, and each order a host of it: no run of Ansible is faster than its own hosts and tasks, whose conditions and
    # arguments it renders for each host.
    times = many_time[0] / (floor_time[0] + ansible_time[0])
    yield Row(
        f"{FIFTY} orders in one run",
        seconds(many_time),
        f"{FIFTY} usual runs, from one: {usual:.0f} s",
        f"{usual / many_time[0]:.0f} x the throughput",
        at_least(usual / many_time[0], 15, "x"),
    )
    yield Row(
        f"{FIFTY} orders against the floor, {sent[0]} requests",
        seconds(many_time),
        f"the {len(requests)} requests of such a run, replayed {CONNECTIONS} at a time: {seconds(floor_time)}; "
        f"Ansible's own {FIFTY} hosts, tasks and arguments: {seconds(ansible_time)}",
        f"{times:.1f} x",
        at_most(times, 1.5, "x"),
    )
    yield Row(f"{FIFTY} orders against the requests alone", seconds(many_time), seconds(floor_time), ratio(many_time, floor_time))
    yield Row(
        f"{FIFTY} orders against a serial replay",
        seconds(many_time),
        f"one after the other: {seconds(serial_time)}",
        ratio(many_time, serial_time),
    )


def many(prefix: str) -> list[str]:
    return [f"{prefix}-{number}" for number in range(FIFTY)]


def recorded(load: Sandbox, names: list[str]) -> list[Request]:
    recorder = Recorder(load.kubeconfig())
    with recorder.recording(load.state / "recorder.kubeconfig") as kubeconfig:
        run(load, CREATE, kubeconfig, cluster_orders=[f"orders/{name}" for name in names])
    return recorder.requests()


def median_of(title: str, work: Callable[[int], None]) -> list[float]:
    """The median of several measurements, in a list as `timed` has it."""
    taken = []
    for number in range(TIMES):
        with timed(f"{title}, {number + 1} of {TIMES}") as once:
            work(number)
        taken += once
    return [statistics.median(taken)]


@contextlib.contextmanager
def counted(load: Sandbox, client: BareClient) -> Iterator[list[int]]:
    """Count the requests of the body, in the list afterwards; the other clients of the API server are paused."""
    sent: list[int] = []
    with paused(load, *OTHERS):
        before = client.requests()
        yield sent
        sent.append(client.requests() - before)


def contention(load: Sandbox) -> Iterator[Row]:
    """Acquire and release one lock, by several processes at once."""
    for contenders in CONTENDERS:
        with timed(f"One lock, {contenders} contenders"):
            command = [sys.executable, "-m", __spec__.name, str(load.kubeconfig()), str(CONTENTION_SECONDS)]
            processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _each in range(contenders)]
            rounds = sum(int(process.communicate()[0]) for process in processes)
        yield Row(f"lock acquired and released, {contenders} contenders", f"{rounds / CONTENTION_SECONDS:.0f} a second")


def contend(kubeconfig: str, duration: float) -> int:
    """Acquire and release the lock as often as possible for `duration` seconds; returns how often."""
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


def run(load: Sandbox, playbook: str, kubeconfig: Path | None = None, **variables: Any) -> None:
    environment = os.environ | {"K8S_AUTH_KUBECONFIG": str(kubeconfig or load.kubeconfig()), "ANSIBLE_FORKS": "4"}
    command = ["ansible-playbook", playbook, "-e", json.dumps(variables)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(f"{' '.join(command)} failed:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")


def create_orders(client: BareClient, names: list[str]) -> None:
    for name in names:
        spec = {
            "templateID": "ocp_4_17_small",
            "templateParameters": "{}",  # the site has the secrets
            "nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 2}],
        }
        metadata = {"name": name, "namespace": "orders"}
        client.send(
            "POST", ORDERS, {"apiVersion": "cloudkit.openshift.io/v1alpha1", "kind": "ClusterOrder", "metadata": metadata, "spec": spec}
        )


def has_clusters(client: BareClient, prefix: str) -> bool:
    """Whether all HostedClusters exist in namespaces of this prefix."""
    listed = json.loads(client.send("GET", "/apis/hypershift.openshift.io/v1beta1/hostedclusters"))["items"]
    return [item["metadata"]["namespace"].startswith(prefix) for item in listed].count(True) == FIFTY


if __name__ == "__main__":
    print(contend(sys.argv[1], float(sys.argv[2])))
