# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads the other DRPlacementControls that protect a common namespace on a common cluster. It decides nothing."""

from __future__ import annotations

from ..common.types import Object
from ..coordination.documents import DocumentStore, WorkloadRef
from ..coordination.state import State as StateDocument
from ..coordination.state import StateStore
from ..kube.client import Kube
from ..s3.store import ObjectStore
from .kinds import DR_POLICY, DRPC, RAMEN
from .model import Intent, Neighbor, Policy
from .readers import read_intent
from .state import State


def find_neighbors(kube: Kube, store: ObjectStore, intent: Intent, policy: Policy, ops: str) -> tuple[Neighbor, ...]:
    """Only a DRPlacementControl in `ops` protects namespaces of others: without one there, nothing else is read."""
    own, neighbors = (intent.namespace, intent.name), []
    for item in kube.list_all(RAMEN, DRPC, None if intent.namespace == ops else ops):
        other = read_intent(item)
        common = tuple(name for name in other.namespaces if name in intent.namespaces)
        if common and (other.namespace, other.name) != own and _shares_clusters(kube, item, policy):
            state = State.from_document(recorded_state(store, other))
            neighbors.append(Neighbor(f"{other.namespace}/{other.name}", common, bool(state.home or state.request)))
    return tuple(neighbors)


def recorded_state(store: ObjectStore, intent: Intent) -> StateDocument:
    """The state of the workload of another DRPlacementControl."""
    workload = WorkloadRef(intent.namespace, intent.name)
    return StateStore(DocumentStore(store, workload.identity()), workload).read()


def _shares_clusters(kube: Kube, drpc: Object, policy: Policy) -> bool:
    name = drpc["spec"]["drPolicyRef"]["name"]
    if name == policy.name:
        return True
    other = kube.find(RAMEN, DR_POLICY, name)
    return bool(other and {*other["spec"]["drClusters"]} & {*policy.clusters})
