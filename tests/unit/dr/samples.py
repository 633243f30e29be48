"""Objects and values for the tests of disaster recovery."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import (
    Action,
    Intent,
    Member,
    Observations,
    Placed,
    Policy,
    Workload,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.ramen_api import DRPC_UID, EPOCH, REVISION
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Absent, Found, ReadResult, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import Decision, Request, State

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
    """A VolumeReplicationGroup that reports the role of its spec.

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


SECONDARY_TRUE = ("DataReady", "DataProtected")


def secondary(**changes: Any) -> Object:
    return vrg("secondary", true=changes.pop("true", SECONDARY_TRUE), **changes)


def answers(**vrgs: Object | str | None) -> dict[str, ReadResult]:
    """An object: found; None: absent; a text: unreachable for this reason."""
    return {name: _answer(item) for name, item in vrgs.items()}


def _answer(item: Object | str | None) -> ReadResult:
    if item is None:
        return Absent()
    return Unreachable(item) if isinstance(item, str) else Found(item)


RUNNING, STOPPED, STOPPING = Workload(2, 2), Workload(0, 0, idle=2), Workload(0, 1, idle=2)
DEAD = "no route to host"


def observed(
    east: Object | str | None,
    west: Object | str | None,
    *,
    placed: Placed | None = None,
    minutes: float = 0,
    workloads: dict[str, Workload] | None = None,
    **fields: Any,
) -> Observations:
    """What two clusters answer. The workload runs on east unless `workloads` says otherwise."""
    found = {"east": RUNNING, "west": STOPPED} | (workloads or {})
    return Observations(at(minutes), answers(east=east, west=west), found, placed or Placed("east"), **fields)


def settled(home: str = "east", last_action: str = "", **fields: Any) -> State:
    """The state of a workload that is protected, with nothing in progress."""
    phase = {"": "Deployed", "Failover": "FailedOver", "Relocate": "Relocated"}[last_action]
    values: Object = {"uid": UID, "phase": phase, "progression": "Completed", "home": home, "last_action": last_action, "peer_ready": True}
    return State(**(values | {"decision": Decision(home), "epoch": 1, "revision": 10} | fields))


def in_progress(kind: str, stage: str, target: str = "west", **fields: Any) -> State:
    """The state while a request is in progress, by default from east to west."""
    after = fields.pop("demoted", stage in ("Demote", "Promote", "Ready", "Place", "Clean", "Release") and kind in ("Failover", "Relocate"))
    request = Request(kind, target, stage, fields.pop("origin", "east"), 2, stamp(), after, stage in ("Promote", "Ready", "Place", "Clean"))
    return settled(**({"request": request, "peer_ready": kind != "Failover" or stage == "Check"} | fields))


def acting(intent: Intent, state: State, observations: Observations, under: Policy | None = None) -> tuple[Action, ...]:
    """What is done once the state is recorded."""
    for _number in range(10):
        result = step(intent, state, observations, under or policy())
        if result.state == state:
            return result.actions
        state = replace(result.state, revision=state.revision + 1)
    raise AssertionError("the state changes for ever")
