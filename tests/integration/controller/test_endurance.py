"""Orders come and go: what the event source needs does not grow with the orders that it has seen, in memory, files or threads.

`make test` does a few rounds. `make soak` goes on for as long as OPENFLEET_ENDURANCE_SECONDS says, and has a whole rules engine beside.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import WORKERS
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import retry_on_conflict
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE, acquire, release

from ..support.engines import Engine, running
from ..support.measured_source import MeasuredSource, Usage
from ..support.orders import Orders, order

SECONDS = float(os.environ.get("OPENFLEET_ENDURANCE_SECONDS") or 0)
ORDERS, ORDERS_OF_RUNS, ROUNDS = 25, 10, 2
NAMES = 2000  # the Lease of an order stays when the order is deleted, so their number is that of the names
# What the allocator and the pools of connections need more or less from one moment to the next, and what an order may
# leave behind.
SLACK = Usage(memory=4 * 2**20, files=4, threads=2)
BYTES_AN_ORDER = 4096
REFERENCES = 2 * WORKERS  # a worker that waits still knows its last order

pytestmark = pytest.mark.endurance


def within_budget(base: Usage, now: Usage, orders: int, slack: Usage = SLACK) -> list[str]:
    """What is over its budget after so many orders have come and gone."""
    allowed = Usage(base.memory + slack.memory + BYTES_AN_ORDER * orders, base.files + slack.files, base.threads + slack.threads)
    return [
        f"{name}: {getattr(now, name)} after {orders} orders, {getattr(base, name)} before"
        for name in ("memory", "files", "threads")
        if getattr(now, name) > getattr(allowed, name)
    ]


def test_what_grows_is_over_its_budget() -> None:
    base = Usage(50 * 2**20, 20, 10)
    assert within_budget(base, base, 0) == []
    assert within_budget(base, Usage(54 * 2**20, 24, 12), 0) == []
    assert within_budget(base, Usage(57 * 2**20, 24, 12), 1000) == []
    over = within_budget(base, Usage(57 * 2**20, 25, 13), 100)
    assert [line.partition(":")[0] for line in over] == ["memory", "files", "threads"]


def rounds(most: int) -> Iterator[int]:
    """So many, or for as long as `make soak` says."""
    deadline, number = time.monotonic() + SECONDS, 0
    while number < most or time.monotonic() < deadline:
        yield number
        number += 1


class Churn:
    """Creates, locks, changes and deletes the orders of one namespace, all of a round at once."""

    def __init__(self, orders: Orders, site: str) -> None:
        self._orders = orders
        self._site = site
        self._kube = orders.kube
        self.count = 0

    def items(self) -> list[Object]:
        return self._kube.list_all(self._orders.api_version, "ClusterOrder", self._orders.namespace)

    def create(self, count: int, template: str = "ocp_4_17_small") -> None:
        new = [order(self._orders.namespace, f"churn-{(self.count + number) % NAMES}") for number in range(count)]
        for item in new:
            item["spec"]["templateID"] = template
        self.count += count
        self._all(self._kube.create, new)

    def lock(self) -> None:
        """What a run leaves behind: a lock that was held and released."""
        namespace, kube = self._orders.namespace, self._kube
        self._all(lambda item: release(kube, acquire(kube, namespace, item["metadata"]["name"], "run", site=self._site)), self.items())

    def scale(self) -> None:
        patch = {"spec": {"nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 2}]}}
        self._all(lambda item: retry_on_conflict(lambda: self._kube.patch(item, patch, checked=False)), self.items())

    def delete(self) -> None:
        self._all(self._kube.delete, self.items())

    def _all(self, work: Callable[[Object], object], items: list[Object]) -> None:
        assert [answer for answer in self._kube.in_parallel(work, items) if isinstance(answer, KubeError)] == []

    def are_observed(self) -> bool:
        return all(item.get("status", {}).get("observedGeneration") == item["metadata"]["generation"] for item in self.items())

    def have_phase(self, phase: str) -> bool:
        return all(item.get("status", {}).get("phase") == phase for item in self.items())


def test_a_source_needs_no_more_the_more_orders_come_and_go(quick_hub: Access, tmp_path: Path) -> None:
    with fresh_namespace(quick_hub) as namespace, fresh_namespace(quick_hub) as site:
        churn = Churn(Orders(quick_hub, namespace, tmp_path), site)
        arguments = {"kubeconfig": str(quick_hub.kubeconfig), "site_namespace": site, "max_in_flight": 10**6}
        with MeasuredSource(arguments, namespace).running() as source:

            def one_round() -> Usage:
                churn.create(ORDERS)
                until(churn.are_observed, "all orders are observed")
                with urllib3.PoolManager() as senders:
                    for item in [*churn.items(), {"metadata": "wrong"}]:
                        assert senders.request("POST", f"{source.url}/create-hosted-cluster", json=item).status in (202, 400)
                churn.lock()
                churn.scale()
                until(churn.are_observed, "all orders are observed again")
                churn.delete()
                until(lambda: source.references() <= REFERENCES, "the source has forgotten the deleted orders", 60)
                return source.usage()

            base, before = one_round(), churn.count  # which opens the pools of connections and threads
            for _each in rounds(ROUNDS):
                now = one_round()
                assert within_budget(base, now, churn.count - before) == []


# The engine brings a Java machine, which takes memory as it likes, and a run of a playbook for each step: not for every
# day.
if SECONDS:

    def test_a_rules_engine_needs_no_more_the_more_orders_come_and_go(quick_hub: Access, tmp_path: Path) -> None:
        slack = Usage(memory=256 * 2**20, files=32, threads=16)
        with fresh_namespace(quick_hub) as namespace:
            orders = Orders(quick_hub, namespace, tmp_path)
            orders.template("finished", post_install="[]\n")
            churn = Churn(orders, SITE_NAMESPACE)
            with running(Engine(quick_hub, tmp_path)) as engine:

                def one_round() -> Usage:
                    churn.create(ORDERS_OF_RUNS, "acme.site.finished")
                    until(lambda: churn.have_phase("Ready"), f"all are Ready; the log is {engine.log}", 600)
                    churn.delete()
                    until(lambda: not churn.items(), f"all are deleted; the log is {engine.log}", 600)
                    until(lambda: engine.playbooks() == [], "the last run has ended", 120)
                    assert engine.process
                    return Usage.of(engine.process.pid)

                base, before = one_round(), churn.count
                for _each in rounds(1):
                    now = one_round()
                    assert within_budget(base, now, churn.count - before, slack) == []
            orders.clean_up()
