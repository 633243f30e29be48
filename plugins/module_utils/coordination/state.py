# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state of a workload and its history. The state is the source of truth for intent, decision and step.

- A new leader first seals the state with its epoch. From then on no write under an older epoch succeeds, however late
  it arrives.
- A revision is replaced only after it is in the history, so the history has no gaps, whichever process dies when.
- The history is create-only. A writer of the state keeps the newest entries, as many as it was configured to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..common.clock import utc_now
from ..s3.errors import CoordinationError, Fenced, NoSuchKey, PreconditionFailed, StaleRevision
from .documents import Content, Document, DocumentStore, WorkloadRef, required_field

FIELDS = ("intent", "decision", "step")
HISTORY_LIMIT = 1000
# Old entries are listed and deleted once in so many revisions.
PRUNE_INTERVAL = 50
WRITE_ATTEMPTS = 10


@dataclass(frozen=True)
class State:
    """Intent, decision and current step. Revision 0: the state was never written."""

    epoch: int = 0
    revision: int = 0
    intent: Content = field(default_factory=dict)
    decision: Content = field(default_factory=dict)
    step: str = ""
    leader: str = ""
    writer: str = ""
    written_at: str = ""
    document: Document | None = field(default=None, compare=False, repr=False)

    def content(self) -> Content:
        return {name: value for name, value in vars(self).items() if name != "document"}

    def has(self, changes: Mapping[str, Any]) -> bool:
        return all(getattr(self, name) == value for name, value in changes.items())


class History:
    """All revisions of the state of a workload, each in an object that is written once."""

    def __init__(self, documents: DocumentStore, workload: WorkloadRef) -> None:
        self._documents = documents
        self._prefix = workload.key("history/")

    def key(self, state: State) -> str:
        # Padded, so that keys sort by revision.
        return f"{self._prefix}{state.epoch:010d}-{state.revision:010d}"

    def record(self, state: State) -> None:
        """Write a revision unless it is recorded already."""
        for _attempt in range(WRITE_ATTEMPTS):
            if not state.revision or self._documents.read(self.key(state)):
                return
            if self.append(state):
                return
            # Another writer recorded this revision, or tried at the same moment: read again.
        raise CoordinationError(f"The store refuses to create {self.key(state)} although it does not exist. Check the store.")

    def append(self, state: State) -> bool:
        """Write a new revision. False if the store refused."""
        try:
            self._documents.write(self.key(state), state.content() | {"recorded_at": utc_now()}, None)
        except PreconditionFailed:
            return False
        return True

    def keys(self) -> list[str]:
        """All keys, oldest first."""
        return self._documents.store.keys(self._prefix)

    def entries(self, newest: int | None = None) -> list[Content]:
        """All entries, or the newest so many. Oldest first."""
        keys = self.keys()
        found = (self._documents.read(key) for key in keys[max(0, len(keys) - newest) if newest is not None else 0 :])
        return [document.content for document in found if document]

    def prune(self, keep: int = HISTORY_LIMIT) -> list[str]:
        """Delete all but the newest `keep` entries, at least one. Return the deleted keys."""
        keys = self.keys()
        old = keys[: max(0, len(keys) - max(1, keep))]
        for key in old:
            self._documents.store.delete(key)
        return old


