# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kubernetes Events about objects: the same Event again becomes a higher count. It decides nothing, and it never fails its caller.

client-go keeps the counts in the memory of one process. Here many short runs report on the same object, so the server keeps them: the name
of an Event is a hash of all that has to be equal, and the second one of a name increases the count of the first.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ..common.text import shortened
from ..common.timestamps import format_time
from ..common.types import Object
from .client import Kube
from .errors import Conflict
from .transport import USER_AGENT

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
MESSAGE_LIMIT, REASON_LIMIT = 1024, 128  # those of events.k8s.io
NAME_LIMIT = 253
LARGEST_COUNT = 2**31 - 1
CLUSTER_SCOPED = "default"  # the namespace of Events about objects without one
WRITERS = 2  # threads; with more, Events would keep the API server from what they report on
QUEUED = 50_000  # Events that wait at most
# While more than so many wait, many orders change at once. Their status comes first: a writer then pauses after each
# Event.
MANY, PAUSE_SECONDS = 100, 0.04
FLUSH_SECONDS = 30.0


@dataclass(frozen=True)
class Event:
    """What happened: `reason` in one word, `message` in a sentence without numbers that grow, so that repetitions are equal."""

    reason: str
    message: str
    type: str = NORMAL


class EventRecorder:
    """Writes Events about objects of one hub."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    def record(self, item: Object, events: Iterable[Event]) -> None:
        """Write the Events about this object. An error is logged: an Event is a report, and nothing depends on it."""
        now = self._now()
        for event in events:
            self._write(item, event, now)

    def _now(self) -> str:
        return format_time(self._kube.server_time() or datetime.now(UTC))

    def _write(self, item: Object, event: Event, now: str) -> None:
        try:
            self._create_or_count(_event(item, event, now), now)
        except Exception as error:  # noqa: BLE001 - of any kind: see `record`
            _not_written(item, event, error)

    def _create_or_count(self, created: Object, now: str) -> None:
        try:
            self._kube.create(created)
        except Conflict:
            present = self._kube.get("v1", "Event", created["metadata"]["name"], created["metadata"]["namespace"])
            count = min(int(present.get("count") or 1) + 1, LARGEST_COUNT)
            self._kube.patch(present, {"count": count, "lastTimestamp": now}, checked=False)


class QueuedEventRecorder(EventRecorder):
    """Writes Events in threads of its own, so that no order waits for them. Its user calls `flush` at the end of its work."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube)
        self._waiting: deque[tuple[Object, Event, str]] = deque()
        self._unwritten = 0
        self._writers = 0
        self._flushing = False
        self._changed = threading.Condition()

    def record(self, item: Object, events: Iterable[Event]) -> None:
        """Write the Events soon, with the time of now. As in client-go, one that finds the queue full is dropped."""
        now, about = self._now(), _identity(item)
        for event in events:
            with self._changed:
                if len(self._waiting) >= QUEUED:
                    _not_written(item, event, "too many others wait")
                    continue
                self._waiting.append((about, event, now))
                self._unwritten += 1
                if self._writers < WRITERS:
                    self._writers += 1
                    threading.Thread(target=self._write_waiting, daemon=True, name="events").start()

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all are written, for so long at most; returns whether they are."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._unwritten, seconds)
            finally:
                self._flushing = False

    def _write_waiting(self) -> None:
        while waiting := self._next():
            self._write(*waiting)
            with self._changed:
                self._unwritten -= 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._flushing or len(self._waiting) <= MANY, PAUSE_SECONDS)

    def _next(self) -> tuple[Object, Event, str] | None:
        with self._changed:
            if self._waiting:
                return self._waiting.popleft()
            self._writers -= 1
            return None


def _not_written(item: Object, event: Event, reason: Exception | str) -> None:
    log.warning("the Event %s about %s %s was not written: %s", event.reason, item["kind"], item["metadata"]["name"], reason)


def _identity(item: Object) -> Object:
    """What an Event has of the object; the rest need not stay in memory."""
    named = ("name", "namespace", "uid", "resourceVersion")
    metadata = {name: item["metadata"][name] for name in named if name in item["metadata"]}
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": metadata}


def _event(item: Object, event: Event, now: str) -> Object:
    metadata = item["metadata"]
    namespace = metadata.get("namespace") or ""
    reason, message = shortened(event.reason, REASON_LIMIT), shortened(event.message, MESSAGE_LIMIT)
    same = "\0".join((item["kind"], namespace, metadata["name"], metadata["uid"], event.type, reason, message))
    digest = hashlib.sha256(same.encode()).hexdigest()[:16]
    about = {
        "apiVersion": item["apiVersion"],
        "kind": item["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name'][: NAME_LIMIT - 17].rstrip('-.')}.{digest}", "namespace": namespace or CLUSTER_SCOPED},
        "involvedObject": about | ({"namespace": namespace} if namespace else {}),
        "type": event.type,
        "reason": reason,
        "message": message,
        "source": {"component": USER_AGENT},
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
