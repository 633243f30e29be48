# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes for an order that only the holder of its lock can make: each object carries the token, and a higher token rejects the write.

A set of objects is read first and only differences are written, so that a second run writes nothing. Right before a write the lock itself
is read again, unless it was read so recently that it cannot have expired since: objects that a newer run found unchanged still carry an
older token. A write that arrives late all the same, because its process was stopped after the check, changes no object that a newer run
has written or created: each write is conditional on the object being as it was read, also where there was none. One case is left: it
creates again what the newer run has both created and deleted since. The namespace of the order, which is deleted last, takes that with it.

Tokens of two locks say nothing about each other. On the hub each object belongs to one order. A cluster may be adopted by one order after
another, so an object there carries the name of the order too, and only a token of the same order counts.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..common.clock import boottime
from ..common.types import Object
from ..kube.client import CONNECTIONS, FIELD_MANAGER, Kube, retry_on_conflict
from ..kube.errors import Conflict, KubeError, NotFound
from ..kube.kinds import in_apply_order
from .lease import ORDER_ANNOTATION, Lock, LockLost, verify

ABSENT = "1"  # a resourceVersion that no object has: an apply with it creates the object, and conflicts with one that exists
FEW = 3  # objects are written over one connection: to open another takes as long
Address = tuple[str, str, str, str]
Adapt = Callable[[Object, Object], Object]


@dataclass(frozen=True)
class Change:
    """The change of one object, or in check mode the predicted one: created, changed, unchanged or deleted."""

    action: str
    before: Object | None
    after: Object | None

    @property
    def item(self) -> Object:
        return self.after or self.before or {}

    @property
    def changed(self) -> bool:
        return self.action != "unchanged"


