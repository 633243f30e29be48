# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kubernetes Events about objects: the same Event again becomes a higher count. It decides nothing, and it never fails its caller.

client-go keeps the counts in the memory of one process. Here many short runs report on the same object, so the server keeps them: the name
of an Event is a hash of all that has to be equal, and the second one of a name increases the count of the first.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ..common.text import shortened
from ..common.timestamps import format_time
from ..common.types import Object
from .client import Kube
from .errors import Conflict, KubeError
from .transport import USER_AGENT

log = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"
MESSAGE_LIMIT, REASON_LIMIT = 1024, 128  # those of events.k8s.io
NAME_LIMIT = 253
LARGEST_COUNT = 2**31 - 1
CLUSTER_SCOPED = "default"  # the namespace of Events about objects without one


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
        for event in events:
            try:
                self._record(item, event)
            except KubeError as error:
                log.warning("the Event %s about %s %s was not written: %s", event.reason, item["kind"], item["metadata"]["name"], error)

    def _record(self, item: Object, event: Event) -> None:
        now = format_time(self._kube.server_time() or datetime.now(UTC))
        created = _event(item, event, now)
        try:
            self._kube.create(created)
        except Conflict:
            present = self._kube.get("v1", "Event", created["metadata"]["name"], created["metadata"]["namespace"])
            count = min(int(present.get("count") or 1) + 1, LARGEST_COUNT)
            self._kube.patch(present, {"count": count, "lastTimestamp": now}, checked=False)


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
