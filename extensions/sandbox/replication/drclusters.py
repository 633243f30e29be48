"""What Ramen's hub operator and csi-addons would write: maintenance modes of a DRCluster, and the result of a NetworkFence. Pure.

While a cluster is fenced, no application of that cluster reaches its volumes. The condition Fenced of a DRCluster is not written here.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....plugins.module_utils.common.types import Object
from .conditions import FALSE, TRUE, Condition, by_type, merged
from .volumes import PROVISIONER, REPLICATION_ID

VALIDATED = "Validated"
FENCED, MANUALLY_FENCED = "Fenced", "ManuallyFenced"
PREFIX = "network-fence-"  # before the name of the cluster, as Ramen names it


def drcluster_status(cluster: Object, failing_over: bool, is_active: bool, now: str) -> Object:
    """The status of a DRCluster, with what others have written to it.

    `failing_over` says whether an application whose storage needs a maintenance mode fails over to it, `is_active` whether that mode is on.
    """
    before: Object = cluster.get("status") or {}
    known = by_type(before)
    validated = Condition(VALIDATED, TRUE, "Succeeded", "Validated the cluster")
    (condition,) = merged(known, [validated], cluster["metadata"]["generation"], now)
    status: Object = {name: value for name, value in before.items() if name != "maintenanceModes"}
    status["conditions"] = list((known | {VALIDATED: condition}).values())
    if failing_over:
        status["maintenanceModes"] = [_maintenance_mode(before, is_active, now)]
    return status


def fence_status(is_complete: bool, before: Object) -> Object:
    """The status of a NetworkFence. `is_complete` says whether its state has taken its time; until then the last result stays."""
    return {"result": "Succeeded", "message": "done by the stand-in"} if is_complete else before


def fenced_by(fence: Object) -> str:
    """The cluster that a NetworkFence cuts off from the storage; empty if it does not."""
    spec, status = fence["spec"], fence.get("status") or {}
    in_effect = spec.get("fenceState", FENCED) == FENCED and status.get("result") == "Succeeded"
    return str(fence["metadata"]["name"]).removeprefix(PREFIX) if in_effect else ""


def _maintenance_mode(before: Object, is_active: bool, now: str) -> Object:
    known: Object = next(iter(before.get("maintenanceModes") or []), {})
    status, reason = (TRUE, "Activated") if is_active else (FALSE, "Activating")
    condition = Condition("FailoverActivated", status, reason, "Failover maintenance mode of the storage")
    return {
        "storageProvisioner": PROVISIONER,
        "targetID": REPLICATION_ID,
        "state": "Completed" if is_active else "Progressing",
        "conditions": merged(by_type(known), [condition], 1, now),
    }


def is_failing_over(cluster: Object, controls: Iterable[Object]) -> bool:
    """Whether a DRPlacementControl fails over to the cluster, and has not arrived there yet."""
    return any(
        control["spec"].get("action") == "Failover"
        and control["spec"].get("failoverCluster") == cluster["metadata"]["name"]
        and (control.get("status") or {}).get("phase") in ("Initiating", "FailingOver")
        for control in controls
    )


def is_cut_off(cluster: Object) -> bool:
    """Whether a person says that the cluster is cut off."""
    return bool(cluster["spec"].get("clusterFence") == MANUALLY_FENCED)
