"""Two event sources for one hub, each a process of its own: one leads, the other stands by and takes over, however the first ends."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from ..support.engines import free_port
from ..support.orders import Orders

LEASE = "cluster-orders.cloudkit.openshift.io-leader"
# What a rules engine would be given is written down.
SOURCE = """
import asyncio, json, logging, signal, sys
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import serve
class Listener:
    async def put(self, event):
        print(json.dumps(event), flush=True)
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    await serve(Listener(), json.loads(sys.argv[1]))
logging.basicConfig(level=logging.INFO)
asyncio.run(main())
"""


class Instance:
    """A process with an event source in it."""

    def __init__(self, orders: Orders, name: str) -> None:
        self._port = free_port()
        self._log = orders.folder / f"{name}.log"
        arguments = {"kubeconfig": str(orders.hub.kubeconfig), "site_namespace": orders.namespace, "webhook": {"port": self._port}}
        with open(self._log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([sys.executable, "-c", SOURCE, json.dumps(arguments)], stdout=log, stderr=log)

    def get(self, path: str) -> tuple[int, str]:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            answer = urllib3.request("GET", f"http://127.0.0.1:{self._port}/{path}", retries=False, timeout=5)
            return answer.status, answer.data.decode()
        return 0, ""

    def leads(self) -> bool:
        return bool(re.search(r"^openfleet_orders_leader 1", self.get("metrics")[1], re.MULTILINE))

    def events(self, name: str) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
        return [event for event in events if name in [order["name"] for order in event["orders"]]]

    def said(self, text: str) -> bool:
        return text in self._log.read_text(encoding="utf-8")

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait(60)


@pytest.fixture
def start(orders: Orders) -> Iterator[Callable[[str], Instance]]:
    started: list[Instance] = []

    def begin(name: str) -> Instance:
        started.append(Instance(orders, name))
        return started[-1]

    yield begin
    for instance in started:
        instance.process.kill()
        instance.process.wait()


@pytest.fixture
def pair(start: Callable[[str], Instance]) -> tuple[Instance, Instance]:
    """One that leads, and one that stands by."""
    leading = start("leading")
    until(leading.leads, "the first leads", 60)
    standing_by = start("standing-by")
    until(lambda: standing_by.get("healthz")[0] == 200, "the second is healthy", 60)
    return leading, standing_by


def lease(orders: Orders) -> dict[str, Any]:
    found: dict[str, Any] = orders.hub.get("lease", LEASE, "-n", orders.namespace)["spec"]
    return found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_other_takes_over_when_the_leader_ends(orders: Orders, pair: tuple[Instance, Instance], how: signal.Signals) -> None:
    leading, standing_by = pair
    orders.apply("before")
    until(lambda: leading.events("before"), "the leader asks for what is to be done")
    until(lambda: standing_by.said("leads; this one stands by"), "the second stands by")
    assert not standing_by.leads()
    until(lambda: leading.get("healthz")[0] == standing_by.get("healthz")[0] == 200, "both are healthy")
    assert standing_by.events("before") == []
    leading.end(how)
    assert (how == signal.SIGTERM) == leading.said("released the leader Lease")
    orders.apply("after")
    until(lambda: standing_by.events("after") and standing_by.events("before"), "the other asks for all that is to be done", 60)
    until(standing_by.leads, "it leads")
    assert lease(orders)["leaseTransitions"] == 2


def test_a_leader_whose_lease_was_taken_stands_by_and_leads_again(orders: Orders, start: Callable[[str], Instance]) -> None:
    instance = start("only")
    until(instance.leads, "it leads", 60)
    taken = {"spec": {"holderIdentity": "another", "leaseTransitions": 7, "leaseDurationSeconds": 3600}}
    orders.hub.kubectl("patch", "lease", LEASE, "-n", orders.namespace, "--type=merge", "-p", json.dumps(taken))
    until(lambda: instance.said("another event source leads") and not instance.leads(), "it has noticed", 60)
    orders.apply("meanwhile")
    passed = {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}
    orders.hub.kubectl("patch", "lease", LEASE, "-n", orders.namespace, "--type=merge", "-p", json.dumps(passed))
    until(instance.leads, "it leads again, once the time of the other has passed", 60)
    until(lambda: instance.events("meanwhile"), "nothing of what happened meanwhile is lost")
    assert lease(orders)["leaseTransitions"] == 8
