"""Kills of playbooks, engines and the API server at random moments: no order is lost, stuck, or run for a second cluster."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import ProcessStatus, Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict, KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import API_VERSION, SITE_NAMESPACE, lease_name, read_all

from ..support.engines import Engine, running
from ..support.orders import GROUP, Object, Orders

ROUNDS = 2  # of each test, times the factor of `make soak`
OUTAGE_SECONDS = 12  # longer than a request is retried
CUTS = 4  # a round
HYPERSHIFT = "hypershift.openshift.io/v1beta1"
PAST = "2020-01-01T00:00:00.000000Z"
dice = random.Random()  # noqa: S311 - each run tries other moments


class Site:
    """A hub, an engine on it, and orders that are created and deleted."""

    def __init__(self, sandbox: Sandbox, orders: Orders, engine: Engine) -> None:
        self.sandbox = sandbox
        self.orders = orders
        self.engine = engine
        self.kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
        self.wanted: set[str] = set()
        self._created: dict[str, set[str]] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._count_clusters, daemon=True).start()

    def _count_clusters(self) -> None:
        """Collect the uid of every HostedCluster by its order."""
        while not self._ended.wait(0.3):
            try:
                for item in self.kube.list_all(HYPERSHIFT, "HostedCluster"):
                    self._created.setdefault(item["metadata"]["name"], set()).add(item["metadata"]["uid"])
            except KubeError:
                continue

    def change(self, prefix: str, number: int) -> None:
        """Create two orders, and in every second round delete an earlier one."""
        for letter in "ab":
            name = f"{prefix}-{number}{letter}"
            self.orders.apply(name, nodes={"fc430": 1})
            self.wanted.add(name)
        if number % 2:
            name = f"{prefix}-{number - 1}a"
            self.orders.hub.kubectl("delete", self.orders.kind, name, "-n", self.orders.namespace, "--wait=false")
            self.wanted.discard(name)

    def expire_locks_of_ended_runs(self) -> None:
        """Do what a minute does: a lock whose run has ended expires. The holder's name has the process id."""
        # Locks first: a run that begins afterwards has none of them.
        locks = read_all(self.kube)
        running_ids = {str(process) for process in self.engine.playbooks()}
        for lock in locks:
            run = re.search(r"-local-(\d+)-", lock.holder)
            if run and run[1] not in running_ids:
                name = lease_name(lock.namespace, lock.order)
                metadata = {"name": name, "namespace": SITE_NAMESPACE, "resourceVersion": lock.version}
                with contextlib.suppress(Conflict):  # its run has released it, and another one may hold it
                    self.kube.patch({"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata}, {"spec": {"renewTime": PAST}})

    def api_server(self) -> ProcessStatus:
        return next(process for process in self.sandbox.status() if (process.owner, process.name) == ("hub", "kube-apiserver"))

    def items(self) -> list[Object]:
        return self.kube.list_all(f"{GROUP}/v1alpha1", "ClusterOrder", self.orders.namespace)

    def phases(self) -> dict[str, str]:
        statuses = {item["metadata"]["name"]: item.get("status") or {} for item in self.items()}
        return {name: "Failed" if "failure" in status else status.get("phase", "") for name, status in statuses.items()}

    def is_running(self) -> bool:
        self.expire_locks_of_ended_runs()
        return bool(self.engine.playbooks())

    def is_settled(self) -> bool:
        self.expire_locks_of_ended_runs()
        return self.phases() == dict.fromkeys(self.wanted, "Ready")

    def check(self) -> None:
        until(self.is_settled, f"every order is Ready or deleted; the log is {self.engine.log}", 900)
        clusters = Counter(item["metadata"]["name"] for item in self.kube.list_all(HYPERSHIFT, "HostedCluster"))
        assert set(clusters) == self.wanted
        assert {name: len(found) for name, found in self._created.items() if len(found) > 1} == {}, "a cluster was created twice"

    def end(self) -> None:
        self._ended.set()


@pytest.fixture(scope="module")
def site(new_sandbox: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    sandbox, folder = new_sandbox(status_only=True), tmp_path_factory.mktemp("chaos")
    hub = Access(sandbox.kubeconfig())
    with fresh_namespace(hub) as namespace, running(Engine(hub, folder, source={"start_timeout": 20})) as engine:
        site = Site(sandbox, Orders(hub, namespace, Path(folder)), engine)
        yield site
        site.end()
    sandbox.down()


def test_a_playbook_killed_at_any_moment(site: Site, soak: int) -> None:
    for number in range(ROUNDS * soak):
        site.change("playbook", number)
        until(lambda: site.is_running() or site.is_settled(), "a run is under way, or was", 300)
        time.sleep(dice.uniform(0, 4))
        for process in site.engine.playbooks():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
    site.check()


def test_the_engine_killed_at_any_moment(site: Site, soak: int) -> None:
    last = ROUNDS * soak - 1
    for number in range(last + 1):
        site.change("engine", number)
        time.sleep(dice.uniform(0, 6))
        site.engine.kill()
        site.engine.start(wait=number == last)
        if number < last:
            time.sleep(dice.uniform(0, 8))  # the next kill may come while it starts
    site.check()


def is_ready(kube: Kube) -> bool:
    try:
        kube.readyz()
    except KubeError:
        return False
    return True


def test_the_api_server_away_at_any_moment(site: Site, soak: int) -> None:
    for number in range(ROUNDS * soak):
        site.change("server", number)
        time.sleep(dice.uniform(0, 4))
        os.kill(site.api_server().pid, signal.SIGKILL)
        until(lambda: not site.api_server().running, "the sandbox reports its end", 30)
        time.sleep(OUTAGE_SECONDS)
        assert site.engine.post("create-hosted-cluster", {"metadata": {"namespace": site.orders.namespace, "name": "server-0b"}}) == 202
        site.sandbox.up()
        until(lambda: is_ready(site.orders.hub.kube), "the server is back")
    assert site.engine.is_running
    site.check()
    until(site.engine.is_ready, "every watch has come back", 60)


def test_a_webhook_cut_off_at_any_byte_at_any_moment(site: Site, soak: int) -> None:
    for number in range(ROUNDS * soak):
        site.change("webhook", number)
        for _cut in range(CUTS):
            time.sleep(dice.uniform(0, 1.5))
            order = dice.choice(site.items())
            endpoint = "delete-hosted-cluster" if "deletionTimestamp" in order["metadata"] else "create-hosted-cluster"
            site.engine.cut_off(endpoint, order, dice.random(), dice.uniform(0, 0.2))
            if dice.random() < 0.5:  # the sender tries again
                assert site.engine.post(endpoint, order) == 202
    site.check()
    assert site.engine.is_running and site.engine.metric("openfleet_orders_webhook_responses_total", code="499") > 0
    # Nothing was killed, so one run created each cluster.
    left = [name for name in site.wanted if name.startswith("webhook-")]
    assert {name: site.orders.lease(name)["leaseTransitions"] for name in left} == dict.fromkeys(left, 1)


def test_a_second_engine_takes_over_when_the_machine_of_the_first_dies(site: Site, tmp_path: Path) -> None:
    first, second = site.engine, Engine(site.orders.hub, tmp_path, source={"start_timeout": 20})
    try:
        second.start(wait=False)
        until(lambda: second.said("this one stands by"), "the second stands by")
        site.change("machine", 0)
        until(lambda: site.is_running() or site.is_settled(), "a run is under way, or was", 300)
        first.stop()
        site.engine = second
        site.change("machine", 1)
        site.check()
        until(second.is_ready, "the second leads")
        assert "provision" in second.actions(f"{site.orders.namespace}/machine-1b")
    finally:
        second.stop()
