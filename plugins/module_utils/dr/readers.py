# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read Ramen's objects into the values of `model`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..common.types import Object
from .dr_clusters import Fence, fence_of
from .model import Intent, Member, Policy, Workload
from .ramen_api import ENDED_EPOCH, GROUP_LABEL, NETWORK_MAPPING
from .vrg import StorageTarget, is_true, read_conditions, read_number
from .workloads import is_idle, is_pending, replicas_of

SELECTORS = ("replicationClassSelector", "volumeSnapshotClassSelector", "volumeGroupSnapshotClassSelector")


def read_intent(drpc: Object) -> Intent:
    metadata, spec = drpc["metadata"], drpc["spec"]
    return Intent(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation", 0),
        action=spec.get("action") or "",
        preferred=spec.get("preferredCluster") or "",
        failover=spec.get("failoverCluster") or "",
        dry_run=bool(spec.get("dryRun")),
        deleting="deletionTimestamp" in metadata,
        pvc_selector=spec.get("pvcSelector") or {},
        protected_namespaces=tuple(spec.get("protectedNamespaces") or ()),
        kube_objects=spec.get("kubeObjectProtection"),
        volsync=spec.get("volSyncSpec"),
        group=(metadata.get("labels") or {}).get(GROUP_LABEL, ""),
        network_mapping=(metadata.get("annotations") or {}).get(NETWORK_MAPPING, ""),
    )


def read_ended_epoch(drpc: Object) -> int:
    """The epoch that a person has confirmed to be over; 0 without one."""
    return read_number((drpc["metadata"].get("annotations") or {}).get(ENDED_EPOCH))


def read_policy(policy: Object, clusters: Iterable[Object]) -> Policy:
    """A policy with the DRClusters it names. One that does not exist is a member without a region, fence or store."""
    metadata, spec, status = policy["metadata"], policy["spec"], policy.get("status", {})
    found = {cluster["metadata"]["name"]: read_member(cluster) for cluster in clusters}
    return Policy(
        name=metadata["name"],
        members=tuple(found.get(name) or Member(name) for name in spec["drClusters"]),
        scheduling_interval=spec.get("schedulingInterval") or "",
        valid=is_true(read_conditions(status), "Validated", metadata.get("generation", 0)),
        deleting="deletionTimestamp" in metadata,
        replication=_replication(spec, status),
        network_mapping=str((spec.get("networkMappingRef") or {}).get("name") or ""),
    )


def with_fences(policy: Policy, copies: Iterable[Object]) -> Policy:
    """The policy with the fences of other copies of its DRClusters: whichever cluster fences a member, it is fenced for all."""
    fences: dict[str, list[Fence]] = {}
    for copy in copies:
        fences.setdefault(copy["metadata"]["name"], []).append(fence_of(copy))
    return replace(policy, members=tuple(_with_fences(member, fences.get(member.name, [])) for member in policy.members))


def _with_fences(member: Member, fences: list[Fence]) -> Member:
    return replace(
        member,
        fenced=member.fenced or any(fence.fenced for fence in fences),
        fencing=member.fencing or any(fence.requested for fence in fences),
    )


def read_member(cluster: Object) -> Member:
    metadata, spec, status = cluster["metadata"], cluster.get("spec", {}), cluster.get("status", {})
    fence = fence_of(cluster)
    return Member(
        name=metadata["name"],
        region=spec.get("region") or "",
        s3_profile=spec.get("s3ProfileName") or "",
        fenced=fence.fenced,
        fencing=fence.requested,
        deleting="deletionTimestamp" in metadata,
        maintenance=frozenset(_active(mode) for mode in status.get("maintenanceModes") or () if _is_activated(mode)),
    )


def read_workload(controllers: Iterable[Object]) -> Workload:
    """The Deployments and StatefulSets of a workload."""
    items = list(controllers)
    return Workload(
        wanted=sum(map(replicas_of, items)),
        running=sum(item.get("status", {}).get("replicas", 0) for item in items),
        idle=sum(map(is_idle, items)),
        pending=sum(map(is_pending, items)),
    )


def _replication(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Object:
    """What a VolumeReplicationGroup has under `async` or `sync`."""
    if not spec.get("schedulingInterval"):
        return _without_empty({"peerClasses": (status.get("sync") or {}).get("peerClasses")})
    selectors = {name: spec.get(name) for name in SELECTORS}
    return _without_empty({"schedulingInterval": spec["schedulingInterval"]} | selectors | {"peerClasses": _async_peers(status)})


def _async_peers(status: Mapping[str, Any]) -> Any:
    return (status.get("async") or {}).get("peerClasses")


def _without_empty(values: Mapping[str, Any]) -> Object:
    return {name: value for name, value in values.items() if value}


def _active(mode: Mapping[str, Any]) -> StorageTarget:
    return StorageTarget(mode["storageProvisioner"], mode["targetID"])


def _is_activated(mode: Mapping[str, Any]) -> bool:
    """The modes have no generation of their own: what counts is that the condition is True."""
    return any(item["type"] == "FailoverActivated" and item["status"] == "True" for item in mode.get("conditions") or ())
