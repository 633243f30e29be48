"""The status that Ramen's cluster operator would write for a VolumeReplicationGroup: a pure function of what is observed.

A step that is not complete leaves the conditions of an earlier generation as they are. So a reader that ignores the generation is misled,
as it is by Ramen.
"""

from __future__ import annotations

import copy
import datetime
import enum
from dataclasses import dataclass

from ....plugins.module_utils.common.timestamps import format_time
from ....plugins.module_utils.common.types import Object
from .conditions import FALSE, TRUE, UNKNOWN, Condition, by_type, is_true, merged
from .volumes import PROVISIONER, REPLICATION_ID

DATA_READY, DATA_PROTECTED = "DataReady", "DataProtected"
CLUSTER_DATA_READY, CLUSTER_DATA_PROTECTED = "ClusterDataReady", "ClusterDataProtected"
KUBE_OBJECTS_READY, NO_CONFLICT = "KubeObjectsReady", "NoClusterDataConflict"
RESTORED, UNUSED = "Restored", "Unused"
NO_CLAIMS = "No PVCs are protected"


class Progress(enum.Enum):
    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """How far a step is, and the error of one that failed."""

    progress: Progress = Progress.PENDING
    message: str = ""

    @property
    def done(self) -> bool:
        return self.progress is Progress.DONE

    @property
    def failed(self) -> bool:
        return self.progress is Progress.FAILED


DONE, PENDING = Outcome(Progress.DONE), Outcome()


@dataclass(frozen=True)
class ProtectedClaim:
    """A claim of the group, when its data were last copied to a peer, and how many bytes they had."""

    claim: Object
    synced: datetime.datetime | None = None
    size: int = 0
    maintenance: bool = False  # its storage needs a maintenance mode before a failover

    def to_object(self) -> Object:
        metadata, spec = self.claim["metadata"], self.claim["spec"]
        entry: Object = {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "accessModes": spec["accessModes"],
            "csiProvisioner": PROVISIONER,
            "labels": metadata.get("labels") or {},
            "protectedByVolSync": False,
            "replicationID": {"id": REPLICATION_ID} | ({"modes": ["Failover"]} if self.maintenance else {}),
            "resources": spec["resources"],
            "storageClassName": spec.get("storageClassName", ""),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
        }
        if self.synced:
            entry |= {"lastSyncTime": format_time(self.synced), "lastSyncBytes": self.size}
        return entry


@dataclass(frozen=True)
class Observed:
    """What the stand-in knows of a group on one cluster. `wait` says what keeps it from being secondary."""

    problem: str = ""
    claims: tuple[ProtectedClaim, ...] = ()
    # As primary
    restored: Outcome = PENDING
    protected: bool = False
    uploaded: Outcome = PENDING
    mirrored: bool = False  # the peer has every write, as with synchronous replication
    conflict: str = ""  # the other cluster that is primary too
    prepared: bool = False
    final_sync: bool = False
    # As secondary
    has_data: bool = False
    wait: str = ""
    replicated: bool = False  # from a primary, or to the peer before there is one


def group_status(vrg: Object, observed: Observed, now: str) -> Object:
    """The status of a group. `lastUpdateTime` changes only with something else."""
    before: Object = vrg.get("status") or {}
    known, generation = by_type(before), vrg["metadata"]["generation"]
    is_primary = vrg["spec"]["replicationState"] == "primary"
    wanted = _as_primary(vrg, observed, known) if is_primary else _as_secondary(vrg, observed, known)
    status: Object = copy.deepcopy(before)
    status["conditions"] = merged(known, wanted, generation, now)
    status["observedGeneration"] = generation
    status["state"] = _state(vrg, by_type(status))
    status["protectedPVCs"] = [claim.to_object() for claim in observed.claims]
    for name in ("lastGroupSyncTime", "lastGroupSyncBytes", "prepareForFinalSyncComplete", "finalSyncComplete", "kubeObjectProtection"):
        status.pop(name, None)
    if is_primary:
        status |= _syncs(observed) | _final_sync(vrg, observed) | _capture(vrg, observed, before, now)
    without_time = {name: value for name, value in status.items() if name != "lastUpdateTime"}
    if without_time != {name: value for name, value in before.items() if name != "lastUpdateTime"}:
        status["lastUpdateTime"] = now
    return status


