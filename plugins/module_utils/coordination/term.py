# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a term begins: before any other write, the new leader seals the state and publishes the decision."""

from __future__ import annotations

from ..s3.errors import Fenced
from ..s3.store import ObjectStore
from .decision import DecisionStore
from .documents import DocumentStore
from .lease import Lease
from .state import State, StateStore


def begin_term(store: ObjectStore, lease: Lease) -> State:
    """Seal the state for the holder of `lease`. Idempotent.

    Fenced, with the lease released, if a later epoch sealed it.
    """
    documents = DocumentStore(store, lease.workload.identity())
    try:
        state = StateStore(documents, lease.workload, lease.instance).seal(lease.epoch)
    except Fenced:
        lease.release()
        raise
    DecisionStore(documents, lease.workload).publish(state)
    return state
