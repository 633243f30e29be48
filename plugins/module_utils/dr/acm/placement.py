# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The placement decision of a Placement on the hub, which Open Cluster Management deploys the workload by.

The scheduler of the hub must not change it: the Placement has the annotation that disables scheduling. The stamp on the
PlacementDecision is written first, so that a late writer is refused before it changes the decision.
"""

from __future__ import annotations

from collections.abc import Callable

from ...common.types import Object
from ...kube.client import Kube, retry_on_conflict
from ...s3.errors import Fenced
from ..decisions import cleared, placed, retained
from ..interfaces import BadPlacement, Decision, Stamp
from ..kinds import CLUSTER_GROUP, PLACEMENT, PLACEMENT_DECISION, VERSIONS
from ..stamps import BadStamp, marks, position

LABEL = f"{CLUSTER_GROUP}/placement"
SCHEDULING_DISABLED = f"{CLUSTER_GROUP}/experimental-scheduling-disable"
PLACED, RETAINED = "DisasterRecovery", "RetainedForFailover"


class AcmPlacement:
    """Placement on a hub."""

    def __init__(self, hub: Kube) -> None:
        self._hub = hub

    def read(self, drpc: Object) -> Decision:
        """No decision if it refers to something else: then none can be written either, and the protection can still be ended."""
        if not _is_placement(drpc):
            return Decision()
        decisions = [entry for item in self._decisions(*_placement(drpc)) for entry in _entries(item)]
        home = next((entry["clusterName"] for entry in decisions if entry.get("reason") != RETAINED), "")
        return Decision(home, tuple(entry["clusterName"] for entry in decisions if entry.get("reason") == RETAINED))

    def set(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._change(drpc, stamp, lambda decision: placed(decision, cluster))

    def retain(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._change(drpc, stamp, lambda decision: retained(decision, cluster))

    def clear(self, drpc: Object, cluster: str, stamp: Stamp) -> bool:
        return self._change(drpc, stamp, lambda decision: cleared(decision, cluster))

    def _change(self, drpc: Object, stamp: Stamp, change: Callable[[Decision], Decision]) -> bool:
        return retry_on_conflict(lambda: self._try_change(drpc, stamp, change))

    def _try_change(self, drpc: Object, stamp: Stamp, change: Callable[[Decision], Decision]) -> bool:
        if not _is_placement(drpc):
            raise BadPlacement(
                f"DRPlacementControl {drpc['metadata']['namespace']}/{drpc['metadata']['name']} refers to a "
                f"{drpc['spec']['placementRef']['kind']}: only a Placement can be used."
            )
        namespace, name = _placement(drpc)
        owner = self._hub.find(VERSIONS[PLACEMENT], PLACEMENT, name, namespace)
        if owner is None:
            raise BadPlacement(f"The hub has no Placement {namespace}/{name}: create it, with the annotation {SCHEDULING_DISABLED}=true.")
        if (owner["metadata"].get("annotations") or {}).get(SCHEDULING_DISABLED) != "true":
            raise BadPlacement(
                f"The hub schedules Placement {namespace}/{name} itself: "
                f"run kubectl annotate placement {name} -n {namespace} {SCHEDULING_DISABLED}=true"
            )
        found = self._decisions(namespace, name)
        if len(found) > 1:
            raise BadPlacement(f"Placement {namespace}/{name} has {len(found)} PlacementDecisions: delete those without a decision.")
        item = found[0] if found else self._hub.create(_new_decision(owner))
        before = self.read(drpc)
        after = change(before)
        _require_not_newer(item, stamp)
        if after == before:
            return False
        marked = self._hub.patch(item, {"metadata": {"annotations": marks(stamp)}})
        entries = [{"clusterName": after.cluster, "reason": PLACED}] if after.cluster else []
        entries += [{"clusterName": cluster, "reason": RETAINED} for cluster in after.retained]
        self._hub.patch(marked, {"status": {"decisions": entries}}, subresource="status")
        return True

    def _decisions(self, namespace: str, name: str) -> list[Object]:
        return self._hub.list_all(VERSIONS[PLACEMENT_DECISION], PLACEMENT_DECISION, namespace, f"{LABEL}={name}")


def _placement(drpc: Object) -> tuple[str, str]:
    reference = drpc["spec"]["placementRef"]
    return reference.get("namespace") or drpc["metadata"]["namespace"], reference["name"]


def _is_placement(drpc: Object) -> bool:
    return drpc["spec"]["placementRef"].get("kind") in (None, "", PLACEMENT)


def _entries(item: Object) -> list[Object]:
    return [entry for entry in (item.get("status") or {}).get("decisions") or [] if entry.get("clusterName")]


def _new_decision(owner: Object) -> Object:
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": PLACEMENT, "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": VERSIONS[PLACEMENT_DECISION],
        "kind": PLACEMENT_DECISION,
        "metadata": {
            "name": f"{metadata['name']}-decision-1",
            "namespace": metadata["namespace"],
            "labels": {LABEL: metadata["name"]},
            "ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}],
        },
    }


def _require_not_newer(item: Object, stamp: Stamp) -> None:
    name = f"PlacementDecision {item['metadata']['namespace']}/{item['metadata']['name']}"
    try:
        newest = position(item)
    except BadStamp as error:
        raise BadPlacement(f"{name}: {error}. Restore or remove the annotation.") from None
    if newest > (stamp.epoch, stamp.revision):
        raise Fenced(f"{name} was written at epoch {newest[0]}, revision {newest[1]}: epoch {stamp.epoch} is over. Nothing was written.")
