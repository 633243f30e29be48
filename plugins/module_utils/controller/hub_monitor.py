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
from ..fleet.compare_and_swap import swap_status
from ..fleet.hub_state import AgentState, derive_hub_status, heartbeat_interval, is_ready, ready_state
from ..fleet.kinds import API_VERSION, HUB
from ..kube.client import Kube
from ..kube.errors import NotFound
from ..kube.event_recorder import NORMAL, WARNING, Event, EventRecorder
from ..providers.model import TRUE, ConditionState
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
            self._report(before, ready_state(agent, now, self._hub_timeout), agent)

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

    def _report(self, before: Object, state: ConditionState, agent: AgentState) -> None:
        ready = state.status == TRUE
        if is_ready(before.get("status") or {}) == ready:
            return
        event = Event("HubReady", state.message, NORMAL) if ready else Event("HubNotReady", state.message, WARNING)
        self._events.record(before, [event])
        log.warning("hub %s: %s: %s; last heartbeat %s", before["metadata"]["name"], event.reason, state.message, agent.heartbeat)
