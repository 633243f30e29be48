# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The placement decision without Open Cluster Management: it is the decision in the state of the workload.

The state in the bucket is the source of truth, and each change of the decision is a revision of it, written under the
epoch of the leader. Workloads are started and stopped by this decision; `status.preferredDecision` of the
DRPlacementControl only shows it.
"""

from __future__ import annotations

from collections.abc import Callable

from ...common.types import Object
from ...coordination.decision import DecisionStore
from ...coordination.documents import DocumentStore, WorkloadRef
from ...coordination.state import StateStore
from ...s3.store import ObjectStore
from ..decisions import cleared, from_content, placed, retained, to_content
from ..interfaces import Decision, Stamp


class DirectPlacement:
    """Placement in the bucket. `writer` names the process in the history.

    With `recorded` it reads the decision that it would publish, for a comparison: while ACM is active, ACM publishes it.
    """

    def __init__(self, store: ObjectStore, writer: str = "", *, recorded: bool = False) -> None:
        self._store = store
        self._writer = writer
        self._recorded = recorded

    def read(self, drpc: Object) -> Decision:
        """The decision as published: a killed process may have recorded another one and not published it."""
        if self._recorded:
            return from_content(self._states(drpc).read().decision)
        workload = _workload(drpc)
        return from_content(DecisionStore(DocumentStore(self._store, workload.identity()), workload).read().decision)

    def set(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._change(drpc, stamp, lambda decision: placed(decision, cluster))

    def retain(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._change(drpc, stamp, lambda decision: retained(decision, cluster))

    def clear(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._change(drpc, stamp, lambda decision: cleared(decision, cluster))

    def _change(self, drpc: Object, stamp: Stamp, change: Callable[[Decision], Decision]) -> bool:
        states = self._states(drpc)
        state = states.read()
        before = from_content(state.decision)
        after = change(before)
        if after != before:
            state = states.write(stamp.epoch, {"decision": to_content(after)}, state.revision)
        # Also the one that is in the state already: a killed process may have written it and not published it.
        DecisionStore(DocumentStore(self._store, states.workload.identity()), states.workload).publish(state)
        return after != before

    def _states(self, drpc: Object) -> StateStore:
        workload = _workload(drpc)
        return StateStore(DocumentStore(self._store, workload.identity()), workload, self._writer)


def _workload(drpc: Object) -> WorkloadRef:
    return WorkloadRef(drpc["metadata"]["namespace"], drpc["metadata"]["name"])
