# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state of a place, which is the truth; the decision, which mirrors it for all to read; the history, which has every revision.

- A new leader first seals the state with its epoch. From then on nothing is written under an older one, however late it arrives.
- A revision is replaced only when it is in the history already, so the history has no gaps, whoever dies when.
- The history is create-only. What is kept of it are the newest entries, as many as who writes the state wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..s3.errors import CoordinationError, Fenced, Missing, PreconditionFailed, StaleRevision
from .documents import Content, Document, Documents, Place, now
from .documents import field as field_of

FIELDS = ("intent", "decision", "step")
KEEP = 1000
# The entries beyond those that are kept are counted once in so many revisions.
PRUNE_EVERY = 50
SWAP_TRIES = 10


@dataclass(frozen=True)
class State:
    """What is wanted, what was decided, how far it is. Revision 0 was never written."""

    epoch: int = 0
    revision: int = 0
    intent: Content = field(default_factory=dict)
    decision: Content = field(default_factory=dict)
    step: str = ""
    leader: str = ""
    writer: str = ""
    written: str = ""
    document: Document | None = field(default=None, compare=False, repr=False)

    def content(self) -> Content:
        return {name: value for name, value in vars(self).items() if name != "document"}


class History:
    """All revisions of the state of a place, each in an object of its own that is never written again."""

    def __init__(self, documents: Documents, place: Place) -> None:
        self._documents = documents
        self._prefix = place.key("history/")

    def key(self, state: State) -> str:
        # Padded, so that the order of the keys is that of the revisions.
        return f"{self._prefix}{state.epoch:010d}-{state.revision:010d}"

    def record(self, state: State) -> None:
        """Keep a revision; one that is there already stays as it is."""
        for _attempt in range(SWAP_TRIES):
            if not state.revision or self._documents.read(self.key(state)):
                return
            if self.append(state):
                return
            # Somebody else has recorded the same revision, or only tried to at the same moment: look again.
        raise CoordinationError(f"The store refuses {self.key(state)} although it is not there. Check the store.")

    def append(self, state: State) -> bool:
        """Keep a revision that is new. False if that was refused."""
        try:
            self._documents.write(self.key(state), state.content() | {"recorded": now()}, None)
        except PreconditionFailed:
            return False
        return True

    def keys(self) -> list[str]:
        """Oldest first."""
        return self._documents.store.keys(self._prefix)

    def entries(self, newest: int | None = None) -> list[Content]:
        """Oldest first, all or the newest so many."""
        keys = self.keys()
        found = (self._documents.read(key) for key in keys[max(0, len(keys) - newest) if newest is not None else 0 :])
        return [document.content for document in found if document]

    def prune(self, keep: int = KEEP) -> list[str]:
        """Delete all but the newest `keep`, which are one at least. The answer has the keys of those deleted."""
        keys = self.keys()
        old = keys[: max(0, len(keys) - max(1, keep))]
        for key in old:
            self._documents.store.delete(key)
        return old


