"""Whatever is killed, and whenever: no order is lost, stuck, or done twice. Ten rounds of each; OPENFLEET_CHAOS_ROUNDS changes that."""

from __future__ import annotations

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
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.engines import Engine, running
from ..support.orders import GROUP, Object, Orders

ROUNDS = int(os.environ.get("OPENFLEET_CHAOS_ROUNDS", "10"))
OUTAGE_SECONDS = 20
CUTS = 4  # a round
HYPERSHIFT = "hypershift.openshift.io/v1beta1"
PAST = "2020-01-01T00:00:00.000000Z"
dice = random.Random()  # noqa: S311 - another moment every time, that is the point


class Site:
    """A hub, an engine on it, and orders that come and go."""

    def __init__(self, sandbox: Sandbox, orders: Orders, engine: Engine) -> None:
        self.sandbox = sandbox
        self.orders = orders
        self.engine = engine
        self.kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
        self.wanted: set[str] = set()
        self._made: dict[str, set[str]] = {}
        self._over = threading.Event()
        threading.Thread(target=self._count_clusters, daemon=True).start()

    def _count_clusters(self) -> None:
        """Every HostedCluster that is ever seen, by its order."""
        while not self._over.wait(0.3):
            try:
                for item in self.kube.list_all(HYPERSHIFT, "HostedCluster"):
                    self._made.setdefault(item["metadata"]["name"], set()).add(item["metadata"]["uid"])
            except KubeError:
                continue

    def change(self, prefix: str, number: int) -> None:
        """Two orders more, and one of the earlier ones less."""
        for letter in "ab":
            name = f"{prefix}-{number}{letter}"
            self.orders.apply(name, nodes={"fc430": 1})
            self.wanted.add(name)
        if number % 2:
            name = f"{prefix}-{number - 1}a"
            self.orders.hub.kubectl("delete", self.orders.kind, name, "-n", self.orders.namespace, "--wait=false")
            self.wanted.discard(name)

    def let_locks_of_the_dead_run_out(self) -> None:
        """What a minute would do: of a lock whose run is no more, the time passes. A holder's name has the process in it."""
        leases = self.kube.list_all("coordination.k8s.io/v1", "Lease", self.orders.namespace)
        alive = {str(process) for process in self.engine.playbooks()}
        for lease in leases:
            run = re.search(r"-local-(\d+)-", lease["spec"].get("holderIdentity") or "")
            if run and run[1] not in alive:
                self.orders.patch_lease({"renewTime": PAST}, lease["metadata"]["name"].removeprefix("cluster-").removesuffix("-lock"))

    def api_server(self) -> ProcessStatus:
        return next(process for process in self.sandbox.status() if (process.owner, process.name) == ("hub", "kube-apiserver"))

    def items(self) -> list[Object]:
        return self.kube.list_all(f"{GROUP}/v1alpha1", "ClusterOrder", self.orders.namespace)

    def phases(self) -> dict[str, str]:
        statuses = {item["metadata"]["name"]: item.get("status") or {} for item in self.items()}
        return {name: "Failed" if "failure" in status else status.get("phase", "") for name, status in statuses.items()}

    def is_at_work(self) -> bool:
        self.let_locks_of_the_dead_run_out()
        return bool(self.engine.playbooks())

    def all_is_well(self) -> bool:
        self.let_locks_of_the_dead_run_out()
        return self.phases() == dict.fromkeys(self.wanted, "Ready")

    def check(self) -> None:
        until(self.all_is_well, f"every order is Ready, or gone; the log is {self.engine.log}", 900)
        clusters = Counter(item["metadata"]["name"] for item in self.kube.list_all(HYPERSHIFT, "HostedCluster"))
        assert set(clusters) == self.wanted
        assert {name: len(found) for name, found in self._made.items() if len(found) > 1} == {}, "a cluster was made twice"

    def end(self) -> None:
        self._over.set()


@pytest.fixture(scope="module")
def site(new_sandbox: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    sandbox, folder = new_sandbox(status_only=True), tmp_path_factory.mktemp("chaos")
    hub = Access(sandbox.kubeconfig())
    with fresh_namespace(hub) as namespace, running(Engine(hub, folder, source={"start_timeout": 20})) as engine:
        site = Site(sandbox, Orders(hub, namespace, Path(folder)), engine)
        yield site
        site.end()
    sandbox.down()


def test_a_playbook_killed_at_any_moment(site: Site) -> None:
    for number in range(ROUNDS):
        site.change("playbook", number)
        until(site.is_at_work, "a run is under way", 120)
        time.sleep(dice.uniform(0, 4))
        for process in site.engine.playbooks():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
    site.check()


def test_the_engine_killed_at_any_moment(site: Site) -> None:
    for number in range(ROUNDS):
        site.change("engine", number)
        time.sleep(dice.uniform(0, 6))
        site.engine.kill()
        site.engine.start(wait=number == ROUNDS - 1)
        if number < ROUNDS - 1:
            time.sleep(dice.uniform(0, 8))  # it is killed again while it starts
    site.check()


def test_the_api_server_away_at_any_moment(site: Site) -> None:
    for number in range(ROUNDS):
        site.change("server", number)
        time.sleep(dice.uniform(0, 4))
        os.kill(site.api_server().pid, signal.SIGKILL)
        until(lambda: not site.api_server().running, "the sandbox has noticed it", 30)
        time.sleep(OUTAGE_SECONDS)
        assert site.engine.post("create-hosted-cluster", {"metadata": {"namespace": site.orders.namespace, "name": "server-0b"}}) == 202
        site.sandbox.up()
        until(lambda: site.orders.hub.kubectl("get", "--raw=/readyz", check=False).returncode == 0, "the server is back")
    assert site.engine.is_running
    site.check()
    until(site.engine.is_ready, "every watch has come back", 60)


def test_a_webhook_cut_off_at_any_byte_at_any_moment(site: Site) -> None:
    for number in range(ROUNDS):
        site.change("webhook", number)
        for _cut in range(CUTS):
            time.sleep(dice.uniform(0, 1.5))
            order = dice.choice(site.items())
            endpoint = "delete-hosted-cluster" if "deletionTimestamp" in order["metadata"] else "create-hosted-cluster"
            site.engine.cut_off(endpoint, order, dice.random(), dice.uniform(0, 0.2))
            if dice.random() < 0.5:  # the sender tries again
                assert site.engine.post(endpoint, order) == 202
    site.check()
    assert site.engine.is_running and site.engine.metric("openfleet_orders_webhook_answers_total", code="499") > 0
    # Nothing was killed, so each was carried out by one run.
    left = [name for name in site.wanted if name.startswith("webhook-")]
    assert {name: site.orders.lease(name)["leaseTransitions"] for name in left} == dict.fromkeys(left, 1)


def test_a_second_engine_takes_over_when_the_machine_of_the_first_dies(site: Site, tmp_path: Path) -> None:
    first, second = site.engine, Engine(site.orders.hub, tmp_path, source={"start_timeout": 20})
    try:
        second.start(wait=False)
        until(lambda: second.said("this one stands by"), "the second stands by", 120)
        site.change("machine", 0)
        until(site.is_at_work, "a run is under way", 120)
        first.stop()
        site.engine = second
        site.change("machine", 1)
        site.check()
        assert second.is_ready() and "provision" in second.actions(f"{site.orders.namespace}/machine-1b")
    finally:
        second.stop()
