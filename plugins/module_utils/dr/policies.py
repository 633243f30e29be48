# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Validates a DRPolicy in place of Ramen's hub operator: its DRClusters exist on this cluster, and their clusters are known."""

from __future__ import annotations

from collections.abc import Collection

from ..common.timestamps import format_time
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import Conflict
from .ramen_api import FALSE, TRUE

CONDITION = "Validated"


def validate(kube: Kube, policy: Object, clusters: Collection[str], registered: Collection[str], *, write: bool) -> Object:
    """The policy with the condition Validated of its current generation, which is written if it differs. `clusters` are the DRClusters."""
    members = policy["spec"]["drClusters"]
    absent = [name for name in members if name not in clusters]
    unknown = [name for name in members if name not in registered]
    if absent:
        status, reason, message = FALSE, "DRClusterNotFound", f"This cluster has no DRCluster {', '.join(absent)}: create it here."
    elif unknown:
        status, reason, message = (
            FALSE,
            "ClusterNotRegistered",
            f"The cluster {', '.join(unknown)} is not known: register it, or import it.",
        )
    else:
        status, reason, message = TRUE, "Succeeded", "The DRClusters exist, and their clusters are known"
    conditions = list((policy.get("status") or {}).get("conditions") or [])
    before: Object = next((item for item in conditions if item["type"] == CONDITION), {})
    generation = policy["metadata"].get("generation", 0)
    wanted = {"type": CONDITION, "status": status, "reason": reason, "message": message, "observedGeneration": generation}
    if wanted == {name: value for name, value in before.items() if name != "lastTransitionTime"}:
        return policy
    since = before["lastTransitionTime"] if before.get("status") == status else None
    now = kube.server_time()
    wanted["lastTransitionTime"] = since or (format_time(now) if now else "1970-01-01T00:00:00Z")
    others = [item for item in conditions if item["type"] != CONDITION]
    new = policy | {"status": (policy.get("status") or {}) | {"conditions": [*others, wanted]}}
    if write:
        try:
            kube.patch(policy, {"status": {"conditions": [*others, wanted]}}, subresource="status")
        except Conflict:
            return new  # the other writer, or the next reconcile, writes the same
    return new
