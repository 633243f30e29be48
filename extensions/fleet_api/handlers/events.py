"""The event stream of clusters: Server-Sent Events. A slow client is disconnected; it reconnects with the id of its last event.

Without a Last-Event-ID the stream begins with all clusters as they are, then `synced`, then changes. With one, it continues after it. The
event `reset` means that changes are unknown: the client lists again, and uses what follows.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ....plugins.module_utils.common.types import Object
from ..logic.filter_nodes import Predicate
from ..logic.paging import predicate
from ..logic.services import Services
from ..logic.views import CLUSTERS, cluster_view
from ..problems import Problem, invalid
from ..stores.access import LIST_CLUSTERS
from ..stores.changes import Change, Closed, Lagging, Missed, Subscription
from ..stores.identity import Caller

ABORT = "openfleet.abort"  # of the scope's extensions: closes a connection whose client reads nothing
LARGEST_VERSION = 2**63
RETRY_MILLISECONDS = 2000


@dataclass(frozen=True)
class View:
    """The filter of one client: the tenants, None for all, and the filter."""

    tenants: tuple[str, ...] | None
    matches: Predicate | None

    def event(self, change: Change) -> tuple[str, dict[str, Any]] | None:
        """The name and the content of the event for a change; None if the filter does not select it.

        A cluster that no longer matches is deleted for the client, and so is one whose earlier state is not known.
        """
        if self.tenants is not None and change.namespace not in self.tenants:
            return None
        if change.type == "DELETED":
            matched_before = change.before is None or self._matches(change.before)
            return ("deleted", _named(change.item)) if matched_before else None
        if self._matches(change.item):
            matched_before = change.before is not None and self._matches(change.before)
            is_new = change.type == "ADDED" or (change.before is not None and not matched_before)
            return ("added" if is_new else "modified", cluster_view(change.item))
        matched_before = change.type == "MODIFIED" and (change.before is None or self._matches(change.before))
        return ("deleted", _named(change.item)) if matched_before else None

    def selects(self, change: Change) -> bool:
        return self.event(change) is not None

    def items(self, found: Iterable[Object]) -> list[Object]:
        return [item for item in found if self._matches(item)]

    def _matches(self, item: Object) -> bool:
        return self.matches is None or self.matches(item)


def parse_version(last_event_id: str | None) -> int | None:
    if last_event_id is None or last_event_id == "":
        return None
    if not (last_event_id.isascii() and last_event_id.isdecimal()) or not 0 < int(last_event_id[:20]) < LARGEST_VERSION:
        raise invalid("Last-Event-ID", "is the id of an event, a positive number")
    return int(last_event_id)


async def watch_clusters(
    services: Services, caller: Caller, token: str, tenants: Sequence[str], text: str, last_event_id: str | None
) -> Response:
    names = await services.tenants.chosen(caller, LIST_CLUSTERS, tenants)
    view = View(names, predicate(text, CLUSTERS.fields))

    async def is_allowed() -> bool:
        """Whether the token and the tenants are still those of the beginning."""
        present = await services.authenticator.caller(token)
        return present.key == caller.key and await services.tenants.chosen(present, LIST_CLUSTERS, tenants) == names

    return EventStream(services, caller, view, parse_version(last_event_id), is_allowed)


async def watch_all_clusters(services: Services, caller: Caller, token: str, text: str, last_event_id: str | None) -> Response:
    """For operators: the clusters of all tenants."""
    await services.tenants.require(caller, LIST_CLUSTERS)

    async def is_allowed() -> bool:
        present = await services.authenticator.caller(token)
        await services.tenants.require(present, LIST_CLUSTERS)
        return present.key == caller.key

    return EventStream(services, caller, View(None, predicate(text, CLUSTERS.fields)), parse_version(last_event_id), is_allowed)


class EventStream(Response):
    """A response that lasts. It ends when the client leaves, is too slow, or loses its permission, and after some time in any case."""

    media_type = "text/event-stream"

    def __init__(
        self,
        services: Services,
        caller: Caller,
        view: View,
        version: int | None,
        is_allowed: Callable[[], Any],
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._services = services
        self._caller = caller
        self._view = view
        self._version = version
        self._is_allowed = is_allowed
        self._settings = services.settings.watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        subscription = Subscription(self._view.selects, self._settings.queued_events)
        with self._services.streams.one_of(self._caller.user):
            self._services.changes.subscribe(subscription)
            try:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                writer = asyncio.ensure_future(self._write(subscription, send))
                leaver = asyncio.ensure_future(_disconnected(receive))
                slow = asyncio.ensure_future(subscription.overflow())
                try:
                    await asyncio.wait((writer, leaver, slow), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in (writer, leaver, slow):
                        task.cancel()
                    await asyncio.gather(writer, leaver, slow, return_exceptions=True)
                is_stuck = writer.cancelled() or isinstance(writer.exception(), Lagging)
                if is_stuck and (abort := (scope.get("extensions") or {}).get(ABORT)):
                    # What the client has not read would keep the connection for as long as it likes.
                    abort()
                elif not is_stuck:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                self._services.changes.unsubscribe(subscription)

    async def _write(self, subscription: Subscription, send: Send) -> None:
        async def write(text: str) -> None:
            try:
                async with asyncio.timeout(self._settings.send_seconds):
                    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            except TimeoutError:
                raise Lagging from None

        await write(f"retry: {RETRY_MILLISECONDS}\n\n")
        async for text in self._events(subscription):
            await write(text)

    async def _events(self, subscription: Subscription) -> AsyncIterator[str]:
        """The events as text, until the stream ends."""
        last = 0
        async for name, version, content in self._beginning():
            last = max(last, version)
            yield _text(name, version, content)
        ends = time.monotonic() + self._settings.stream_seconds
        if self._caller.expires:
            ends = min(ends, time.monotonic() + self._caller.expires - time.time())
        checked = time.monotonic()
        while time.monotonic() < ends:
            if time.monotonic() - checked >= self._settings.heartbeat_seconds:
                checked = time.monotonic()
                if not await self._still_allowed():
                    return
            try:
                change = await subscription.next(min(self._settings.heartbeat_seconds, max(0.01, ends - time.monotonic())))
            except Missed:
                subscription.resume()
                last = self._services.changes.version
                yield _text("reset", last, _RESET)
                continue
            except Closed:
                return
            if change is None:
                yield ": heartbeat\n\n"
            elif change.version > last and (event := self._view.event(change)):
                last = change.version
                yield _text(event[0], change.version, event[1])

    async def _beginning(self) -> AsyncIterator[tuple[str, int, Any]]:
        """The present state, or what changed since the last event of the client."""
        changes, caches = self._services.changes, self._services.caches
        if self._version is None:
            reached = changes.version
            present = self._view.items(caches.clusters_of(self._view.tenants))
            for item in sorted(present, key=_version):
                yield "added", _version(item), cluster_view(item)
            yield "synced", max(reached, *map(_version, present)) if present else reached, {}
            return
        try:
            found = await changes.since(self._version, lambda: caches.clusters_of(self._view.tenants))
        except Missed:
            yield "reset", changes.version, _RESET
            return
        for change in found:
            if event := self._view.event(change):
                yield event[0], change.version, event[1]

    async def _still_allowed(self) -> bool:
        try:
            return bool(await self._is_allowed())
        except Problem as problem:
            # An outage of the home cluster is not the client's fault; the next check decides.
            return problem.kind.status >= 500


_RESET = {"code": "changes-unknown", "detail": "List the clusters again: changes since your last event are not known."}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


def _named(item: Object) -> dict[str, Any]:
    metadata = item["metadata"]
    return {"id": metadata["uid"], "name": metadata["name"], "tenant": metadata["namespace"]}


def _text(name: str, version: int, content: Any) -> str:
    return f"id: {version}\nevent: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n"
