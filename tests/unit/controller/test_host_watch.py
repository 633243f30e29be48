"""What the event source reads of hosts: nothing for a site without, and no more of an order than its events ask for."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.host_watch import HostWatch
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names

KEY, NAMES = Key("team", "demo"), Names()


def order(ready: bool | None = True, **metadata: Any) -> Object:
    """With hosts, or for None without."""
    part = {"part": "hosts", "step": "provision", "ready": ready, "reason": "HostsClaimed"}
    status = {} if ready is None else {"infrastructure": [part]}
    metadata = {"namespace": "team", "name": "demo", "uid": "1", "resourceVersion": "1", "generation": 1, **metadata}
    return {"apiVersion": NAMES.api_version, "kind": "ClusterOrder", "metadata": metadata, "spec": {"templateID": "t"}, "status": status}


def parsed(**options: Any) -> ClusterOrder:
    return ClusterOrder.from_object(order(**options), NAMES)


def watch(kube: Mock, enqueue: Mock) -> HostWatch:
    return HostWatch(kube, kube, NAMES, enqueue)


def test_nothing_is_read_until_an_order_has_hosts_and_nothing_is_followed_where_the_site_has_no_agents() -> None:
    kube = Mock()

    async def main() -> None:
        loop, is_read = asyncio.get_running_loop(), asyncio.Event()
        kube.find.side_effect = lambda *_name: loop.call_soon_threadsafe(is_read.set)  # the site has no settings
        hosts = watch(kube, Mock())
        task = asyncio.create_task(hosts.run())
        hosts.order_changed(KEY, order(ready=None))
        await asyncio.sleep(0.01)
        assert kube.method_calls == []
        hosts.order_changed(KEY, order())
        async with asyncio.timeout(60):
            await is_read.wait()
        task.cancel()
        assert hosts.informer is None

    asyncio.run(main())
    assert [call[0] for call in kube.method_calls] == ["find"]


def test_a_suspicion_is_kept_until_the_order_reports_its_hosts_and_is_asked_for_once() -> None:
    enqueue = Mock()
    hosts = watch(Mock(), enqueue)
    hosts.suspect("1")
    enqueue.assert_not_called()
    assert not hosts.take(parsed(ready=None)) and not hosts.take(parsed(ready=False)), "a run is on its way"
    assert hosts.take(parsed()) and not hosts.take(parsed())
    hosts.order_changed(KEY, order())
    hosts.suspect("1")
    enqueue.assert_called_once_with(KEY)
    hosts.forget(KEY)
    assert not hosts.take(parsed())
    hosts.suspect("1")
    assert not hosts.take(parsed(deletionTimestamp="2026-01-01T00:00:00Z")) and not hosts.take(parsed())
