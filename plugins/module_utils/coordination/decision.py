# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The decision of a workload, published in an object of its own for readers that need nothing else of the state."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..common.clock import utc_now
from ..s3.errors import CoordinationError, NoSuchKey, PreconditionFailed
from .documents import Content, Document, DocumentStore, WorkloadRef, required_field
from .state import State

WRITE_ATTEMPTS = 10


@dataclass(frozen=True)
class PublishedDecision:
    """The decision as published, and the epoch and revision of the state that it is from."""

    decision: Content = field(default_factory=dict)
    epoch: int = 0
    revision: int = 0
    document: Document | None = field(default=None, compare=False, repr=False)

    def is_older_than(self, state: State) -> bool:
        """By epoch first: a state that was deleted and is created again counts its revisions from the beginning."""
        return (self.epoch, self.revision) < (state.epoch, state.revision)

    def is_replaced_by(self, state: State) -> bool:
        """Whether readers of the decision see another one once that of the state is published."""
        return self.is_older_than(state) and self.decision != state.decision


class DecisionStore:
    """The published decision. It follows the state by epoch and revision, and never goes back.

    A decision that is the same as before is published too: otherwise a publication that arrives late, of a revision between, would
    replace it.
    """

    def __init__(self, documents: DocumentStore, workload: WorkloadRef) -> None:
        self.workload = workload
        self._documents = documents
        self._key = workload.key("decision")

    def read(self, known: PublishedDecision | None = None) -> PublishedDecision:
        document = self._documents.read(self._key, known.document if known else None)
        if document is None:
            return PublishedDecision()
        if known and document is known.document:
            return known
        decision, epoch, revision = (
            required_field(document, self._key, name, kind) for name, kind in (("decision", dict), ("epoch", int), ("revision", int))
        )
        return PublishedDecision(decision, epoch, revision, document)

    def publish(self, state: State) -> bool:
        """Publish the decision of a state. True if readers see another decision than before."""
        for _attempt in range(WRITE_ATTEMPTS):
            published = self.read()
            if not published.is_older_than(state):
                return False
            content = {"decision": state.decision, "epoch": state.epoch, "revision": state.revision, "written_at": utc_now()}
            try:
                self._documents.write(self._key, content, published.document)
            except (PreconditionFailed, NoSuchKey):
                continue
            return published.is_replaced_by(state)
        raise CoordinationError(f"The decision of {self.workload} changes faster than it can be published. Find the second writer.")