def _state(vrg: Object, known: dict[str, Object]) -> str:
    generation, spec = vrg["metadata"]["generation"], vrg["spec"]
    if not is_true(known, DATA_READY, generation):
        return "Unknown"
    if spec["replicationState"] == "primary":
        return "Primary"
    if spec.get("action") == "Relocate" and not is_true(known, DATA_PROTECTED, generation):
        return "Unknown"
    return "Secondary"


def _as_primary(vrg: Object, observed: Observed, known: dict[str, Object]) -> list[Condition | Object]:
    ready = observed.restored.done and observed.protected and not observed.problem
    return [
        _data_ready_as_primary(observed, known),
        _data_protected_as_primary(vrg, observed) if observed.restored.done else _kept(known, DATA_PROTECTED),
        _cluster_data_ready(observed, known),
        _cluster_data_protected(vrg, observed) if ready else _kept(known, CLUSTER_DATA_PROTECTED),
        Condition(KUBE_OBJECTS_READY, TRUE, "KubeObjectsRestored", "Kube objects restored") if ready else _kept(known, KUBE_OBJECTS_READY),
        _conflict(observed),
    ]


def _data_ready_as_primary(observed: Observed, known: dict[str, Object]) -> Condition | Object:
    if observed.problem:
        return Condition(DATA_READY, FALSE, "Error", observed.problem)
    if not observed.restored.done:
        return _kept(known, DATA_READY)
    if not observed.protected:
        return Condition(DATA_READY, FALSE, "Progressing", "PVCs of the group are being promoted")
    if not observed.claims:
        return Condition(DATA_READY, TRUE, UNUSED, NO_CLAIMS)
    return Condition(DATA_READY, TRUE, "Ready", f"{len(observed.claims)} PVCs of the group are ready for use")


def _data_protected_as_primary(vrg: Object, observed: Observed) -> Condition:
    """As primary it is False while data are replicated: there may always be a write that no peer has."""
    if not observed.claims:
        return Condition(DATA_PROTECTED, TRUE, UNUSED, NO_CLAIMS)
    if "sync" in vrg["spec"] and observed.mirrored:
        return Condition(DATA_PROTECTED, TRUE, DATA_PROTECTED, "The peer has every write")
    return Condition(DATA_PROTECTED, FALSE, "Replicating", "PVCs of the group are replicating")


def _cluster_data_ready(observed: Observed, known: dict[str, Object]) -> Condition | Object:
    if observed.restored.failed:
        return Condition(CLUSTER_DATA_READY, FALSE, "Error", f"Failed to restore PVs and PVCs: {observed.restored.message}")
    if not observed.restored.done:
        return _kept(known, CLUSTER_DATA_READY)
    return Condition(CLUSTER_DATA_READY, TRUE, RESTORED, observed.restored.message or "PVs and PVCs restored")


def _cluster_data_protected(vrg: Object, observed: Observed) -> Condition:
    if vrg["spec"].get("dryRun"):
        return Condition(CLUSTER_DATA_PROTECTED, TRUE, UNUSED, "A test failover uploads nothing")
    if observed.uploaded.failed:
        return Condition(CLUSTER_DATA_PROTECTED, FALSE, "UploadError", observed.uploaded.message)
    if not observed.uploaded.done:
        return Condition(CLUSTER_DATA_PROTECTED, FALSE, "Uploading", "PVs, PVCs and the group are being uploaded")
    return Condition(CLUSTER_DATA_PROTECTED, TRUE, "Uploaded", f"Uploaded to {', '.join(vrg['spec']['s3Profiles'])}")


def _conflict(observed: Observed) -> Condition:
    if observed.conflict:
        return Condition(NO_CONFLICT, FALSE, "ClusterDataConflictPrimary", f"The group is primary on {observed.conflict} too")
    return Condition(NO_CONFLICT, TRUE, "ConflictResolved", "No resource conflict")


