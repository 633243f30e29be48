"""More than an engine can do at once: a thousand webhooks for sixty orders, by the whole event source with runs in this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import read_all

from ..support.orders import Orders, order
from ..support.sources import WebhookEngine

ORDERS, WEBHOOKS, SENDERS = 60, 1000, 20
MAX_IN_FLIGHT = 2
# So few in a run that it ends long before its locks expire: nothing renews them here.
SETTINGS = {"batch_size": 10, "max_in_flight": MAX_IN_FLIGHT}


@pytest.fixture
def engine(quick_hub: Access, tmp_path: Path) -> Iterator[WebhookEngine]:
    with fresh_namespace(quick_hub) as namespace:
        orders = Orders(quick_hub, namespace, tmp_path)
        with WebhookEngine(orders, **SETTINGS).running() as engine:
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
        answers = Counter(senders.map(lambda number: engine.post("create-hosted-cluster", ordered[number % count]), range(WEBHOOKS)))
        assert [answer for answer in created.result() if isinstance(answer, KubeError)] == []
    assert answers == {202: WEBHOOKS}

    def phases() -> Counter[str | None]:
        return Counter(item.get("status", {}).get("phase") for item in kube.list_all(orders.api_version, "ClusterOrder", orders.namespace))

    until(are_ready, "all are Ready", 1800)
    until(lambda: phases() == {"Ready": count}, "all of them are of this test")
    locks = [lock for lock in read_all(kube) if lock.namespace == orders.namespace]
    assert {lock.token for lock in locks} == {1}, "each was run once"
    assert len(locks) == count
    assert 0 < max(in_flight) <= MAX_IN_FLIGHT
    assert sum(event["action"] == "provision" for event in engine.events) < count, "orders are batched"


def test_a_source_that_ends_leaves_no_pending_task(quick_hub: Access, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also in the middle of a burst: whatever it has started ends with it."""
    with fresh_namespace(quick_hub) as namespace:
        orders = Orders(quick_hub, namespace, tmp_path)
        engine = WebhookEngine(orders, **SETTINGS)
        with engine.running():
            ordered = [order(orders.namespace, f"load-{number}") for number in range(20)]
            orders.kube.in_parallel(orders.kube.create, ordered)
            assert {engine.post("create-hosted-cluster", item) for item in ordered} == {202}
        assert not asyncio.all_tasks(engine.loop)
        orders.clean_up()
    assert "was destroyed" not in caplog.text
