# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An informer: a cache of all objects of one kind, kept current by list and watch. No error of a server ends it.

Why it uses our own `Kube`, with a thread for each kind: kopf, embedded, brings its own loop, handlers, retries and finalizers, and writes
annotations on the objects it watches; here a change of four other kinds causes the reconcile of an order. kr8s and the kubernetes package
would be a second client beside the one that writes, with other rules for kubeconfigs, proxies and expired credentials, and they leave it
to the caller to resume a broken watch. They would replace this file only.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..common.types import Object
from ..kube.client import Kube, ObjectList, WatchEvent
from ..kube.errors import Gone, KubeError
from .work_queue import Key, sentence

log = logging.getLogger(__name__)

Result = TypeVar("Result")

WATCH_SECONDS = 240
SHARED_LENGTH = 200  # longer strings are mostly unique
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 0.25, 10.0


class Informer:
    """The objects of one kind by namespace and name; cluster-scoped ones have the empty namespace. `changed` is called for each change.

    Changed in the event loop's thread only. `managedFields` are dropped: they are most of an object, and nothing reads them.
    """

    def __init__(
        self,
        kube: Kube,
        api_version: str,
        kind: str,
        changed: Callable[[Object | None, Object | None], None],
        selector: str = "",
        namespace: str | None = None,
        transform: Callable[[Object], Object] = lambda item: item,
        watch_seconds: int = WATCH_SECONDS,
        name: str = "",
    ) -> None:
        """`changed` gets the object before and after; None where it does not exist. Without a `namespace` it follows all.

        With a `name`, it follows the objects of that name, which needs a permission for that name only.
        `transform` may drop what nothing reads, before an object is stored. A watch is begun again after `watch_seconds`.
        """
        self.kind = kind
        self.listed = asyncio.Event()
        self.refusal: KubeError | None = None  # why nothing can be listed: the server lacks the kind, or forbids it
        self.refused = asyncio.Event()  # for the first time
        self.restarts = 0
        self._kube = kube
        self._api_version = api_version
        self._changed = changed
        self._selector = selector
        self._namespace = namespace
        self._transform = transform
        self._watch_seconds = watch_seconds
        self._fields = f"metadata.name={name}" if name else ""
        self._items: dict[str, dict[str, Object]] = {}
        self.listed_version = ""  # the resourceVersion of the last list; what was deleted before it is not known
        self._version = ""
        self._broken_since: float | None = time.monotonic()

    @property
    def version(self) -> str:
        """The resourceVersion of the last event, or of the list; empty while the objects are listed."""
        return self._version

    def get(self, key: Key) -> Object | None:
        return self._items.get(key.namespace, {}).get(key.name)

    def below(self, namespace: str) -> list[Object]:
        """All objects of a namespace."""
        return list(self._items.get(namespace, {}).values())

    def all(self) -> list[Object]:
        return [item for items in self._items.values() for item in items.values()]

    def broken_for(self) -> float:
        """For how many seconds the watch has been broken."""
        return 0.0 if self._broken_since is None else time.monotonic() - self._broken_since

    def remember(self, item: Object) -> None:
        """Store the answer to a write, so that the next reader does not get an older version. `changed` is not called: the caller knows."""
        known = self.get(_key(item))
        if known and known["metadata"]["uid"] == item["metadata"]["uid"] and _is_newer(item, known):
            self._put(item)

    def observe(self, item: Object) -> None:
        """Store the answer to a request as if the watch had brought it, also of an object that was created. `changed` is called.

        What is older than what the watch has brought is left out: the object may have been deleted since.
        """
        known = self.get(_key(item))
        is_same = known is not None and known["metadata"]["uid"] == item["metadata"]["uid"]
        newest = known["metadata"]["resourceVersion"] if known and is_same else self._version
        if newest and int(item["metadata"]["resourceVersion"]) > int(newest):
            before = self._same_uid(item)
            self._put(item)
            self._notify(before, item)

    async def follow(self) -> None:
        """List, then watch until cancelled. A broken watch resumes at its last version; one that is too old begins with a list."""
        failures = 0
        while True:
            try:
                if not self._version:
                    self._replace(await in_thread(self._list))
                started = time.monotonic()
                await self._watch()
                # A server or proxy that ends watches at once must not be asked without a pause.
                await asyncio.sleep(max(0.0, FIRST_RETRY_SECONDS - (time.monotonic() - started)))
            except Gone:
                self._version = ""
                await asyncio.sleep(FIRST_RETRY_SECONDS)
            except Exception as error:  # noqa: BLE001 - an answer may be of no Kubernetes API, or nested too deeply; the other informers go on
                if isinstance(error, KubeError) and not error.retryable:
                    self.refusal = error
                    self.refused.set()
                failures = 0 if self._broken_since is None else failures
                self._broken_since = self._broken_since or time.monotonic()
                wait = min(FIRST_RETRY_SECONDS * 2 ** min(failures, 16), LAST_RETRY_SECONDS) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
                failures += 1
                log.warning("watch of %s: %s; retry in %.1f s", self.kind, sentence(error), wait)
                await asyncio.sleep(wait)
            self.restarts += 1

    def _list(self) -> ObjectList:
        return self._kube.list_all(self._api_version, self.kind, self._namespace, self._selector, self._fields)

    async def _watch(self) -> None:
        loop, over = asyncio.get_running_loop(), threading.Event()

        def read() -> None:
            events = self._kube.watch(
                self._api_version,
                self.kind,
                self._namespace,
                since=self._version,
                seconds=self._watch_seconds,
                labelSelector=self._selector,
                fieldSelector=self._fields,
            )
            loop.call_soon_threadsafe(self._watch_began)
            for event in events:
                if over.is_set():
                    return
                loop.call_soon_threadsafe(self._handle, event)

        try:
            await in_thread(read)
        finally:
            over.set()

    def _watch_began(self) -> None:
        self._broken_since = None

    def _handle(self, event: WatchEvent) -> None:
        self._version = event.object["metadata"]["resourceVersion"]
        if event.type == "DELETED":
            self._remove(event.object)
        elif event.type in ("ADDED", "MODIFIED"):
            before = self._same_uid(event.object)
            # The answer to a write of ours may be stored already, and the event of an earlier version arrive after it.
            if before is None or _is_newer(event.object, before):
                self._put(event.object)
                self._notify(before, event.object)

    def _replace(self, items: ObjectList) -> None:
        listed = {_key(item) for item in items}
        for item in [item for item in self.all() if _key(item) not in listed]:
            self._remove(item)
        for item in items:
            before = self._same_uid(item)
            if before is None or before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._put(item)
                self._notify(before, item)
        self._version = self.listed_version = items.resource_version
        self.refusal = None
        self.listed.set()

    def _same_uid(self, item: Object) -> Object | None:
        """The cached object. One of that name with another uid was deleted without an event."""
        before = self.get(_key(item))
        if before and before["metadata"]["uid"] != item["metadata"]["uid"]:
            self._remove(before)
            return None
        return before

    def _notify(self, before: Object | None, after: Object | None) -> None:
        try:
            self._changed(before, after)
        except Exception:  # one object that cannot be handled must not stop the others
            log.exception("%s %s cannot be handled", self.kind, _key(after or before or {}))

    def _put(self, item: Object) -> None:
        item["metadata"].pop("managedFields", None)
        item, key = _with_shared_strings(self._transform(item)), _key(item)
        self._items.setdefault(key.namespace, {})[key.name] = item

    def _remove(self, item: Object) -> None:
        key = _key(item)
        items = self._items.get(key.namespace, {})
        before = items.pop(key.name, None)
        if not items:
            self._items.pop(key.namespace, None)
        self._notify(before or item, None)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run blocking work in a thread of its own. A daemon thread: an abandoned watch does not keep the process from exiting."""
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
        except Exception as caught:  # noqa: BLE001 - the caller that awaits it gets it
            error = caught
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future


def _key(item: Object) -> Key:
    return Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])


def _is_newer(item: Object, known: Object) -> bool:
    return int(item["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])


def _with_shared_strings(value: Any) -> Any:
    """The value with equal strings stored once: the objects of a kind repeat most of them, which halves the memory of the cache."""
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= SHARED_LENGTH else value
    if isinstance(value, dict):
        return {sys.intern(name): _with_shared_strings(entry) for name, entry in value.items()}
    return [_with_shared_strings(entry) for entry in value] if isinstance(value, list) else value
