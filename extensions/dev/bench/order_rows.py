"""What carrying out orders costs: against the usual way, a task an object, and against the floor, the bare requests."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import LockHeld, acquire, release

from ...sandbox.access import Access, until
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import UserError
from .floor import BareClient
from .tape import Request, Tape, play
from .timing import Row, at_least, at_most, paused, ratio, seconds, timed

HERE = Path(__file__).parent
ORDERS = "/apis/cloudkit.openshift.io/v1alpha1/namespaces/orders/clusterorders"
FIFTY = 50
TIMES = 3
CREATE = "openfleet.clusters.create_cluster"
OTHERS = ("hypershift-standin", "kube-controller-manager")  # who asks the API server beside whoever is measured
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
    empty_time = middle("An empty playbook", lambda _number: run(load, str(empty)))
    create_orders(client, [f"one-{number}" for number in range(TIMES)])

    def carry_out(number: int) -> None:
        run(load, CREATE, cluster_order_name=f"one-{number}", cluster_order_namespace="orders")

    with paused(load, *OTHERS):
        order_time = middle("One order by create_cluster", carry_out)
        again_time = middle("The same order again", carry_out)
    create_orders(client, ["counted"])
    with timed("The requests of such runs, counted by a proxy"):
        # The server's own count has a few in it that are nobody's, which is much beside so few.
        sent = len(taped(load, ["counted"]))
        run(load, CREATE, cluster_orders=["orders/counted"], cluster_wait_timeout=60)  # until it is Ready
        again = len(taped(load, ["counted"]))
    above = order_time[0] - empty_time[0]
    yield Row(
        "one order, above an empty playbook",
        f"{above:.2f} s",
        f"the usual way: {usual_time[0] - empty_time[0]:.2f} s",
        ratio(order_time, usual_time),
        at_most(above, 1, "s"),
    )
    yield Row("API requests of one order", f"{sent}")
    yield Row("API requests of a second run", f"{again}", goal=at_most(again, 12, "requests"))
    yield Row("the same order again", seconds(again_time), f"an empty playbook: {seconds(empty_time)}", ratio(again_time, empty_time))


def fifty_orders(load: Sandbox, usual_time: list[float]) -> Iterator[Row]:
    """Fifty orders in one run until the last HostedCluster exists, against fifty usual runs, and against the requests alone."""
    client = BareClient(load.kubeconfig())
    create_orders(client, many("many"))
    with counted(load, client) as sent, timed(f"{FIFTY} orders in one run of create_cluster") as many_time:
        run(load, CREATE, cluster_orders=[f"orders/{name}" for name in many("many")])
    until(lambda: count_clusters(client, "orders-many-") == FIFTY, f"{FIFTY} HostedClusters exist")
    create_orders(client, [*many("taped"), *many("again")])
    with paused(load, *OTHERS):
        with timed("Such a run once more, its requests written down"):
            requests = taped(load, many("taped"))
        with timed(f"The same {len(requests)} requests for other orders from one bare process") as floor_time:
            play(client, requests, "taped-", "again-")
    until(lambda: count_clusters(client, "orders-again-") == FIFTY, f"{FIFTY} HostedClusters exist by the bare requests, too")
    usual, times = usual_time[0] * FIFTY, many_time[0] / floor_time[0]
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
        f"the {len(requests)} requests of such a run, replayed from one bare process: {seconds(floor_time)}",
        f"{times:.1f} x",
        at_most(times, 3, "x"),
    )


def many(prefix: str) -> list[str]:
    return [f"{prefix}-{number}" for number in range(FIFTY)]


def taped(load: Sandbox, names: list[str]) -> list[Request]:
    tape = Tape(load.kubeconfig())
    with tape.recording(load.state / "tape.kubeconfig") as kubeconfig:
        run(load, CREATE, kubeconfig, cluster_orders=[f"orders/{name}" for name in names])
    return tape.requests()


def middle(title: str, work: Callable[[int], None]) -> list[float]:
    """How long it takes, as the others have it in their lists: the middle one of several times."""
    taken = []
    for number in range(TIMES):
        with timed(f"{title}, {number + 1} of {TIMES}") as once:
            work(number)
        taken += once
    return [statistics.median(taken)]


@contextlib.contextmanager
def counted(load: Sandbox, client: BareClient) -> Iterator[list[int]]:
    """The requests of whoever is at work meanwhile, in the list afterwards; all others who ask the API server are paused."""
    sent: list[int] = []
    with paused(load, *OTHERS):
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
        yield Row(f"lock taken and given back, {contenders} contenders", f"{rounds / CONTENTION_SECONDS:.0f} a second")


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


if __name__ == "__main__":
    print(contend(sys.argv[1], float(sys.argv[2])))
