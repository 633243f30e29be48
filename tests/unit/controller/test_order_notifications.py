"""The reports of transitions: in their order, counted when the rules engine has taken them, and never waited for by a worker."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock, call

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.order_notifications import OrderNotifications
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import ready_order

KEY, OLD = Key("orders", "demo"), Key("orders", "old")


def test_events_are_handed_over_in_their_order_and_counted_when_the_engine_has_taken_them() -> None:
    async def scenario() -> None:
        is_free, taken, metrics = asyncio.Event(), asyncio.Queue[Object](), Mock()

        async def emit(event: Object) -> None:
            await is_free.wait()
            await taken.put(event)

        notifications = OrderNotifications(emit, metrics)
        task = asyncio.create_task(notifications.send())
        notifications.listed(OLD, ready_order())
        notifications.reconciled(OLD, ready_order())  # it was Ready before
        notifications.reconciled(KEY, ready_order())
        notifications.reconciled(KEY, ready_order())
        notifications.deleted(KEY, ready_order())
        notifications.forget(KEY)
        notifications.reconciled(KEY, ready_order())  # another order of this name
        await asyncio.sleep(0.01)
        metrics.emitted.assert_not_called()
        is_free.set()
        async with asyncio.timeout(60):
            events = [await taken.get() for _each in range(3)]
        await asyncio.sleep(0.01)
        assert [(event["action"], event["order"]["name"]) for event in events] == [(each, "demo") for each in ("ready", "deleted", "ready")]
        assert taken.empty() and metrics.emitted.call_args_list == [call("ready"), call("deleted"), call("ready")]
        task.cancel()

    asyncio.run(scenario())
