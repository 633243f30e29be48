# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the HostedCluster and the NodePools of a cluster report. Pure; it sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...common.timestamps import parse_time
from ...common.types import Object
from ..base import ClusterRef
from ..model import AVAILABLE, DEGRADED, FALSE, INFRASTRUCTURE_READY, TRUE, UNKNOWN, ConditionState, NodeSet, ObservedCluster, State
from ..objects import api_url, condition_state_of, is_deleting, is_outdated, is_true, resource_class_of
from . import release

NODE_CONDITIONS = ("Ready", "AllMachinesReady", "AllNodesHealthy")
CONSOLE_URL = "consoleURL"  # what is recorded of the cluster, because only the cluster itself reports it


def observed_cluster(ref: ClusterRef, cluster: Object | None, pools: Sequence[Object], recorded: ObservedCluster) -> ObservedCluster:
    node_sets = _node_sets(pools, ref.class_label)
    if cluster is None:
        return ObservedCluster(status="cleanup" if pools else "absent", node_sets=node_sets)
    conditions = _conditions(cluster)
    state, details = _state(cluster, conditions, node_sets)
    external_id = str((cluster.get("spec") or {}).get("clusterID") or "")
    found = ObservedCluster(
        internal_id=f"{ref.namespace}/{ref.name}",
        external_id=external_id,
        status=state,
        status_details=details,
        node_sets=node_sets,
        api_url=api_url((cluster.get("status") or {}).get("controlPlaneEndpoint")),
        version=release.requested_image(cluster),
        running_version=release.running_version(cluster),
        desired_version=release.desired_version(cluster),
        available_updates=release.available_updates(cluster),
        # What HyperShift refuses it checks again by itself, and what it lacks may come: only a refused release needs
        # another order.
        retryable=not release.refusal(cluster),
        installed=release.is_installed(cluster),
        updating=release.is_rolling_out(cluster) or any(item.updating for item in node_sets),
        change_refused=bool(release.refusal(cluster)),
        created_at=parse_time(cluster["metadata"].get("creationTimestamp")),
        conditions=conditions,
    )
    # What was recorded of an earlier cluster of this name says nothing of this one.
    return with_console(found, str(recorded.additional_info.get(CONSOLE_URL) or "")) if recorded.external_id == external_id else found


def with_console(cluster: ObservedCluster, url: str) -> ObservedCluster:
    """The cluster with the address of its console, where that is known."""
    return replace(cluster, console_url=url, additional_info={CONSOLE_URL: url}) if url else cluster


def _conditions(cluster: Object) -> dict[str, ConditionState]:
    """The conditions of the HostedCluster that every provider has. While it is not available, with the error of its reconciler."""
    found = {kind: state for kind in (INFRASTRUCTURE_READY, AVAILABLE, DEGRADED) if (state := condition_state_of(cluster, kind))}
    available, reconciled = found.get(AVAILABLE), condition_state_of(cluster, "ReconciliationSucceeded")
    if reconciled and reconciled.status == FALSE and (available is None or available.status != TRUE):
        reported = f"Available is {available}; " if available else ""
        status = available.status if available else UNKNOWN
        found[AVAILABLE] = ConditionState(status, reconciled.reason, f"{reported}ReconciliationSucceeded is {reconciled}")
    return found


def _state(cluster: Object, conditions: Mapping[str, ConditionState], node_sets: Sequence[NodeSet]) -> tuple[State, str]:
    """The state, and why it is not ready."""
    if is_deleting(cluster):
        return "deprovisioning", "The HostedCluster is being deleted"
    if refused := release.refusal(cluster) or _invalid(cluster):
        return "failed", refused
    available, degraded = conditions.get(AVAILABLE), conditions.get(DEGRADED)
    if available is None:
        return "cluster_accepted", "HyperShift has not reported on the HostedCluster yet"
    if available.status != TRUE:
        return "cluster_provisioning", f"Available is {available}"
    if degraded and degraded.status == TRUE:
        return "cluster_provisioned", f"Degraded is {degraded}"
    missing = sum(max((item.requested or 0) - item.ready, 0) for item in node_sets if item.counted)
    if missing:
        return "cluster_provisioned", f"{missing} nodes are not ready yet"
    if not release.is_installed(cluster):
        return "cluster_provisioned", "The release is not installed completely yet"
    return "ready", ""


def _invalid(cluster: Object) -> str:
    """Why HyperShift cannot work on the HostedCluster as it is; empty where it can."""
    kinds = ("ValidConfiguration",) if release.is_installed(cluster) else ("ValidConfiguration", "ValidReleaseImage")
    for kind in kinds:
        state = condition_state_of(cluster, kind)
        if state and state.status == FALSE:
            return f"{kind} is {state}"
    return ""


def _node_sets(pools: Sequence[Object], class_label: str) -> tuple[NodeSet, ...]:
    """The NodePools with a resource class. One without belongs to no order, and is not counted."""
    return tuple(_node_set(pool, resource_class) for pool in pools if (resource_class := resource_class_of(pool, class_label)))


def _node_set(pool: Object, resource_class: str) -> NodeSet:
    spec, status = pool.get("spec") or {}, pool.get("status") or {}
    conditions = [condition for condition in status.get("conditions") or [] if condition["type"] in NODE_CONDITIONS]
    return NodeSet(
        name=pool["metadata"]["name"],
        resource_class=resource_class,
        requested=None if spec.get("autoScaling") else spec.get("replicas") or 0,
        ready=status.get("replicas") or 0,
        # Nodes that join by themselves: HyperShift never counts them.
        counted=(spec.get("platform") or {}).get("type") != "None",
        outdated=any(is_outdated(pool, condition) for condition in conditions),
        updating=is_true(pool, "UpdatingVersion") or is_true(pool, "UpdatingConfig"),
        deleting=is_deleting(pool),
    )


def domain_of(cluster: Object) -> str:
    """The base domain, below a prefix that is the cluster's name unless set, even to nothing."""
    dns = (cluster.get("spec") or {}).get("dns") or {}
    if not dns.get("baseDomain"):
        return ""
    return ".".join(part for part in (dns.get("baseDomainPrefix", cluster["metadata"]["name"]), dns["baseDomain"]) if part)
