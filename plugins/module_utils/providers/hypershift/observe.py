# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the HostedCluster and the NodePools of a cluster report. Pure; it sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...common.timestamps import parse_time
from ...common.types import Object
from ..base import ClusterRef
from ..model import AVAILABLE, DEGRADED, FALSE, INFRASTRUCTURE_READY, TRUE, ConditionState, NodeSet, ObservedCluster, State
from ..objects import api_url, condition_state_of, is_deleting, is_outdated, is_true, resource_class_of

NODE_CONDITIONS = ("Ready", "AllMachinesReady", "AllNodesHealthy")


def observed_cluster(ref: ClusterRef, cluster: Object | None, pools: Sequence[Object]) -> ObservedCluster:
    node_sets = _node_sets(pools, ref.class_label)
    if cluster is None:
        return ObservedCluster(status="cleanup" if pools else "absent", node_sets=node_sets)
    conditions = {kind: found for kind in (INFRASTRUCTURE_READY, AVAILABLE, DEGRADED) if (found := condition_state_of(cluster, kind))}
    state, details = _state(cluster, conditions, node_sets)
    return ObservedCluster(
        internal_id=f"{ref.namespace}/{ref.name}",
        external_id=str((cluster.get("spec") or {}).get("clusterID") or ""),
        status=state,
        status_details=details,
        node_sets=node_sets,
        api_url=api_url((cluster.get("status") or {}).get("controlPlaneEndpoint")),
        console_url=_console_url(cluster),
        version=str((cluster.get("spec") or {}).get("release", {}).get("image") or ""),
        retryable=False,
        installed=_is_installed(cluster),
        updating=_is_updating(cluster, node_sets),
        created_at=parse_time(cluster["metadata"].get("creationTimestamp")),
        conditions=conditions,
    )


def _state(cluster: Object, conditions: Mapping[str, ConditionState], node_sets: Sequence[NodeSet]) -> tuple[State, str]:
    """The state, and why it is not ready."""
    if is_deleting(cluster):
        return "deprovisioning", "The HostedCluster is being deleted"
    valid = condition_state_of(cluster, "ValidConfiguration")
    if valid and valid.status == FALSE:
        return "failed", f"ValidConfiguration is {valid}"
    available, degraded = conditions.get(AVAILABLE), conditions.get(DEGRADED)
    if available is None:
        return "cluster_accepted", "HyperShift has not reported on the HostedCluster yet"
    if available.status != TRUE:
        return "cluster_provisioning", f"Available is {available}"
    if degraded and degraded.status == TRUE:
        return "cluster_provisioned", f"Degraded is {degraded}"
    missing = sum(max((item.requested or 0) - item.ready, 0) for item in node_sets)
    if missing:
        return "cluster_provisioned", f"{missing} nodes are not ready yet"
    if not _is_installed(cluster):
        return "cluster_provisioned", "The release is not installed completely yet"
    return "ready", ""


def _is_installed(cluster: Object) -> bool:
    return any(release.get("state") == "Completed" for release in _history(cluster))


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
        outdated=any(is_outdated(pool, condition) for condition in conditions),
        updating=is_true(pool, "UpdatingVersion") or is_true(pool, "UpdatingConfig"),
        deleting=is_deleting(pool),
    )


def _history(cluster: Object) -> list[Object]:
    """The releases, newest first."""
    return ((cluster.get("status") or {}).get("version") or {}).get("history") or []


def _is_updating(cluster: Object, node_sets: Sequence[NodeSet]) -> bool:
    """Whether a release or a configuration is rolled out, on the control plane or on nodes."""
    history = _history(cluster)
    rolling = is_true(cluster, "Progressing") or (bool(history) and history[0].get("state") != "Completed")
    return rolling or any(item.updating for item in node_sets)


def domain_of(cluster: Object) -> str:
    """The base domain, below a prefix that is the cluster's name unless set, even to nothing."""
    dns = (cluster.get("spec") or {}).get("dns") or {}
    if not dns.get("baseDomain"):
        return ""
    return ".".join(part for part in (dns.get("baseDomainPrefix", cluster["metadata"]["name"]), dns["baseDomain"]) if part)


def _console_url(cluster: Object) -> str:
    """The address that OpenShift gives its console."""
    domain = domain_of(cluster)
    return f"https://console-openshift-console.apps.{domain}" if domain else ""
