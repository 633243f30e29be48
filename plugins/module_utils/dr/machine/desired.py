# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The VolumeReplicationGroup that a cluster should have, and the action that brings it there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...common.types import Object
from ..model import Action, DeleteVRG, DeployVRG
from ..ramen_api import FAILOVER, PRIMARY, SECONDARY
from ..vrg import VRG
from .context import Context

# The fields that the state machine owns. An empty one is the same as none.
FIELDS = (
    "replicationState",
    "action",
    "dryRun",
    "prepareForFinalSync",
    "runFinalSync",
    "pvcSelector",
    "s3Profiles",
    "async",
    "sync",
    "volSync",
    "kubeObjectProtection",
    "protectedNamespaces",
)
PVC_STATUS = ("conditions", "lastSyncTime", "lastSyncDuration", "lastSyncBytes")


def primary_spec(context: Context, cluster: str, **flags: bool) -> Object:
    """`flags` are dryRun, prepareForFinalSync and runFinalSync."""
    return _spec(context, PRIMARY, _profiles(context, cluster)) | {"volSync": _volsync(context, cluster)} | flags


def secondary_spec(context: Context, cluster: str) -> Object:
    return _spec(context, SECONDARY, _all_profiles(context)) | {"volSync": _volsync(context, cluster)}


def replicating_primary_spec(context: Context, cluster: str) -> Object:
    """A primary that sends to its peers. A new one receives no longer: while it is restored, it needs what it received."""
    received = (info for name in context.others if (peer := context.own(name)) for info in peer.rd_info)
    sources = [_peer_pvc(info, "protectedPVC", "rsyncTLS") for info in received]
    return primary_spec(context, cluster) | {"volSync": _settings(context) | ({"rsSpec": sources} if sources else {})}


def replicating_secondary_spec(context: Context, cluster: str) -> Object:
    """A secondary that receives what the primary protects. Without a report of the primary it stays as it is."""
    spec, primary = secondary_spec(context, cluster), context.own(context.target)
    if not primary or not primary.reports_primary:
        return spec
    received = [{"protectedPVC": _lasting(pvc)} for pvc in primary.volsync_pvcs]
    return spec | {"volSync": _settings(context) | ({"rdSpec": received} if received else {})}


def reconcile_vrg(context: Context, cluster: str, spec: Object, epoch: int = 0) -> tuple[Action, ...]:
    """What is left to do on a cluster that answers, until it has this spec, written under this epoch or a later one.

    What an earlier protection left behind is deleted first.
    """
    found = context.vrgs.get(cluster)
    if not context.answered(cluster) or (found and found.deleting):
        return ()
    foreign = found.owner if found and not context.is_owned(found) else ""
    if foreign and cluster in context.state.leftovers:
        return (DeleteVRG(cluster, foreign),)
    wanted = {name: spec[name] for name in FIELDS if spec.get(name)}
    if found and context.is_owned(found) and found.epoch >= epoch and is_in_step(found, wanted):
        return ()
    return (DeployVRG(cluster, wanted, context.state.uid, foreign),)


def is_in_step(vrg: VRG, spec: Mapping[str, Any]) -> bool:
    return all((vrg.spec.get(name) or None) == (spec.get(name) or None) for name in FIELDS)


def _spec(context: Context, role: str, profiles: list[str]) -> Object:
    intent, policy = context.intent, context.policy
    return {
        "replicationState": role,
        "action": context.action,
        "pvcSelector": intent.pvc_selector,
        "s3Profiles": profiles,
        "sync" if policy.synchronous else "async": policy.replication,
        "kubeObjectProtection": intent.kube_objects,
        "protectedNamespaces": list(intent.protected_namespaces),
    }


def _all_profiles(context: Context) -> list[str]:
    return sorted({member.s3_profile for member in context.policy.members if member.s3_profile})


def _profiles(context: Context, cluster: str) -> list[str]:
    """While a failover is in progress, a primary does not need the stores of the sites that did not answer when it began."""
    request = context.state.request
    if not request or request.kind != FAILOVER or cluster != request.target:
        return _all_profiles(context)
    alive = {member.s3_profile for member in context.policy.members if member.name not in request.unanswered}
    return sorted(alive - {""}) or _all_profiles(context)


def _settings(context: Context) -> Object:
    given = context.intent.volsync or {}
    return {name: given[name] for name in ("disabled", "moverConfig") if given.get(name)}


def _volsync(context: Context, cluster: str) -> Object:
    """What the cluster sends or receives now, unchanged."""
    found = context.own(cluster)
    present = (found.spec.get("volSync") or {}) if found else {}
    return _settings(context) | {name: present[name] for name in ("rdSpec", "rsSpec") if present.get(name)}


def _peer_pvc(info: Object, *names: str) -> Object:
    return {name: _lasting(info[name]) for name in names if info.get(name)}


def _lasting(pvc: Object) -> Object:
    return {name: value for name, value in pvc.items() if name not in PVC_STATUS}
