"""More than an engine can do at once: a thousand webhooks for sixty orders, by the whole event source with runs in this process."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import serve
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError

from ..support.orders import Object, Orders, order
from ..support.sources import InProcessEngine

ORDERS, WEBHOOKS, SENDERS = 60, 1000, 20
MAX_IN_FLIGHT = 2
BATCH = 10  # few enough that a run ends long before its locks expire, since nothing renews them here


class WebhookEngine(InProcessEngine):
    """The whole event source: with its webhook server, and as the leader."""

    def __init__(self, orders: Orders) -> None:
        self._url = f"http://127.0.0.1:{(port := free_port())}"
        webhook = {"port": port, "rate_limit": 10000}
        self._arguments = {"batch_size": BATCH, "max_in_flight": MAX_IN_FLIGHT, "leader_namespace": orders.namespace, "webhook": webhook}
        self._senders = urllib3.PoolManager(maxsize=SENDERS, retries=False)
        super().__init__(orders, **self._arguments)

    async def put(self, event: Object) -> None:
        await self._put(event)

    async def _serve(self) -> None:
        await serve(self, self._options | self._arguments)

    def _problems(self) -> list[str]:
        try:
            return (
                [] if self.metric("openfleet_orders_leads") == 1 and self._get("healthz").status == 200 else ["it does not follow the hub"]
            )
        except urllib3.exceptions.HTTPError as error:
            return [str(error)]

    def _get(self, path: str) -> urllib3.BaseHTTPResponse:
        return self._senders.request("GET", f"{self._url}/{path}", timeout=60)

    def metric(self, name: str) -> float:
        """The value of a metric, with its labels in the name; 0 while it has none."""
        lines = self._get("metrics").data.decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), 0.0)

    def post(self, item: Object) -> int:
        headers = {"Content-Type": "application/json"}
        body = json.dumps(item).encode()
        return self._senders.request("POST", f"{self._url}/create-hosted-cluster", body=body, headers=headers, timeout=300).status


@pytest.fixture
def engine(quick_hub: Access, tmp_path: Path) -> Iterator[WebhookEngine]:
    with fresh_namespace(quick_hub) as namespace:
        orders = Orders(quick_hub, namespace, tmp_path)
        with WebhookEngine(orders).running() as engine:
            yield engine
        orders.clean_up()


def test_a_thousand_webhooks_are_all_answered_and_every_order_runs_once_and_becomes_ready(engine: WebhookEngine, soak: int) -> None:
    orders, kube, count = engine.orders, engine.orders.kube, ORDERS * soak
    ordered = [order(orders.namespace, f"load-{number}") for number in range(count)]
    in_flight: list[float] = []

    def are_ready() -> bool:
        in_flight.append(engine.metric("openfleet_orders_runs_in_flight"))
        return engine.metric('openfleet_orders_phase{phase="Ready"}') >= count

    with ThreadPoolExecutor(SENDERS + 1) as senders:
        created = senders.submit(kube.in_parallel, kube.create, ordered)
        # A webhook whose order exists already, or is just being created.
        answers = Counter(senders.map(lambda number: engine.post(ordered[number % count]), range(WEBHOOKS)))
        assert [answer for answer in created.result() if isinstance(answer, KubeError)] == []
    assert answers == {202: WEBHOOKS}

    until(are_ready, "all are Ready", 1800)
    ready = kube.list_all(orders.api_version, "ClusterOrder", orders.namespace)
    assert Counter(item["status"]["phase"] for item in ready) == {"Ready": count}
    leases = kube.list_all("coordination.k8s.io/v1", "Lease", orders.namespace, "openfleet.clusters/lock=order")
    assert {lease["spec"]["leaseTransitions"] for lease in leases} == {1}, "each was run once"
    assert len(leases) == count
    assert 0 < max(in_flight) <= MAX_IN_FLIGHT
    assert sum(event["action"] == "provision" for event in engine.events) < count, "orders are batched"


def test_a_source_that_ends_leaves_no_pending_task(quick_hub: Access, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also in the middle of a burst: whatever it has started ends with it."""
    with fresh_namespace(quick_hub) as namespace:
        orders = Orders(quick_hub, namespace, tmp_path)
        engine = WebhookEngine(orders)
        with engine.running():
            ordered = [order(orders.namespace, f"load-{number}") for number in range(20)]
            orders.kube.in_parallel(orders.kube.create, ordered)
            assert {engine.post(item) for item in ordered} == {202}
        assert not asyncio.all_tasks(engine.loop)
        orders.clean_up()
    assert "was destroyed" not in caplog.text