class FencedWriter:
    """Applies and deletes objects under a lock. Objects carry its token in `token_annotation`."""

    def __init__(
        self, kube: Kube, lock: Lock, token_annotation: str, check_mode: bool = False, clock: Callable[[], float] = boottime
    ) -> None:
        self._kube = self._hub = kube
        self._lock = lock
        self._annotation = token_annotation
        self._check_mode = check_mode
        self._clock = clock  # it continues while this process is stopped or the machine sleeps
        self._held_until = 0.0
        self._verifying = threading.Lock()
        self._known: dict[Address, Object | None] = {}  # None for one that is expected not to exist

    @property
    def token(self) -> int:
        """The token of the lock, for writes that do not carry it in an annotation."""
        return self._lock.token

    def on(self, kube: Kube) -> FencedWriter:
        """A writer for another cluster, under the same lock of this hub."""
        other = FencedWriter(kube, self._lock, self._annotation, self._check_mode, self._clock)
        other._hub = self._hub
        return other

    def apply(
        self, items: Iterable[Object], adapt: Adapt | None = None, known: Sequence[Object] = (), *, new: bool = False
    ) -> list[Change]:
        """Apply the objects, those that others depend on first. The first error stops those that depend on it.

        `adapt` gets each object that exists, as it is right before the write: it returns the wanted object in view of that, and raises
        where the object must not be changed. `known` are objects that were read just now and need not be read again. `new`: the others
        hardly exist yet. They are created without a read, and one that does exist is a conflict, after which it is read.
        """
        items = list(items)
        self._known = (dict.fromkeys(map(_address, items)) if new and not self._check_mode else {}) | {
            _address(item): item for item in known
        }
        changes: list[Change] = []
        for group in in_apply_order(items):
            changes += self._together(lambda item: self._apply(item, adapt), group)
        return changes

    def delete(self, items: Iterable[Object]) -> list[Change]:
        """Delete the objects in the opposite order; those that are being deleted already are skipped."""
        changes: list[Change] = []
        for group in reversed(in_apply_order(items)):
            changes += self._together(self._delete, group)
        return changes

    def patch(self, item: Object, change: Callable[[Object], Object]) -> Change:
        """Merge what `change` returns for the current object into it. Nothing is written if that changes nothing."""

        def attempt() -> Change:
            before = self.current(item)
            if before is None:
                raise NotFound(f"{_header(item)} no longer exists.")
            changes = change(before)
            if holds(before, changes, merged=True):
                return Change("unchanged", before, before)
            if not self._check_mode:
                self._verify()
            metadata = changes.get("metadata") or {}
            body = {**changes, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **self._fence}}}
            return Change("changed", before, self._kube.patch(before, body, dry_run=self._check_mode))

        return self._retried(attempt)

    def _retried(self, attempt: Callable[[], Change]) -> Change:
        """Repeat after a conflict, which may be with the next run: the lock is read again before the next write."""

        def work() -> Change:
            try:
                return attempt()
            except Conflict:
                self._held_until = 0.0
                raise

        return retry_on_conflict(work)

    def _together(self, work: Callable[[Object], Change], group: Sequence[Object]) -> list[Change]:
        changes: list[Change] = []
        for result in self._kube.in_parallel(work, group, 1 if len(group) <= FEW else CONNECTIONS):
            if isinstance(result, KubeError):
                raise result
            changes.append(result)
        return changes

    def _apply(self, wanted: Object, adapt: Adapt | None) -> Change:
        return self._retried(lambda: self._apply_once(wanted, adapt))

    def _apply_once(self, wanted: Object, adapt: Adapt | None) -> Change:
        before = self.current(wanted)
        if adapt and before is not None:
            wanted = adapt(wanted, before)
        if before is not None and not self._changes(before, wanted):
            return Change("unchanged", before, before)
        if self._check_mode:
            return Change("changed" if before else "created", before, self._predicted(wanted, before))
        self._verify()
        body = _annotated(wanted, self._fence)
        # An object that another client has created since is neither adopted nor overwritten; a deleted one is not
        # created again.
        body["metadata"] |= {key: before["metadata"][key] for key in ("uid", "resourceVersion")} if before else {"resourceVersion": ABSENT}
        # The objects of an order belong to this collection: a field that was changed by hand is reset to what the order
        # says.
        after = self._kube.apply(body, force=True)
        return Change("changed" if before else "created", before, after)

    def _changes(self, before: Object, wanted: Object) -> bool:
        """Whether applying `wanted` changes the object. On the hub its form is known; elsewhere users have written it.

        There a dry run decides about an apparent difference: the server drops empty fields, and normalizes quantities.
        """
        if not differs(before, wanted):
            return False
        if self._kube is self._hub:
            return True
        present = {key: value for key, value in before["metadata"].get("annotations", {}).items() if key in self._fence}
        would_be = self._kube.apply(_annotated(wanted, present), force=True, dry_run=True)
        return _content(before) != _content(would_be)

    @property
    def _fence(self) -> dict[str, str]:
        """The annotations of an object that is written under the lock."""
        token = {self._annotation: str(self._lock.token)}
        return token if self._kube is self._hub else token | {ORDER_ANNOTATION: self._order}

    @property
    def _order(self) -> str:
        return f"{self._lock.namespace}/{self._lock.order}"

    def _predicted(self, wanted: Object, before: Object | None) -> Object:
        try:
            return self._kube.apply(wanted, force=True, dry_run=True)
        except NotFound:
            # Its namespace would only be created by this run.
            return wanted if before is None else before

    def _delete(self, item: Object) -> Change:
        return self._retried(lambda: self._delete_once(item))

    def _delete_once(self, item: Object) -> Change:
        before = self.current(item)
        if before is None or "deletionTimestamp" in before["metadata"]:
            return Change("unchanged", before or item, before)
        if not self._check_mode:
            self._verify()
            self._kube.delete(before, unchanged=True)
        return Change("deleted", before, None)

    def current(self, item: Object) -> Object | None:
        """The current object; LockLost if a newer run has written it."""
        metadata = item["metadata"]
        if _address(item) in self._known:
            found = self._known.pop(_address(item))  # removed: after a conflict it must be read
        else:
            found = self._kube.find(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
        if found is not None:
            annotations = found["metadata"].get("annotations", {})
            token = annotations.get(self._annotation, "0")
            comparable = annotations.get(ORDER_ANNOTATION, self._order) == self._order
            if comparable and token.isdigit() and int(token) > self._lock.token:
                raise LockLost(
                    f"{item['kind']} {metadata['name']} was written by a later run: its token is {token}, that of this run "
                    f"{self._lock.token}. Nothing was written; that run continues."
                )
        return found

    def verify(self) -> None:
        """LockLost unless the lock is still held. For use right before a write elsewhere than on the hub, which carries no token."""
        state = verify(self._hub, self._lock)
        # The clock first: if this process is stopped between the two, the time left is not counted twice.
        now, left = self._clock(), state.seconds_left(self._hub.latest_server_time())
        self._held_until = now + (left or 0.0)

    def ensure_held(self) -> None:
        """As `verify`, without a request while the lock cannot have expired since it was read. For conditional writes elsewhere."""
        self._verify()

    def _verify(self) -> None:
        with self._verifying:  # one of the threads that write at once reads the lock for all
            if self._clock() >= self._held_until:
                self.verify()


def _address(item: Object) -> Address:
    return item["apiVersion"], item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _annotated(item: Object, annotations: Mapping[str, str]) -> Object:
    body = copy.deepcopy(item)
    if annotations:
        body["metadata"]["annotations"] = {**(body["metadata"].get("annotations") or {}), **annotations}
    return body


def _content(item: Object) -> Object:
    """The object without the fields that the server changes with each version."""
    kept = {key: value for key, value in item["metadata"].items() if key not in ("managedFields", "resourceVersion", "generation")}
    return item | {"metadata": kept}


def differs(present: Object, wanted: Object) -> bool:
    """Whether applying `wanted` would change `present`: a value differs, or a field that we own is no longer wanted."""
    ours = next(
        (
            entry.get("fieldsV1")
            for entry in present["metadata"].get("managedFields", [])
            if (entry["manager"], entry["operation"]) == (FIELD_MANAGER, "Apply")
        ),
        None,
    )
    if ours is None:
        return True
    return not holds(present, wanted) or _has_unwanted(ours, wanted)


def holds(present: Any, wanted: Any, merged: bool = False) -> bool:
    """Whether `present` contains all of `wanted`. The server may add fields to an object, but never entries to a list of ours.

    None is a field that the server may set; where `wanted` is to be `merged`, one that must not exist.
    """
    if isinstance(wanted, Mapping):
        asked = wanted.items() if merged else [entry for entry in wanted.items() if entry[1] is not None]
        return isinstance(present, Mapping) and all(holds(present.get(key), value, merged) for key, value in asked)
    if isinstance(wanted, list):
        return isinstance(present, list) and len(present) == len(wanted) and all(map(holds, present, wanted))
    return bool(present == wanted)


def _has_unwanted(fields: Mapping[str, Any], wanted: Any) -> bool:
    """Whether a field that we own, by its managedFields, is not in `wanted`. Lists were compared in full already."""
    for key, inner in fields.items():
        name = key[2:]
        if not key.startswith("f:") or _is_fence(name):
            continue
        if name == "annotations" and all(key == "." or _is_fence(key) for key in inner):
            # The token of the lock is not part of what is wanted.
            continue
        if not isinstance(wanted, Mapping) or name not in wanted:
            return True
        if isinstance(inner, Mapping) and inner and isinstance(wanted[name], Mapping) and _has_unwanted(inner, wanted[name]):
            return True
    return False


def _is_fence(annotation: str) -> bool:
    return annotation.endswith(("/lock-token", ORDER_ANNOTATION))


def diff(changes: Sequence[Change]) -> list[dict[str, str]]:
    """Before and after for `--diff`, one entry for each object. Values of Secrets are not shown, only that they differ."""
    return [
        {
            "before_header": _header(change.item),
            "after_header": _header(change.item),
            "before": _readable(change.before, change.after),
            "after": _readable(change.after, change.before),
        }
        for change in changes
        if change.changed
    ]


def _header(item: Object) -> str:
    return f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def _readable(item: Object | None, other: Object | None) -> str:
    if item is None:
        return ""
    shown = {key: value for key, value in item.items() if key != "status"}
    keep = ("name", "namespace", "labels", "annotations", "finalizers")
    shown["metadata"] = {key: value for key, value in item["metadata"].items() if key in keep}
    if item["kind"] == "Secret":
        known = (other or {}).get("data") or {}
        shown["data"] = {key: "(unchanged)" if known.get(key) == value else "(hidden)" for key, value in (item.get("data") or {}).items()}
    return json.dumps(shown, indent=2, sort_keys=True) + "\n"
