# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Shows the state of a workload on this cluster's DRPlacementControl, as Ramen writes it. Only what differs is written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ..common.text import as_reason
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..coordination.documents import WorkloadRef
from ..kube.client import Kube, retry_on_conflict
from ..kube.errors import Conflict, KubeError
from ..s3.errors import S3Error
from .decisions import preferred_decision
from .interfaces import Decision
from .kinds import DRPC, RAMEN
from .machine.conditions import merged
from .model import ConditionState
from .ramen_api import TRUE
from .state import State

FINALIZER = "drpc.ramendr.openshift.io/finalizer"
LAST_CLUSTER = "drplacementcontrol.ramendr.openshift.io/last-app-deployment-cluster"
WAITING = "Waiting"
BUCKET_FAILED = "BucketUnavailable"
BUCKET_REMEDY = "The bucket with the state cannot be used, and nothing is done without it. Restore it or the access to it. "
LAST_ACTION = "ramendr.openshift.io/last-action"  # a label: ramenctl reads what a test failover is reverted to
REFRESH = timedelta(minutes=10)
GROUP_SYNC = ("lastGroupSyncTime", "lastGroupSyncDuration", "lastGroupSyncBytes")


def status_of(drpc: Object, state: State, conditions: Mapping[str, ConditionState], home: Object | None, now: datetime) -> Object:
    """The status that the copy should have. `home` is the VolumeReplicationGroup of the home; None: what was shown of it stays."""
    before, generation = drpc.get("status") or {}, drpc["metadata"].get("generation", 0)
    status: Object = {
        "phase": state.phase,
        "progression": state.progression,
        "observedGeneration": generation,
        "preferredDecision": preferred_decision(Decision(state.decision.cluster or state.home)),
        "actionStartTime": state.started_at,
        "actionDuration": _duration(state.duration),
        "conditions": merged(before.get("conditions") or [], conditions, generation, now),
        **(
            _shown(home)
            if home
            else {name: before.get(name) for name in ("resourceConditions", *GROUP_SYNC, "lastKubeObjectProtectionTime")}
        ),
    }
    status = {name: value for name, value in status.items() if value}
    return status | {"lastUpdateTime": _last_update(before, status, now)}


def show(kube: Kube, drpc: Object, state: State, status: Object) -> bool:
    """Write what differs. False if nothing does, or if the copy changed just now: the next reconcile shows it then."""
    try:
        written = _show_metadata(kube, drpc, state)
        before = drpc.get("status") or {}
        if status == before:
            return written is not None
        changes = {name: None for name in before if name not in status} | status
        kube.patch(written or drpc, {"status": changes}, subresource="status")
    except Conflict:
        return False
    return True


def show_failure(kube: Kube, workload: WorkloadRef, error: S3Error | KubeError) -> bool:
    """Show on this cluster's copy why a reconcile failed, and since when. The next one that does not fail shows the state again."""
    drpc = kube.find(RAMEN, DRPC, workload.name, workload.namespace)
    if drpc is None:
        return False
    stored = isinstance(error, S3Error)
    reason, remedy = (BUCKET_FAILED, BUCKET_REMEDY) if stored else (as_reason(type(error).__name__), "")
    conditions = list((drpc.get("status") or {}).get("conditions") or [])
    before: Object = next((item for item in conditions if item["type"] == WAITING), {})
    # Texts of a store differ from request to request; the first one stays.
    if (before.get("status"), before.get("reason")) == (TRUE, reason) and (stored or before["message"].endswith(str(error))):
        return False
    now = kube.server_time() or datetime.now(UTC)
    state = ConditionState(TRUE, reason, f"Since {format_time(now)}: {remedy}{error}")
    (wanted,) = merged(conditions, {WAITING: state}, drpc["metadata"].get("generation", 0), now)
    others = [wanted if item["type"] == WAITING else item for item in conditions]
    try:
        kube.patch(drpc, {"status": {"conditions": others if before else [*conditions, wanted]}}, subresource="status")
    except Conflict:
        return False
    return True


def release(kube: Kube, drpc: Object) -> bool:
    """Delete this cluster's copy, and remove the finalizer that keeps it."""

    def attempt() -> bool:
        metadata = drpc["metadata"]
        found = kube.find(drpc["apiVersion"], drpc["kind"], metadata["name"], metadata["namespace"])
        if not found or found["metadata"]["uid"] != metadata["uid"]:
            return False
        if "deletionTimestamp" not in found["metadata"]:
            kube.delete(found, checked=True)
        kept = [name for name in found["metadata"].get("finalizers") or [] if name != FINALIZER]
        if len(kept) != len(found["metadata"].get("finalizers") or []):
            fresh = kube.find(drpc["apiVersion"], drpc["kind"], metadata["name"], metadata["namespace"])
            if fresh:
                kube.patch(fresh, {"metadata": {"finalizers": kept or None}})
        return True

    return retry_on_conflict(attempt)


def _show_metadata(kube: Kube, drpc: Object, state: State) -> Object | None:
    metadata = drpc["metadata"]
    finalizers, annotations, labels = metadata.get("finalizers") or [], metadata.get("annotations") or {}, metadata.get("labels") or {}
    changes: Object = {}
    if FINALIZER not in finalizers and "deletionTimestamp" not in metadata:
        changes["finalizers"] = [*finalizers, FINALIZER]
    if state.home and annotations.get(LAST_CLUSTER) != state.home:
        changes["annotations"] = {LAST_CLUSTER: state.home}
    if labels.get(LAST_ACTION, "") != state.last_action:
        changes["labels"] = {LAST_ACTION: state.last_action or None}
    return kube.patch(drpc, {"metadata": changes}) if changes else None


def _shown(vrg: Object) -> Object:
    """What Ramen shows of the VolumeReplicationGroup of the home."""
    metadata, status = vrg["metadata"], vrg.get("status") or {}
    claims = [str(pvc["name"]) for pvc in status.get("protectedPVCs") or [] if pvc.get("name")]
    meta = {"kind": vrg["kind"], "name": metadata["name"], "namespace": metadata["namespace"], "generation": metadata.get("generation", 0)}
    capture: Mapping[str, Any] = (status.get("kubeObjectProtection") or {}).get("captureToRecoverFrom") or {}
    return {
        "resourceConditions": {
            "conditions": status.get("conditions") or [],
            "resourceMeta": meta | ({"protectedpvcs": claims} if claims else {}),
        },
        "lastKubeObjectProtectionTime": capture.get("endTime"),
    } | {name: status.get(name) for name in GROUP_SYNC}


def _last_update(before: Object, status: Object, now: datetime) -> str:
    """The same as before if nothing else changed, for ten minutes."""
    last = parse_time(before.get("lastUpdateTime"))
    same = {name: value for name, value in before.items() if name != "lastUpdateTime"} == status
    return str(before["lastUpdateTime"]) if same and last and now - last < REFRESH else format_time(now)


def _duration(seconds: int) -> str:
    """As Go writes durations."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if hours or minutes else "", f"{rest}s"]
    return "".join(parts) if seconds else ""
