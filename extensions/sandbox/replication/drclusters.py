"""The status that Ramen would write for a DRCluster: fencing and the maintenance modes of its storage. A pure function.

Fencing counts for the conditions of this generation; while a DRCluster is fenced, no application of that cluster reaches its volumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....plugins.module_utils.common.types import Object
from .conditions import FALSE, TRUE, Condition, by_type, is_true, merged
from .volumes import PROVISIONER, REPLICATION_ID

FENCED, CLEAN, VALIDATED = "Fenced", "Clean", "Validated"
FENCING_VALUES = ("Fenced", "ManuallyFenced")


def drcluster_status(cluster: Object, is_complete: bool, failing_over: bool, is_active: bool, now: str) -> Object:
    """The status of a DRCluster. `is_complete` says whether fencing, or its end, has taken its time.

    `failing_over` says whether an application whose storage needs a maintenance mode fails over to it, `is_active` whether that mode is on.
    """
    before: Object = cluster.get("status") or {}
    known = by_type(before)
    phase, conditions = _fencing(cluster["spec"].get("clusterFence", ""), known, is_complete)
    wanted = [*conditions, Condition(VALIDATED, TRUE, "Succeeded", "Validated the cluster")]
    status: Object = {"phase": phase, "conditions": merged(known, wanted, cluster["metadata"]["generation"], now)}
    if failing_over:
        status["maintenanceModes"] = [_maintenance_mode(before, is_active, now)]
    return status


def _fencing(fence: str, known: Mapping[str, Object], is_complete: bool) -> tuple[str, list[Condition]]:
    """The phase and the conditions Fenced and Clean. A person has done what is set manually."""
    if fence in FENCING_VALUES:
        if is_complete or fence == "ManuallyFenced":
            return "Fenced", [Condition(FENCED, TRUE, "Fenced", "Cluster fenced"), Condition(CLEAN, FALSE, "Fenced", "Cluster fenced")]
        return "Fencing", [Condition(FENCED, FALSE, "Fencing", "Fencing"), Condition(CLEAN, FALSE, "Fencing", "Fencing")]
    was_fenced = FENCED in known and known[FENCED]["reason"] not in ("Clean", "Unfenced")
    if was_fenced and not is_complete and fence != "ManuallyUnfenced":
        return "Unfencing", [Condition(FENCED, TRUE, "Unfencing", "Unfencing"), Condition(CLEAN, FALSE, "Unfencing", "Unfencing")]
    clean = Condition(CLEAN, TRUE, "Clean", "Cluster clean")
    if fence:
        return "Unfenced", [Condition(FENCED, FALSE, "Unfenced", "Cluster not fenced"), clean]
    return "Available", [Condition(FENCED, FALSE, "Clean", "Cluster not fenced"), clean]


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


def is_fenced(cluster: Object) -> bool:
    return is_true(by_type(cluster.get("status")), FENCED)
