# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A copy of all objects of one kind, kept up to date by list and watch. It decides nothing, and no fault of a server ends it.

Why it is on our own `Kube`, in a thread for each kind: kopf, embedded, brings its own loop, its own idea of handlers, retries and
finalizers, and writes annotations on what it follows; here an order must be looked at for a change of four other kinds. kr8s and the
kubernetes package would be a second client beside the one that writes, with other rules for kubeconfigs, proxies and expired logins, and
leave resuming after a broken watch to us all the same. What they would save is this file.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from ..common.types import Object
from ..kube.client import Event, Kube, Listing
from ..kube.errors import Gone, KubeError
from .work_queue import Key, sentence

log = logging.getLogger(__name__)

Result = TypeVar("Result")

WATCH_SECONDS = 240
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.25, 10.0


class Informer:
    """The objects of one kind by namespace and name; those of no namespace are below the empty one. `changed` is told of each change.

    Used in the event loop's thread only. `managedFields` are left out: they are most of an object, and nobody looks at them.
    """

    def __init__(
        self, kube: Kube, api_version: str, kind: str, changed: Callable[[Object | None, Object | None], None], selector: str = ""
    ) -> None:
        """`changed` gets the object as it was and as it is; None is for what is not there."""
        self.kind = kind
        self.listed = asyncio.Event()
        self.refusal: KubeError | None = None  # why nothing can be listed: the server has no such kind, or does not let us
        self.refused = asyncio.Event()  # for the first time
        self.restarts = 0
        self._kube = kube
        self._api_version = api_version
        self._changed = changed
        self._selector = selector
        self._items: dict[str, dict[str, Object]] = {}
        self._version = ""
        self._broken_since: float | None = time.monotonic()

    def get(self, key: Key) -> Object | None:
        return self._items.get(key.namespace, {}).get(key.name)

    def below(self, namespace: str) -> list[Object]:
        """All objects of a namespace."""
        return list(self._items.get(namespace, {}).values())

    def all(self) -> list[Object]:
        return [item for items in self._items.values() for item in items.values()]

    def broken_for(self) -> float:
        """For how many seconds nothing has been heard because the server could not be asked."""
        return 0.0 if self._broken_since is None else time.monotonic() - self._broken_since

    def remember(self, item: Object) -> None:
        """Take over what a write answered, so that the next look does not see the past. Nobody is told: whoever wrote it knows."""
        known = self.get(_key(item))
        if known and known["metadata"]["uid"] == item["metadata"]["uid"] and _is_newer(item, known):
            self._put(item)

    async def follow(self) -> None:
        """List, then watch from there, for ever. A broken watch is resumed where it stood; one from too long ago begins with a list."""
        failures = 0
        while True:
            try:
                if not self._version:
                    self._replace(await in_thread(self._list))
                started = time.monotonic()
                await self._watch()
                # A server, or something on the way to it, that ends watches at once must not be asked without a pause.
                await asyncio.sleep(max(0.0, FIRST_RETRY_SECONDS - (time.monotonic() - started)))
            except Gone:
                self._version = ""
                await asyncio.sleep(FIRST_RETRY_SECONDS)
            except Exception as error:  # noqa: BLE001 - answers may be no Kubernetes API's, or too deep to be read; neither ends the others
                if isinstance(error, KubeError) and not error.retryable:
                    self.refusal = error
                    self.refused.set()
                failures = 0 if self._broken_since is None else failures
                self._broken_since = self._broken_since or time.monotonic()
                wait = min(FIRST_RETRY_SECONDS * 2 ** min(failures, 16), LAST_RETRY_SECONDS) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
                failures += 1
                log.warning("watch of %s: %s; again in %.1f s", self.kind, sentence(error), wait)
                await asyncio.sleep(wait)
            self.restarts += 1

    def _list(self) -> Listing:
        return self._kube.list_all(self._api_version, self.kind, label_selector=self._selector)

    async def _watch(self) -> None:
        loop, over = asyncio.get_running_loop(), threading.Event()

        def read() -> None:
            events = self._kube.watch(
                self._api_version, self.kind, since=self._version, seconds=WATCH_SECONDS, labelSelector=self._selector
            )
            loop.call_soon_threadsafe(self._is_followed)
            for event in events:
                if over.is_set():
                    return
                loop.call_soon_threadsafe(self._see, event)

        try:
            await in_thread(read)
        finally:
            over.set()

    def _is_followed(self) -> None:
        self._broken_since = None

    def _see(self, event: Event) -> None:
        self._version = event.object["metadata"]["resourceVersion"]
        if event.type == "DELETED":
            self._remove(event.object)
        elif event.type in ("ADDED", "MODIFIED"):
            before = self._without_another(event.object)
            # A write of our own may be known already, and what was before it come later.
            if before is None or _is_newer(event.object, before):
                self._put(event.object)
                self._tell(before, event.object)

    def _replace(self, items: Listing) -> None:
        there = {_key(item) for item in items}
        for item in [item for item in self.all() if _key(item) not in there]:
            self._remove(item)
        for item in items:
            before = self._without_another(item)
            if before is None or before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._put(item)
                self._tell(before, item)
        self._version = items.version
        self.refusal = None
        self.listed.set()

    def _without_another(self, item: Object) -> Object | None:
        """The object as it was. Another one of that name is gone, though nobody said so."""
        before = self.get(_key(item))
        if before and before["metadata"]["uid"] != item["metadata"]["uid"]:
            self._remove(before)
            return None
        return before

    def _tell(self, before: Object | None, after: Object | None) -> None:
        try:
            self._changed(before, after)
        except Exception:  # one object that nobody understands must not hide all the others
            log.exception("%s %s is not understood", self.kind, _key(after or before or {}))

    def _put(self, item: Object) -> None:
        item["metadata"].pop("managedFields", None)
        key = _key(item)
        self._items.setdefault(key.namespace, {})[key.name] = item

    def _remove(self, item: Object) -> None:
        key = _key(item)
        items = self._items.get(key.namespace, {})
        before = items.pop(key.name, None)
        if not items:
            self._items.pop(key.namespace, None)
        self._tell(before or item, None)


def broken(mirrors: Iterable[Informer], seconds: float) -> list[str]:
    """The kinds of which nothing could be heard for longer than that."""
    return sorted(mirror.kind for mirror in mirrors if mirror.broken_for() > seconds)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Do what may wait for long in a thread of its own. A daemon: a watch that nobody needs any more keeps no process from its end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if not future.done():
            if error is None:
                future.set_result(result)  # type: ignore[arg-type]
            else:
                future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as caught:  # noqa: BLE001 - whatever it is, whoever awaits it is told
            error = caught
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future


def _key(item: Object) -> Key:
    return Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])


def _is_newer(item: Object, known: Object) -> bool:
    return int(item["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])
