"""Objects and values for the tests of disaster recovery."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Intent, Member, Policy
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.vocabulary import DRPC_UID, EPOCH, REVISION

Object = dict[str, Any]

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
UID = "uid-1"
ALL_TRUE = ("ClusterDataReady", "DataReady", "DataProtected", "NoClusterDataConflict", "ClusterDataProtected")


def at(minutes: float = 0) -> datetime:
    return START + timedelta(minutes=minutes)


def stamp(minutes: float = 0) -> str:
    return format_time(at(minutes))


def intent(action: str = "", target: str = "", *, dry_run: bool = False, **fields: Any) -> Intent:
    """A DRPlacementControl that prefers east, or asks for an action."""
    failover = target if action == "Failover" else ""
    preferred = target if action == "Relocate" else "east"
    values: Object = {"generation": 1, "pvc_selector": {"matchLabels": {"app": "shop"}}, "preferred": preferred, "failover": failover}
    return Intent("shop", "database", **({"uid": UID, "action": action, "dry_run": dry_run} | values | fields))


def policy(interval: str = "5m", names: tuple[str, ...] = ("east", "west"), **fields: Any) -> Policy:
    members = tuple(Member(name, region=name, s3_profile=f"s3-{name}") for name in names)
    replication = {"schedulingInterval": interval} if interval else {"peerClasses": [{"storageClassName": "rbd"}]}
    return Policy(**({"name": "policy", "members": members, "scheduling_interval": interval, "replication": replication} | fields))


def condition(kind: str, status: str = "True", generation: int = 1, reason: str = "Ready", since: str = "") -> Object:
    found = {"type": kind, "status": status, "reason": reason, "message": "as reported", "observedGeneration": generation}
    return found | {"lastTransitionTime": since or stamp()}


def vrg(role: str = "primary", *, true: tuple[str, ...] = ALL_TRUE, generation: int = 1, **changes: Any) -> Object:
    """A VolumeReplicationGroup that reports the role it was told.

    `changes` are: owner, epoch, revision, spec, state, observed, conditions (more of them), and fields of the status.
    """
    owner, epoch, revision = (changes.pop(name, default) for name, default in (("owner", UID), ("epoch", 1), ("revision", 1)))
    observed, spec = changes.pop("observed", generation), changes.pop("spec", {})
    conditions = [condition(kind, generation=generation) for kind in true] + changes.pop("conditions", [])
    metadata = {"name": "database", "namespace": "shop", "uid": "vrg", "generation": generation} | changes.pop("metadata", {})
    metadata["annotations"] = {DRPC_UID: owner, EPOCH: str(epoch), REVISION: str(revision)}
    status = {"state": role.capitalize(), "observedGeneration": observed, "lastGroupSyncTime": stamp(), "conditions": conditions}
    return {"metadata": metadata, "spec": base_spec(role) | spec, "status": status | changes}


def base_spec(role: str, interval: str = "5m") -> Object:
    return {
        "replicationState": role,
        "pvcSelector": {"matchLabels": {"app": "shop"}},
        "s3Profiles": ["s3-east", "s3-west"],
        "async": {"schedulingInterval": interval},
    }
