# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Holds the leases of many places for as long as it runs, and tells what changes in the bucket: who leads, state, decision, health.

Each place has two tasks: one leads or tries to, the other watches. Both do their requests in threads, over one client with a bounded
number of connections. Half of the threads are for leases alone, so a renewal never waits behind a poll. A poll is a conditional GET, which
sends no content when nothing has changed.

Whoever acts is told to stop when the time is over, even while a renewal hangs. When this ends, leases are given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..s3.errors import BadOptions, Fenced, S3Error
from ..s3.store import CONNECTIONS, ObjectStore
from .documents import Content, Documents, Place
from .health import INTERVAL, ClusterHealth, Report, clusters
from .lease import TTL, Lease
from .state import Decision, State, StateStore

POLL_SECONDS = 5.0
RETRY_SECONDS = 1.0
# States of many places are looked at less often, so that there is always room for renewals: a thousand every 20 seconds.
LOOKS_PER_SECOND = 50

Result = TypeVar("Result")
Event = dict[str, Any]
# How a cluster is, and why.
Probe = Callable[[], tuple[str, str]]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """What to hold and watch. `cluster` is the one that is reported of, if any."""

    places: Sequence[Place]
    holder: str
    ttl: float = TTL
    poll: float = POLL_SECONDS
    connections: int = CONNECTIONS
    cluster: str = ""
    probe: Probe | None = None
    health_interval: float = INTERVAL
    instance: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        if self.poll <= 0:
            raise BadOptions(f"poll_interval is {self.poll:g}; it must be more than 0.")
        if self.connections < 2:
            raise BadOptions(f"connections is {self.connections}; leases and polls need one each at least.")


