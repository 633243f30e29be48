# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Searches a hub from time to time for what deleted orders have left behind: `orphans` finds it, `sweep` reports and removes it."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import timedelta
from typing import TypeVar

from ..infrastructure.address_pools import read_pools
from ..infrastructure.claim_record import read_records
from ..orders.orphans import KINDS, find_orphans
from ..orders.run import Run
from ..orders.sweep import Sweep
from .hub_cache import HubCache

log = logging.getLogger(__name__)

Result = TypeVar("Result")

SWEEP_SECONDS = 300.0  # between two searches


class OrphanSearch:
    """One for a hub. What it finds is kept for `grace_seconds`, with 0 indefinitely. Requests are sent by threads of `pool`."""

    def __init__(self, run: Run, cache: HubCache, pool: Executor, grace_seconds: int) -> None:
        self._hub = run
        self._cache = cache
        self._pool = pool
        self._sweep = Sweep(run, timedelta(seconds=grace_seconds) if grace_seconds else None)
        self.counts = dict.fromkeys(KINDS, 0)  # at the last search, by kind

    async def run(self) -> None:
        """Search until cancelled. Lists namespaces, pools and claims each time; the rest is cached."""
        kube, names = self._hub.kube, self._hub.names
        while True:
            try:
                namespaces = await self._in_pool(lambda: kube.list_all("v1", "Namespace"))
                pools = await self._in_pool(lambda: read_pools(kube, names.site_namespace))
                claims = await self._in_pool(lambda: read_records(kube, names.site_namespace))
                orders = (item for _key, item in self._cache.orders())
                found = find_orphans(names, orders, namespaces, self._cache.leases(), pools, claims)
                confirmed = await self._in_pool(functools.partial(self._sweep.sweep, found))
                self.counts = dict.fromkeys(KINDS, 0) | Counter(orphan.kind for orphan in confirmed)
            except Exception as error:  # noqa: BLE001 - no fault of this search ends the work on orders
                log.warning("the hub was not searched for what deleted orders left behind: %s", error)
            await asyncio.sleep(SWEEP_SECONDS)

    async def _in_pool(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