class StateStore:
    """The state of a place. Every write is under an epoch, and only if nothing has changed since it was read."""

    def __init__(self, documents: Documents, place: Place, writer: str = "", keep: int = KEEP) -> None:
        self.place = place
        self.history = History(documents, place)
        self._documents = documents
        self._key = place.key("state")
        self._writer = writer
        self._keep = keep

    def read(self, known: State | None = None) -> State:
        """The state now, `known` itself if nothing has changed since."""
        document = self._documents.read(self._key, known.document if known else None)
        if document is None:
            return State()
        if known and document is known.document:
            return known
        return State(
            epoch=field_of(document, self._key, "epoch", int),
            revision=field_of(document, self._key, "revision", int),
            intent=field_of(document, self._key, "intent", dict),
            decision=field_of(document, self._key, "decision", dict),
            step=field_of(document, self._key, "step", str),
            leader=field_of(document, self._key, "leader", str),
            writer=str(document.content.get("writer", "")),
            written=str(document.content.get("written", "")),
            document=document,
        )

    def seal(self, epoch: int) -> State:
        """Put the state under a new epoch, as the first thing that a new leader, the writer, does. Twice is once; another's is Fenced."""
        for _attempt in range(SWAP_TRIES):
            state = self.read()
            if state.epoch == epoch and state.leader == self._writer:
                return state
            if state.epoch >= epoch:
                raise _fenced(self.place, epoch, state)
            try:
                return self._replace(state, epoch, self._writer, {})
            except (PreconditionFailed, Missing):
                # The leader before has written something still, which now is part of what is sealed.
                continue
        raise CoordinationError(
            f"The state of {self.place} changes faster than it can be sealed. Look for what writes it under an old epoch."
        )

    def write(self, epoch: int, changes: Mapping[str, Any], expected_revision: int | None = None) -> State:
        """Change some of `FIELDS`. What is so already is not written again."""
        state = self.plan(epoch, changes, expected_revision)
        if _is_so(state, changes):
            return state
        try:
            new = self._replace(state, epoch, state.leader, changes)
        except (PreconditionFailed, Missing) as error:
            raise StaleRevision(
                f"The state of {self.place} has changed since revision {state.revision} was read. Nothing was written."
            ) from error
        # Here and not in a seal: who only takes the lead does not know how many are to be kept.
        if new.revision % PRUNE_EVERY == 0:
            self.history.prune(self._keep)
        return new

    def plan(self, epoch: int, changes: Mapping[str, Any], expected_revision: int | None = None) -> State:
        """The state as it is, if `write` may change it so."""
        unknown = sorted(set(changes) - set(FIELDS))
        if unknown:
            raise CoordinationError(f"The state has no {', '.join(unknown)}; it has {', '.join(FIELDS)}.")
        state = self.read()
        if state.epoch > epoch:
            raise _fenced(self.place, epoch, state)
        if state.epoch < epoch:
            raise CoordinationError(f"The state of {self.place} is not sealed with epoch {epoch} yet: a new leader does that first.")
        if expected_revision not in (None, state.revision) and not _is_so(state, changes):
            raise StaleRevision(
                f"The state of {self.place} is at revision {state.revision}, not at {expected_revision}. Read it again, and decide again."
            )
        return state

    def _replace(self, state: State, epoch: int, leader: str, changes: Mapping[str, Any]) -> State:
        self.history.record(state)
        fields = {name: getattr(state, name) for name in FIELDS} | dict(changes)
        new = State(epoch=epoch, revision=state.revision + 1, leader=leader, writer=self._writer, written=now(), **fields)
        content = new.content()
        new = State(**content, document=self._documents.write(self._key, content, state.document))
        if not self.history.append(new):
            self.history.record(new)
        return new


@dataclass(frozen=True)
class Decided:
    """What the mirror says, and of which revision of the state."""

    decision: Content = field(default_factory=dict)
    epoch: int = 0
    revision: int = 0
    document: Document | None = field(default=None, compare=False, repr=False)


class Decision:
    """The decision in an object of its own, for those who need no more than that. It follows the state and never goes back."""

    def __init__(self, documents: Documents, place: Place) -> None:
        self.place = place
        self._documents = documents
        self._key = place.key("decision")

    def read(self, known: Decided | None = None) -> Decided:
        document = self._documents.read(self._key, known.document if known else None)
        if document is None:
            return Decided()
        if known and document is known.document:
            return known
        decision, epoch, revision = (
            field_of(document, self._key, name, kind) for name, kind in (("decision", dict), ("epoch", int), ("revision", int))
        )
        return Decided(decision, epoch, revision, document)

    def publish(self, state: State) -> bool:
        """Bring the mirror up to date with a state. True if it was behind."""
        for _attempt in range(SWAP_TRIES):
            mirror = self.read()
            if not behind(mirror, state):
                return False
            content = {"decision": state.decision, "epoch": state.epoch, "revision": state.revision, "written": now()}
            try:
                self._documents.write(self._key, content, mirror.document)
            except (PreconditionFailed, Missing):
                continue
            return True
        raise CoordinationError(f"The decision of {self.place} changes faster than it can be written. Look for a second writer.")


def predicted(state: State, changes: Mapping[str, Any]) -> State:
    """What `StateStore.write` would make of a state."""
    if _is_so(state, changes):
        return state
    return replace(state, revision=state.revision + 1, **changes)


def differences(before: State, after: State) -> dict[str, Content]:
    """For a person who asks for a diff."""
    return {name: {field: getattr(state, field) for field in FIELDS} for name, state in (("before", before), ("after", after))}


def _is_so(state: State, changes: Mapping[str, Any]) -> bool:
    return all(getattr(state, name) == value for name, value in changes.items())


def behind(mirror: Decided, state: State) -> bool:
    return mirror.revision < state.revision and mirror.decision != state.decision


def _fenced(place: Place, epoch: int, state: State) -> Fenced:
    return Fenced(f"The state of {place} is sealed with epoch {state.epoch} by {state.leader}; epoch {epoch} is over. Nothing was written.")
