# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the Cluster and the MachineDeployments of a cluster report. Pure; it sends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...common.timestamps import parse_time
from ...common.types import Object
from ..base import ClusterRef
from ..model import AVAILABLE, DEGRADED, FALSE, INFRASTRUCTURE_READY, TRUE, ConditionState, NodeSet, ObservedCluster, State
from ..objects import api_url, condition_state_of, is_deleting, is_outdated, is_true, resource_class_of
from .topology import class_of_entry, entries_of, topology_of

DEPLOYMENT_LABEL = "topology.cluster.x-k8s.io/deployment-name"
RECONCILE_FAILED = "ReconcileFailed"


def observed_cluster(ref: ClusterRef, cluster: Object | None, deployments: Sequence[Object]) -> ObservedCluster:
    node_sets = tuple(_node_sets(cluster, deployments, ref.class_label))
    if cluster is None:
        return ObservedCluster(status="cleanup" if deployments else "absent", node_sets=node_sets)
    conditions = dict(_conditions(cluster))
    state, details = _state(cluster, conditions, node_sets)
    version = _version(cluster, deployments)
    installed = bool(((cluster.get("status") or {}).get("initialization") or {}).get("controlPlaneInitialized"))
    updating = _is_updating(cluster) or any(item.updating for item in node_sets)
    return ObservedCluster(
        internal_id=f"{ref.namespace}/{ref.name}",
        status=state,
        status_details=details,
        node_sets=node_sets,
        api_url=api_url((cluster.get("spec") or {}).get("controlPlaneEndpoint")),
        version=version,
        # Cluster API reports no version that is rolled out completely: it is known while nothing is rolled out.
        running_version=version if installed and not updating else "",
        installed=installed,
        updating=updating,
        created_at=parse_time(cluster["metadata"].get("creationTimestamp")),
        conditions=conditions,
    )


def _conditions(cluster: Object) -> Iterator[tuple[str, ConditionState]]:
    """The conditions of the cluster: Available is that of its control plane, since the nodes are counted separately."""
    infrastructure = _with_message(cluster, "InfrastructureReady", "The infrastructure is ready")
    if infrastructure:
        yield INFRASTRUCTURE_READY, infrastructure
    available = _with_message(cluster, "ControlPlaneAvailable", "The control plane is available")
    if not available:
        return
    probe = condition_state_of(cluster, "RemoteConnectionProbe")
    if available.status == TRUE and probe and probe.status != TRUE:
        available = probe
    yield AVAILABLE, available
    if available.status == TRUE:
        lost = infrastructure if infrastructure and infrastructure.status == FALSE else None
        remediating = condition_state_of(cluster, "Remediating")
        cause = lost or (remediating if remediating and remediating.status == TRUE else None)
        yield DEGRADED, ConditionState(TRUE, cause.reason, cause.message) if cause else ConditionState(FALSE, "AsExpected")


def _with_message(cluster: Object, kind: str, if_true: str) -> ConditionState | None:
    """A condition. Cluster API gives a true one no message."""
    state = condition_state_of(cluster, kind)
    return replace(state, message=if_true) if state and state.status == TRUE and not state.message else state


def _state(cluster: Object, conditions: Mapping[str, ConditionState], node_sets: Sequence[NodeSet]) -> tuple[State, str]:
    """The state, and why it is not ready."""
    if is_deleting(cluster):
        deleting = condition_state_of(cluster, "Deleting")
        return "deprovisioning", f"Deleting is {deleting}" if deleting else "The Cluster is being deleted"
    reconciled = condition_state_of(cluster, "TopologyReconciled")
    if reconciled and reconciled.status == FALSE and reconciled.reason == RECONCILE_FAILED:
        return "failed", f"TopologyReconciled is {reconciled}"
    infrastructure, available, degraded = (conditions.get(kind) for kind in (INFRASTRUCTURE_READY, AVAILABLE, DEGRADED))
    if available is None:
        return "cluster_accepted", "Cluster API has not reported on the Cluster yet"
    if available.status != TRUE:
        if infrastructure and infrastructure.status != TRUE:
            return "cluster_provisioning", f"InfrastructureReady is {infrastructure}"
        return "cluster_provisioning", f"ControlPlaneAvailable is {available}"
    if degraded and degraded.status == TRUE:
        return "cluster_provisioned", f"Degraded is {degraded}"
    missing = sum(max((item.requested or 0) - item.ready, 0) for item in node_sets)
    if missing:
        workers = condition_state_of(cluster, "WorkersAvailable")
        return "cluster_provisioned", f"{missing} nodes are not ready yet" + (f": WorkersAvailable is {workers}" if workers else "")
    whole = condition_state_of(cluster, "Available")
    if whole is None or whole.status != TRUE:
        return "cluster_provisioned", f"Available is {whole}"
    return "ready", ""


def _node_sets(cluster: Object | None, deployments: Sequence[Object], class_label: str) -> Iterator[NodeSet]:
    """Nodes with a resource class. Nodes without belong to no order, and are not counted."""
    entries = {entry["name"]: entry for entry in entries_of(cluster or {}) if class_of_entry(entry, class_label)}
    for name, entry in entries.items():
        made = next((item for item in deployments if resource_class_of(item, DEPLOYMENT_LABEL) == name), None)
        yield _node_set(name, class_of_entry(entry, class_label), entry.get("replicas"), made)
    for item in deployments:
        resource_class, name = resource_class_of(item, class_label), resource_class_of(item, DEPLOYMENT_LABEL)
        if not name and resource_class:
            yield _node_set(item["metadata"]["name"], resource_class, (item.get("spec") or {}).get("replicas"), item)
        elif name not in entries and resource_class:
            yield _node_set(name, resource_class, 0, item, deleting=True)  # not in the topology any more


def _node_set(name: str, resource_class: str, requested: int | None, made: Object | None, deleting: bool = False) -> NodeSet:
    if made is None:
        return NodeSet(name, resource_class, requested, 0)
    status, replicas = made.get("status") or {}, (made.get("spec") or {}).get("replicas")
    return NodeSet(
        name=name,
        resource_class=resource_class,
        requested=requested,
        ready=status.get("readyReplicas") or 0,
        outdated=is_outdated(made, status) or (requested is not None and requested != replicas),
        updating=is_true(made, "RollingOut"),
        deleting=deleting or is_deleting(made),
    )


def _is_updating(cluster: Object) -> bool:
    """Whether another version or configuration is rolled out, or waits for it."""
    reconciled = condition_state_of(cluster, "TopologyReconciled")
    waits = reconciled is not None and reconciled.status == FALSE and "Upgrad" in reconciled.reason
    return waits or is_true(cluster, "RollingOut")


def _version(cluster: Object, deployments: Sequence[Object]) -> str:
    """The requested version; without a topology it is that of the machines."""
    machines = [(((item.get("spec") or {}).get("template") or {}).get("spec") or {}).get("version") for item in deployments]
    return str(topology_of(cluster).get("version") or next(filter(None, machines), ""))
