"""Changes of clusters for event streams: to subscribers at once, and again to those that reconnect with the version of their last event.

A client that reconnects gets the present state of each cluster that changed since, and the deletions since. Deletions before the first
list of this process are asked of the API server, which remembers them for some minutes; what is no longer known is reported as a reset.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.controller.informer import Informer, in_thread
from ....plugins.module_utils.kube.client import Kube
from ....plugins.module_utils.kube.errors import Gone, KubeError
from .cluster_source import ClusterSource

REPLAY_SECONDS = 5  # the API server sends a bookmark two seconds before it ends a watch
REPLAYS = 2  # at once

Type = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True)
class Change:
    """A change of a cluster. `before` is None where it did not exist, or is not known."""

    type: Type
    version: int
    item: Object
    before: Object | None = None

    @property
    def namespace(self) -> str:
        return str(self.item["metadata"]["namespace"])


class Lagging(Exception):
    """The client reads more slowly than changes come."""


class Closed(Exception):
    """The service ends."""


class Missed(Exception):
    """Changes are unknown: the client has to list again."""


@dataclass(eq=False)
class Subscription:
    """The changes of one client since it subscribed. `wanted` decides about a change before it is queued."""

    wanted: Callable[[Change], bool]
    most: int
    _queue: deque[Change] = field(default_factory=deque)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _overflowed: asyncio.Event = field(default_factory=asyncio.Event)
    _error: type[Exception] | None = None

    def offer(self, change: Change) -> None:
        if self._error is None and self.wanted(change):
            if len(self._queue) >= self.most:
                self.end(Lagging)
                self._overflowed.set()
            else:
                self._queue.append(change)
                self._woken.set()

    def end(self, error: type[Exception]) -> None:
        """The next call of `next` raises it; what is queued is dropped."""
        self._error = error
        self._queue.clear()
        self._woken.set()

    async def overflow(self) -> None:
        """Return when the client lags, whatever it is waiting for."""
        await self._overflowed.wait()

    def resume(self) -> None:
        """Go on after changes were missed."""
        self._error = None

    async def next(self, seconds: float) -> Change | None:
        """The next change; None after `seconds` without one."""
        if not self._queue and self._error is None:
            self._woken.clear()
            try:
                await asyncio.wait_for(self._woken.wait(), seconds)
            except TimeoutError:
                return None
        if self._error:
            raise self._error
        return self._queue.popleft() if self._queue else None


class ClusterChanges:
    """The changes that this process saw, and those that it asks the API server for."""

    def __init__(self, kube: Kube, remembered: int, source: ClusterSource) -> None:
        self._kube = kube
        self._source = source
        self._deleted: deque[Change] = deque(maxlen=remembered)
        self._since: int | None = None  # deletions after this version are known
        self._subscriptions: set[Subscription] = set()
        self._replaying = asyncio.Semaphore(REPLAYS)
        self._informer: Informer | None = None

    def follow(self, informer: Informer) -> None:
        self._informer = informer

    def changed(self, before: Object | None, after: Object | None) -> None:
        """Called by the informer for each change."""
        assert self._informer is not None
        if not self._informer.version:
            # A list after a gap: what was deleted in it has no version.
            self._since = None
            self._deleted.clear()
            for each in [*self._subscriptions]:
                each.end(Missed)
            return
        if after is not None:
            change = Change("MODIFIED" if before else "ADDED", int(after["metadata"]["resourceVersion"]), after, before)
        else:
            assert before is not None
            change = Change("DELETED", int(self._informer.version), before, before)
            if len(self._deleted) == self._deleted.maxlen:
                self._since = self._deleted[0].version
            self._deleted.append(_tombstone(before, change.version))
        for subscription in [*self._subscriptions]:
            subscription.offer(change)

    @property
    def version(self) -> int:
        """The version that the cache has reached."""
        assert self._informer is not None
        return int(self._informer.version or 0)

    def close(self) -> None:
        """End all streams, for a shutdown."""
        for each in [*self._subscriptions]:
            each.end(Closed)

    @property
    def clients(self) -> int:
        return len(self._subscriptions)

    def subscribe(self, subscription: Subscription) -> None:
        self._subscriptions.add(subscription)

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    async def since(self, version: int, items: Callable[[], Iterable[Object]]) -> list[Change]:
        """What changed after this version, of the present `items` and of all deletions, in order. Missed if it is not known."""
        if version > self.version and version > await in_thread(self._current_version):
            raise Missed  # of a home cluster that was restored from a backup
        async with self._replaying:
            if version < self._known_since():
                self._remember(*await in_thread(lambda: self._deletions_since(version)))
        found = [each for each in self._deleted if each.version > version]
        present = (Change("MODIFIED", int(item["metadata"]["resourceVersion"]), item) for item in items())
        found += [each for each in present if each.version > version]
        return sorted(found, key=lambda each: each.version)

    def _known_since(self) -> int:
        assert self._informer is not None
        return int(self._informer.listed_version or 0) if self._since is None else self._since

    def _remember(self, since: int, deletions: list[Change]) -> None:
        known = {each.version for each in self._deleted}
        added = sorted([*(each for each in deletions if each.version not in known), *self._deleted], key=lambda each: each.version)
        if self._deleted.maxlen and len(added) > self._deleted.maxlen:
            raise Missed
        self._deleted.clear()
        self._deleted.extend(added)
        self._since = since

    def _current_version(self) -> int:
        return int(
            self._kube.list_all(self._source.api_version, self._source.kind, field_selector="metadata.name=none").resource_version or 0
        )

    def _deletions_since(self, version: int) -> tuple[int, list[Change]]:
        """The deletions between the version and those that are known, as the API server remembers them."""
        until, found = self._known_since(), []
        try:
            for event in self._kube.watch(self._source.api_version, self._source.kind, since=str(version), seconds=REPLAY_SECONDS):
                reached = int(event.object["metadata"]["resourceVersion"])
                if event.type == "DELETED":
                    found.append(_tombstone(event.object, reached))
                if reached >= until:
                    return version, found
        except Gone:
            raise Missed from None
        except KubeError as error:
            raise Missed from error
        raise Missed


def _tombstone(item: Object, version: int) -> Change:
    """What is remembered of a deleted cluster: who it was."""
    named = {name: item["metadata"][name] for name in ("namespace", "name", "uid")}
    return Change("DELETED", version, {"metadata": named | {"resourceVersion": str(version)}})
