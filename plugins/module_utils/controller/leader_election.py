# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Of several event sources for a hub one leads, and the others stand by until its Lease is free.

Two that lead for a moment do no harm: each action is decided on what the hub says, and its run takes the order's lock. So a leader that
cannot renew, because the hub is away, goes on as soon as the hub is back, unless another has taken its place.
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
GIVE_BACK_SECONDS = 10.0
NOT_KNOWN = "who leads is not known yet"


class LeaderElector:
    """The place of the leader, for a `name` that stands for what is led. `problem` is why it is not known who has it, if it is not."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self.problem = NOT_KNOWN
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._holder = f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._told = ""

    async def lead(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work, which has no end, while this process leads, and anew each time it comes to lead."""
        while True:
            lock = await self._won()
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._keep(lock))
                    tasks.create_task(work())
            except BaseExceptionGroup as errors:
                # Not by except*, which the sanity tests' parser does not know.
                lost, others = errors.split(LockLost)
                if lost is None or others is not None:
                    raise
                log.warning("another event source leads now: %s", lost.exceptions[0])
            finally:
                await self._give_back(lock)

    async def _won(self) -> Lock:
        while True:
            try:
                lock = await in_thread(self._acquire)
            except LockHeld as held:
                self.problem = ""
                self._tell(f"{held.state.holder} leads; this one stands by")
            except KubeError as error:
                self.problem = f"{NOT_KNOWN}: {sentence(error)}"
                self._tell(self.problem)
            else:
                self._tell(f"{self._holder} leads")
                return lock
            await asyncio.sleep(POLL_SECONDS)

    def _acquire(self) -> Lock:
        return lease.acquire(self._kube, self._namespace, self._name, self._holder, DURATION_SECONDS, kind=lease.LEADER)

    async def _keep(self, lock: Lock) -> None:
        """Renew until somebody else has it."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                lock = await in_thread(partial(lease.renew, self._kube, lock))
            except LockLost:
                raise
            except KubeError as error:
                log.warning("the lead could not be renewed: %s", sentence(error))

    async def _give_back(self, lock: Lock) -> None:
        """So that the next need not wait for it to run out."""
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                if await in_thread(partial(lease.release, self._kube, lock)):
                    self._tell(f"{self._holder} has given back the lead")
        except (KubeError, TimeoutError) as error:
            log.warning("the lead could not be given back: %s", sentence(error))

    def _tell(self, text: str) -> None:
        if text != self._told:
            log.info("%s", text)
        self._told = text