def _as_secondary(vrg: Object, observed: Observed, known: dict[str, Object]) -> list[Condition | Object]:
    return [
        *_data_as_secondary(vrg, observed, known),
        Condition(CLUSTER_DATA_READY, TRUE, UNUSED, "PV and PVC restore skipped as Secondary"),
        Condition(CLUSTER_DATA_PROTECTED, TRUE, UNUSED, "Nothing is uploaded as Secondary"),
        Condition(KUBE_OBJECTS_READY, TRUE, UNUSED, "Restore of kube objects skipped as Secondary"),
        _conflict(observed),
    ]


def _data_as_secondary(vrg: Object, observed: Observed, known: dict[str, Object]) -> list[Condition | Object]:
    """Once the data are in sync they stay so in this generation, also when the primary no longer answers.

    A group that relocates is ready before its peer has all data: then only DataProtected tells.
    """
    generation, relocates = vrg["metadata"]["generation"], vrg["spec"].get("action") == "Relocate"
    if observed.problem:
        return [Condition(DATA_READY, FALSE, "Error", observed.problem), _kept(known, DATA_PROTECTED)]
    if observed.wait:
        return [Condition(DATA_READY, FALSE, "Progressing", observed.wait), Condition(DATA_PROTECTED, FALSE, "Replicating", observed.wait)]
    if not observed.has_data:
        return [Condition(kind, TRUE, UNUSED, NO_CLAIMS) for kind in (DATA_READY, DATA_PROTECTED)]
    if observed.replicated or is_true(known, DATA_PROTECTED, generation):
        return [
            Condition(DATA_READY, TRUE, "Replicated", "PVCs of the group are secondary"),
            Condition(DATA_PROTECTED, TRUE, DATA_PROTECTED, "The data are in sync with the peer"),
        ]
    waiting = "The data are not in sync with the peer yet"
    return [
        Condition(DATA_READY, TRUE, "Replicating", "PVCs of the group are secondary")
        if relocates
        else Condition(DATA_READY, FALSE, "Progressing", "The group waits for a primary to replicate from"),
        Condition(DATA_PROTECTED, FALSE, "Replicating", waiting),
    ]


def _kept(known: dict[str, Object], kind: str) -> Condition | Object:
    return known.get(kind) or Condition(kind, UNKNOWN, "Initializing", "Initializing VolumeReplicationGroup")


def _syncs(observed: Observed) -> Object:
    """The last sync of the group is the oldest one of its claims; none while one has none."""
    times = [claim.synced for claim in observed.claims]
    known = [time for time in times if time]
    if not times or len(known) < len(times):
        return {}
    return {"lastGroupSyncTime": format_time(min(known)), "lastGroupSyncBytes": sum(claim.size for claim in observed.claims)}


def _final_sync(vrg: Object, observed: Observed) -> Object:
    wanted = {"prepareForFinalSyncComplete": observed.prepared, "finalSyncComplete": observed.final_sync}
    asked = {"prepareForFinalSyncComplete": "prepareForFinalSync", "finalSyncComplete": "runFinalSync"}
    return {name: value for name, value in wanted.items() if vrg["spec"].get(asked[name]) and value}


def _capture(vrg: Object, observed: Observed, before: Object, now: str) -> Object:
    """The capture of kube objects: one for each generation. The stand-in captures nothing else than that it has done so."""
    if "kubeObjectProtection" not in vrg["spec"] or not (observed.restored.done and observed.protected):
        return {}
    known: Object = (before.get("kubeObjectProtection") or {}).get("captureToRecoverFrom") or {}
    if known.get("startGeneration") == vrg["metadata"]["generation"]:
        return {"kubeObjectProtection": {"captureToRecoverFrom": known}}
    number = 1 - known.get("number", 1)  # Ramen alternates between two
    capture = {"number": number, "startGeneration": vrg["metadata"]["generation"], "startTime": now, "endTime": now}
    return {"kubeObjectProtection": {"captureToRecoverFrom": capture}}
