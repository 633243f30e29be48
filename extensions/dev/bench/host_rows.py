"""What claims of bare-metal hosts cost when many orders claim at once, and some of their runs are killed in the middle."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

from ...sandbox.access import Access, until
from ...sandbox.sandbox import Sandbox
from ...sandbox.screen import UserError
from . import host_claimants
from .host_claimants import LABELS
from .order_rows import OTHERS
from .timing import Row, at_most, paused, timed

API_VERSION, NAMESPACE = "agent-install.openshift.io/v1beta1", "bench-hosts"
HOSTS, ORDERS, KILLED = 500, 50, 20
EACH = HOSTS // ORDERS
CLASS = "fc430"


def host_claims(load: Sandbox) -> Iterator[Row]:
    """Every host is claimed in the end: none is lost, none has two owners."""
    hub = Access(load.kubeconfig())
    with timed(f"{HOSTS} hosts"):
        discover(hub)
    names = [f"order-{number}" for number in range(ORDERS)]
    # Of the lock, of the claim, of one of the hosts: after any of their writes.
    dying = {name: random.randint(1, EACH + 2) for name in random.sample(names, KILLED)}  # noqa: S311 - keeps no secret
    given = {
        "kubeconfig": str(load.kubeconfig()),
        "namespace": NAMESPACE,
        "wanted": {CLASS: EACH},
        "clusters": {name: dying.get(name) for name in names},
    }
    with paused(load, *OTHERS), timed(f"{ORDERS} orders claim {EACH} hosts each, {KILLED} runs are killed"):
        command = [sys.executable, "-m", host_claimants.__name__]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout or "{}")
    agents = hub.kube.list_all(API_VERSION, "Agent", NAMESPACE)
    owners = Counter(agent["metadata"]["labels"].get(LABELS.claim, "none") for agent in agents)
    if done.returncode or answer["failed"] or len(answer["killed"]) != KILLED or set(owners.values()) != {EACH} or len(owners) != ORDERS:
        raise UserError(f"Claims of hosts went wrong: {answer}, {owners}, {done.stderr[-2000:]}")
    yield Row(
        f"{HOSTS} hosts claimed by {ORDERS} orders at once, {KILLED} runs killed",
        f"{answer['seconds']:.1f} s",
        goal=at_most(answer["seconds"], 20, "s"),
    )


def discover(hub: Access) -> None:
    """Create the Agents, and wait until the stand-in has reported them."""
    hub.kubectl("create", "namespace", NAMESPACE)
    names = [f"host-{number:03}" for number in range(HOSTS)]

    def create(name: str) -> None:
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {LABELS.resource_class: CLASS, LABELS.failure_domain: f"rack-{name[-1]}"},
        }
        hub.kube.create({"apiVersion": API_VERSION, "kind": "Agent", "metadata": metadata, "spec": {"approved": False, "role": ""}})

    hub.kube.in_parallel(create, names)

    def are_reported() -> bool:
        agents = hub.kube.list_all(API_VERSION, "Agent", NAMESPACE)
        return len(agents) == HOSTS and all("status" in agent for agent in agents)

    until(are_reported, f"{HOSTS} Agents are reported", 300)
