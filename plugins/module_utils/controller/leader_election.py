# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Leader election: of several event sources for a hub one leads, and the others stand by until its Lease is free.

Two leaders for a moment are harmless: each action is decided on the hub's own state, and its run takes the order's lock. So a leader that
cannot renew because the hub is unreachable continues once the hub recovers, unless another source leads by then.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from ..kube.client import Kube
from ..kube.errors import KubeError
from ..lock import lease
from ..lock.lease import Lock, LockHeld, LockLost
from .informer import in_thread
from .work_queue import sentence

log = logging.getLogger(__name__)

DURATION_SECONDS = 15
RENEW_SECONDS = 5.0
POLL_SECONDS = 2.0
RELEASE_SECONDS = 10.0
UNKNOWN_LEADER = "the leader is not known yet"


class LeaderElector:
    """Elects the leader for `name`. `problem` is why the leader is not known; empty where it is."""

    def __init__(self, kube: Kube, site_namespace: str, name: str) -> None:
        self.problem = UNKNOWN_LEADER
        self._kube = kube
        self._site = site_namespace
        self._name = name
        self._holder = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._logged = ""

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the work, which has no end, while this process leads, and again each time it becomes the leader."""
        while True:
            lock = await self._elected()
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._renew(lock))
                    tasks.create_task(work())
            except BaseExceptionGroup as errors:
                # Not by except*, which the parser of ansible-test sanity does not know.
                lost, others = errors.split(LockLost)
                if lost is None or others is not None:
                    raise
                log.warning("another event source leads: %s", lost.exceptions[0])
            finally:
                await self._release(lock)

    async def _elected(self) -> Lock:
        while True:
            try:
                lock = await in_thread(self._acquire)
            except LockHeld as held:
                self.problem = ""
                self._log(f"{held.state.holder} leads; this one stands by")
            except KubeError as error:
                self.problem = f"{UNKNOWN_LEADER}: {sentence(error)}"
                self._log(self.problem)
            else:
                self._log(f"{self._holder} leads")
                return lock
            await asyncio.sleep(POLL_SECONDS)

    def _acquire(self) -> Lock:
        return lease.acquire(self._kube, self._site, self._name, self._holder, DURATION_SECONDS, kind=lease.LEADER, site=self._site)

    async def _renew(self, lock: Lock) -> None:
        """Renew until another source leads."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                lock = await in_thread(partial(lease.renew, self._kube, lock))
            except LockLost:
                raise
            except KubeError as error:
                log.warning("the leader Lease could not be renewed: %s", sentence(error))

    async def _release(self, lock: Lock) -> None:
        """Release the Lease, so that the next leader need not wait for its expiry."""
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                if await in_thread(partial(lease.release, self._kube, lock)):
                    self._log(f"{self._holder} released the leader Lease")
        except (KubeError, TimeoutError) as error:
            log.warning("the leader Lease could not be released: %s", sentence(error))

    def _log(self, text: str) -> None:
        if text != self._logged:
            log.info("%s", text)
        self._logged = text