class StateStore:
    """The state of a workload.

    Each write needs the current epoch, and succeeds only if the state is unchanged since it was read.
    """

    def __init__(self, documents: DocumentStore, workload: WorkloadRef, writer: str = "", keep: int = HISTORY_LIMIT) -> None:
        self.workload = workload
        self.history = History(documents, workload)
        self._documents = documents
        self._key = workload.key("state")
        self._writer = writer
        self._keep = keep

    def read(self, known: State | None = None) -> State:
        """Return the state, or `known` itself if it is unchanged."""
        document = self._documents.read(self._key, known.document if known else None)
        if document is None:
            return State()
        if known and document is known.document:
            return known
        return State(
            epoch=required_field(document, self._key, "epoch", int),
            revision=required_field(document, self._key, "revision", int),
            intent=required_field(document, self._key, "intent", dict),
            decision=required_field(document, self._key, "decision", dict),
            step=required_field(document, self._key, "step", str),
            leader=required_field(document, self._key, "leader", str),
            writer=str(document.content.get("writer", "")),
            written_at=str(document.content.get("written_at", "")),
            document=document,
        )

    def seal(self, epoch: int) -> State:
        """Seal the state with the epoch of a new leader, which is the writer.

        Idempotent; Fenced if another leader sealed it.
        """
        for _attempt in range(WRITE_ATTEMPTS):
            state = self.read()
            if state.epoch == epoch and state.leader == self._writer:
                return state
            if state.epoch >= epoch:
                raise _fenced(self.workload, epoch, state)
            try:
                return self._replace(state, epoch, self._writer, {})
            except (PreconditionFailed, NoSuchKey):
                # The previous leader wrote once more; the next attempt seals that revision too.
                continue
        raise CoordinationError(
            f"The state of {self.workload} changes faster than it can be sealed. Find the process that writes it under an old epoch."
        )

    def write(self, epoch: int, changes: Mapping[str, Any], expected_revision: int | None = None) -> State:
        """Change some of `FIELDS`. Nothing is written if the state has these values already."""
        state = self.check_write(epoch, changes, expected_revision)
        if state.has(changes):
            return state
        try:
            new = self._replace(state, epoch, state.leader, changes)
        except (PreconditionFailed, NoSuchKey) as error:
            raise StaleRevision(
                f"The state of {self.workload} has changed since revision {state.revision} was read. Nothing was written."
            ) from error
        # Not in `seal`: a new leader does not know how many entries the tasks keep.
        if new.revision % PRUNE_INTERVAL == 0:
            self.history.prune(self._keep)
        return new

    def check_write(self, epoch: int, changes: Mapping[str, Any], expected_revision: int | None = None) -> State:
        """Return the current state if `write` may make these changes; otherwise raise what `write` would."""
        unknown = sorted(set(changes) - set(FIELDS))
        if unknown:
            raise CoordinationError(f"The state has no field {', '.join(unknown)}. Its fields are {', '.join(FIELDS)}.")
        state = self.read()
        if state.epoch > epoch:
            raise _fenced(self.workload, epoch, state)
        if state.epoch < epoch:
            raise CoordinationError(f"The state of {self.workload} is not sealed with epoch {epoch}: the leader seals it first.")
        if expected_revision not in (None, state.revision) and not state.has(changes):
            raise StaleRevision(
                f"The state of {self.workload} is at revision {state.revision}, not {expected_revision}. Read it again and decide again."
            )
        return state

    def _replace(self, state: State, epoch: int, leader: str, changes: Mapping[str, Any]) -> State:
        self.history.record(state)
        fields = {name: getattr(state, name) for name in FIELDS} | dict(changes)
        new = State(epoch=epoch, revision=state.revision + 1, leader=leader, writer=self._writer, written_at=utc_now(), **fields)
        content = new.content()
        new = State(**content, document=self._documents.write(self._key, content, state.document))
        if not self.history.append(new):
            self.history.record(new)
        return new


def preview(state: State, changes: Mapping[str, Any]) -> State:
    """The state that `StateStore.write` would leave."""
    return state if state.has(changes) else replace(state, revision=state.revision + 1, **changes)


def diff(before: State, after: State) -> dict[str, Content]:
    """The fields before and after, as Ansible shows them with --diff."""
    return {name: {field: getattr(state, field) for field in FIELDS} for name, state in (("before", before), ("after", after))}


def _fenced(workload: WorkloadRef, epoch: int, state: State) -> Fenced:
    return Fenced(
        f"The state of {workload} is sealed with epoch {state.epoch} by {state.leader}; epoch {epoch} is over. Nothing was written."
    )
