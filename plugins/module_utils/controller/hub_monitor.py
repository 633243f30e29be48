# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the status of hubs current: what their agents report, and which of them do not report. It never changes reservations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import timedelta

from ..common.types import Object
from ..fleet.hub_state import AgentState, derive_hub_status, heartbeat_interval, is_not_reporting
from ..fleet.kinds import API_VERSION, HUB
from ..fleet.swap import swap_status
from ..kube.client import Kube
from ..kube.errors import NotFound
from ..kube.event_recorder import NORMAL, WARNING, Event, EventRecorder
from .fleet_cache import FleetCache
from .work_queue import Key, WorkQueue

log = logging.getLogger(__name__)

WORKERS = 4
A_MOMENT = 0.1  # after a time limit, so that it has passed


class HubMonitor:
    """One for a home cluster. A failure of one hub affects no other."""

    def __init__(self, home: Kube, cache: Callable[[], FleetCache], hub_timeout: timedelta, pool: Executor) -> None:
        self._home = home
        self._cache = cache
        self._hub_timeout = hub_timeout
        self._pool = pool
        self._events = EventRecorder(home)
        self.queue = WorkQueue(self._reconcile)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        for _worker in range(WORKERS):
            tasks.create_task(self.queue.work())

    def changed(self, hub: str) -> None:
        """The hub, its heartbeat or its report changed."""
        self.queue.add_coalesced(Key("", hub))

    async def _reconcile(self, key: Key) -> None:
        cache = self._cache()
        item = cache.hub(key.name)
        if item is None:
            self.queue.forget(key)
            return
        agent, now = cache.agent(key.name), cache.now()
        self._wait(key, agent)
        if not derive_hub_status(item.get("status") or {}, agent, now, self._hub_timeout):
            return

        def change(hub: Object) -> tuple[Object, Object]:
            return derive_hub_status(hub.get("status") or {}, agent, now, self._hub_timeout), hub

        def write() -> None:
            try:
                before = swap_status(self._home, lambda: self._home.get(API_VERSION, HUB, key.name), change, item)
            except NotFound:  # deleted meanwhile
                return
            self._report(before, agent.stopped_reporting(now, self._hub_timeout), agent)

        await asyncio.get_running_loop().run_in_executor(self._pool, write)

    def _wait(self, key: Key, agent: AgentState) -> None:
        """Until the heartbeat may be written again, or is too old."""
        cache = self._cache()
        if agent.heartbeat is None:
            return
        age = cache.now() - agent.heartbeat
        times = [limit - age for limit in (heartbeat_interval(self._hub_timeout), self._hub_timeout) if limit > age]
        if times:
            self.queue.add_after(key, min(times).total_seconds() + A_MOMENT)

    def _report(self, before: Object, stopped: bool, agent: AgentState) -> None:
        if is_not_reporting(before.get("status") or {}) == stopped:
            return
        name = before["metadata"]["name"]
        text = "The agent of the hub does not report" if stopped else "The agent of the hub reports again"
        self._events.record(before, [Event("HubLost" if stopped else "HubBack", text, WARNING if stopped else NORMAL)])
        log.warning("hub %s: %s; last heartbeat %s", name, text, agent.heartbeat)