class LeaseManager:
    """One process's part in all places."""

    def __init__(self, store: ObjectStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        half = settings.connections // 2
        self._for_leases = ThreadPoolExecutor(half, "lease")
        self._for_polls = ThreadPoolExecutor(settings.connections - half, "poll")
        # Those who try to lead may have half of the threads for leases: a renewal must not wait behind a thousand of them.
        self._beginners = asyncio.Semaphore(max(1, half // 2))
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._problems: dict[str, str] = {}
        self.leases = [
            Lease(store, place, settings.holder, f"{settings.holder}-{settings.instance}", settings.ttl) for place in settings.places
        ]

    async def run(self, put: Callable[[Event], Awaitable[None]]) -> None:
        """Go on for ever, and hand each event to `put`, which may be slow. When cancelled, give all leases back."""
        work = [*map(self._contend, self.leases), *map(self._watch, self._settings.places), self._watch_clusters(), self._deliver(put)]
        if self._settings.cluster:
            work.append(self._report())
        try:
            async with asyncio.TaskGroup() as tasks:
                for each in work:
                    tasks.create_task(each)
        finally:
            self._for_leases.shutdown()
            self._for_polls.shutdown()

    async def _deliver(self, put: Callable[[Event], Awaitable[None]]) -> None:
        while True:
            await put(await self._events.get())

    # Leading

    async def _contend(self, lease: Lease) -> None:
        # Spread, so that a thousand renewals do not come at the same moment for ever.
        await asyncio.sleep(random.uniform(0, self._settings.poll) if len(self.leases) > 1 else 0)  # noqa: S311 - keeps no secret
        try:
            while True:
                async with self._tolerant(f"lock of {lease.place}"):
                    async with self._beginners:
                        state = await self._begin(lease)
                    if state:
                        await self._lead(lease, state)
                        continue
                await asyncio.sleep(max(0.05, min(self._settings.poll, lease.expires_in())))
        finally:
            with contextlib.suppress(S3Error):
                await self._run(self._for_leases, lease.release)

    async def _begin(self, lease: Lease) -> State | None:
        """Try to lead, and seal the state then. The state if we lead."""

        def begin() -> State | None:
            if not lease.attempt():
                return None
            documents = Documents(self._store, lease.place.identity())
            try:
                state = StateStore(documents, lease.place, lease.instance).seal(lease.epoch)
            except Fenced:
                lease.release()
                raise
            Decision(documents, lease.place).publish(state)
            return state if lease.acting() else None

        return await self._run(self._for_leases, begin)

    async def _lead(self, lease: Lease, state: State) -> None:
        """One term: tell, renew, and tell again when it is over."""
        epoch = state.epoch
        self._tell("leader_acquired", lease.place, epoch=epoch, holder=lease.holder, state=_told(state), revision=state.revision)
        reason = await self._renew(lease)
        self._tell("leader_lost", lease.place, epoch=epoch, holder=lease.holder, reason=reason)

    async def _renew(self, lease: Lease) -> str:
        """Renew until the term is over; the answer says why it is."""
        pause = lease.renewal_in()
        while True:
            await asyncio.sleep(max(0.0, min(pause, lease.acting_seconds())))
            renewal = asyncio.ensure_future(self._run(self._for_leases, lease.renew))
            # When the time is over, it is, whatever the answer will be.
            await asyncio.wait({renewal}, timeout=max(0.0, lease.acting_seconds()))
            if not renewal.done():
                renewal.add_done_callback(_forget)
                return "the store did not answer in time"
            try:
                if not renewal.result():
                    return "somebody else has taken the lease, or the renewal came too late"
                pause = lease.renewal_in()
            except S3Error as error:
                self._note(f"lock of {lease.place}", error)
                if not lease.acting():
                    return f"it could not be renewed: {error}"
                pause = RETRY_SECONDS * lease.ttl / TTL

    # Watching

    async def _watch(self, place: Place) -> None:
        states = StateStore(Documents(self._store, place.identity()), place)
        last = State()
        interval = max(self._settings.poll, len(self.leases) / LOOKS_PER_SECOND)
        await asyncio.sleep(random.uniform(0, interval) if len(self.leases) > 1 else 0)  # noqa: S311 - keeps no secret
        while True:
            async with self._tolerant(f"state of {place}"):
                state = await self._run(self._for_polls, states.read, last)
                if state.revision != last.revision:
                    self._tell("state_changed", place, epoch=state.epoch, revision=state.revision, state=_told(state))
                if state.decision != last.decision:
                    self._tell(
                        "decision_changed",
                        place,
                        epoch=state.epoch,
                        revision=state.revision,
                        decision=state.decision,
                        previous=last.decision,
                    )
                last = state
            await asyncio.sleep(interval)

    async def _watch_clusters(self) -> None:
        known: dict[str, tuple[ClusterHealth, Report]] = {}
        while True:
            async with self._tolerant("health of clusters"):
                for cluster in await self._run(self._for_polls, clusters, self._store):
                    # What one has written wrongly must not hide those that come after it.
                    async with self._tolerant(f"what cluster {cluster} says"):
                        health, last = known.get(cluster) or (ClusterHealth(self._store, cluster), Report())
                        report = await self._run(self._for_polls, health.look)
                        known[cluster] = health, report
                        if report.state != last.state:
                            self._events.put_nowait(
                                {
                                    "type": "cluster_health_changed",
                                    "cluster": cluster,
                                    "health": report.state,
                                    "previous": last.state,
                                    "reason": report.reason,
                                }
                            )
            await asyncio.sleep(self._settings.poll)

    async def _report(self) -> None:
        health = ClusterHealth(self._store, self._settings.cluster)
        interval, reporter = self._settings.health_interval, f"{self._settings.holder}-{self._settings.instance}"

        def tell() -> None:
            state, reason = self._settings.probe() if self._settings.probe else ("healthy", "")
            health.report(state, reason, interval, reporter)

        while True:
            async with self._tolerant(f"health of {self._settings.cluster}"):
                await self._run(self._for_polls, tell)
            await asyncio.sleep(interval)

    # Helpers of all

    def _tell(self, kind: str, place: Place, **details: Any) -> None:
        self._events.put_nowait({"type": kind, "namespace": place.namespace, "name": place.name} | details)

    @staticmethod
    async def _run(pool: ThreadPoolExecutor, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do something in a thread. A thread cannot be interrupted, so whoever is cancelled still waits for it."""
        future = asyncio.get_running_loop().run_in_executor(pool, work, *arguments)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait({future})
            future.exception()
            raise

    @contextlib.asynccontextmanager
    async def _tolerant(self, what: str) -> AsyncIterator[None]:
        """An error is noted, and tried again later: the other places must not suffer from it."""
        try:
            yield
            if self._problems.pop(what, None):
                log.warning("s3_coordination: %s: all is well again", what)
        except S3Error as error:
            self._note(what, error)

    def _note(self, what: str, error: S3Error) -> None:
        """Log a problem once, and not with each try."""
        if self._problems.get(what) != type(error).__name__:
            self._problems[what] = type(error).__name__
            log.error("s3_coordination: %s: %s", what, error)


def _forget(renewal: asyncio.Future[bool]) -> None:
    """Take note of an answer that nobody waits for any more, or asyncio complains."""
    if not renewal.cancelled():
        renewal.exception()


def _told(state: State) -> Content:
    return {"intent": state.intent, "decision": state.decision, "step": state.step}
