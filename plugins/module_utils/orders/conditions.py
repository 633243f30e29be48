# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The conditions of a ClusterOrder, each from its observed state and from what runs reported. Pure functions.

- Accepted, TemplateApplied: what runs reported for the current spec.
- NamespaceCreated, ControlPlaneCreated: whether the namespace and the cluster exist.
- InfrastructureReady: what the provider reports, and the parts that the template's roles reported.
- ControlPlaneAvailable: what the provider reports.
- NodesReady: as many nodes as ordered, no fewer and no more: while surplus nodes or node sets exist, scaling down is in progress. Unknown
  where the provider cannot count them.
- ClusterAvailable: the sum for the tenant: a healthy control plane, an installed release, enough nodes, its infrastructure. Its message
  names the condition that is not met, which is why an order is Degraded.
- Deleting: the order is being deleted; its message names what still exists.
- GitOpsInstalled, GitOpsSourceReady, GitOpsSynced, ProfilesReady: of orders that use GitOps, see `gitops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..common.text import as_reason, shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..gitops.condition_types import MISSING
from ..gitops.condition_types import TYPES as GITOPS
from ..providers.model import AVAILABLE, FALSE, TRUE, UNKNOWN, ConditionState, ObservedCluster
from ..providers.model import DEGRADED as CLUSTER_DEGRADED
from .model import CLUSTER_FAILED, DELETING_CLUSTER, MESSAGE_LIMIT, ClusterOrder
from .nodes import NodeCount, ready_of_requested
from .observe import ObservedState
from .outcome import Outcome

NO_CLUSTER = ConditionState(FALSE, "ClusterMissing", "The cluster does not exist")
NOT_COUNTED = "NodesNotCounted"
NOT_REPORTED = ConditionState(FALSE, "Pending", "The cluster does not report it yet")


def accepted(order: ClusterOrder, report: Outcome | None, applied: bool) -> ConditionState:
    if report and report.accepted is False and report.failure:
        return ConditionState(FALSE, report.failure.reason, report.failure.message)
    if applied or (report and report.accepted):
        return ConditionState(TRUE, "Valid", "The template and its parameters are valid")
    before = order.condition("Accepted")
    if before and (before.get("observedGeneration") == order.generation or order.is_deleting):
        return ConditionState(before["status"], before["reason"], before["message"])
    return ConditionState(UNKNOWN, "NotChecked", "The template and its parameters are not checked yet")


def namespace_created(order: ClusterOrder, observed: ObservedState) -> ConditionState:
    name = observed.namespace or order.working_namespace
    if observed.namespace_exists:
        return ConditionState(TRUE, "NamespaceExists", f"The working namespace is {name}")
    if observed.namespace_taken:
        return ConditionState(FALSE, "NamespaceTaken", f"The namespace {name} does not belong to this order")
    if not order.names.external_controller:
        return ConditionState(FALSE, "NamespaceMissing", f"The namespace {name} does not exist")
    label = f"{order.names.order_label}={order.labels[order.names.order_label]}"
    waiting = f"the order's controller to create a namespace with the label {label} and to name it in status.clusterReference"
    if order.recorded_namespace:
        return ConditionState(FALSE, "NamespaceMissing", f"The namespace {name} does not exist; waiting for {waiting}")
    since = order.raw.get("metadata", {}).get("creationTimestamp", "its creation")
    return ConditionState(FALSE, "WaitingForController", f"Waiting since {since} for {waiting}")


def control_plane_created(cluster: ObservedCluster) -> ConditionState:
    if cluster.status == "unknown":
        return ConditionState(UNKNOWN, "ProviderUnavailable", cluster.status_details)
    address = f", its API server {cluster.api_url}" if cluster.api_url else ""
    return ConditionState(TRUE, "ClusterExists", f"The cluster is {cluster.internal_id}{address}") if cluster.exists else NO_CLUSTER


def reported_by(cluster: ObservedCluster, kind: str) -> ConditionState:
    return cluster.conditions.get(kind, NOT_REPORTED) if cluster.exists else NO_CLUSTER


def nodes_ready(nodes: Sequence[NodeCount] | None) -> ConditionState:
    if nodes is None:
        return ConditionState(FALSE, "NotPlanned", "The template has not set the number of nodes yet")
    ready, requested = ready_of_requested(nodes)
    surplus = sum(item.surplus for item in nodes)
    message = f"{ready} of {requested} nodes ready" + (f", {surplus} to be removed" if surplus else "")
    if not all(item.certain for item in nodes):
        return ConditionState(UNKNOWN, "Outdated", message)
    if ready < requested:
        return ConditionState(FALSE, "NodesMissing", message)
    if surplus:
        return ConditionState(FALSE, "ScalingDown", message)
    if uncounted := [item.resource_class for item in nodes if not item.counted]:
        return ConditionState(UNKNOWN, NOT_COUNTED, f"The provider cannot count the nodes of {', '.join(uncounted)}")
    return ConditionState(TRUE, "AllNodesReady", message)


def cluster_available(cluster: ObservedCluster, nodes: Sequence[NodeCount] | None) -> ConditionState:
    if not cluster.exists:
        return NO_CLUSTER
    if cluster.is_deleting:
        return ConditionState(FALSE, "ClusterDeleting", "The cluster is being deleted")
    if cluster.status == "failed" and not cluster.change_refused:
        return ConditionState(FALSE, CLUSTER_FAILED, cluster.status_details)
    control_plane = reported_by(cluster, AVAILABLE)
    if control_plane.status != TRUE:
        return ConditionState(control_plane.status, "ControlPlaneUnavailable", f"ControlPlaneAvailable is {control_plane}")
    degraded = cluster.conditions.get(CLUSTER_DEGRADED)
    if degraded and degraded.status == TRUE:
        return ConditionState(FALSE, "ClusterDegraded", f"The cluster's Degraded is {degraded}")
    if not cluster.installed:
        return ConditionState(FALSE, "Installing", "The installation of the release is not complete yet")
    ready = nodes_ready(nodes)
    # Surplus nodes do not keep the tenant from using the cluster. Of uncounted ones the installed release shows that
    # some work.
    if ready.status != TRUE and ready.reason not in ("ScalingDown", NOT_COUNTED):
        return ConditionState(ready.status, "NodesNotReady", f"NodesReady is {ready}")
    return ConditionState(TRUE, "Available", "The control plane and all nodes are available")


def was_applied(order: ClusterOrder, cluster: ObservedCluster) -> bool:
    """Whether the whole template was applied to this very cluster for the current spec."""
    before = order.condition("TemplateApplied")
    return bool(order.is_applied and before and before["status"] == TRUE and not _is_of_another_cluster(before, cluster))


def template_applied(
    order: ClusterOrder, cluster: ObservedCluster, report: Outcome | None, applied: bool, failure: Object | None
) -> ConditionState:
    if cluster.exists and (was_applied(order, cluster) or (report and report.finished and report.template_applied and applied)):
        return ConditionState(TRUE, "Applied", "The template is applied")
    if failure:
        task = f"{failure['task']}: " if failure.get("task") else ""
        return ConditionState(FALSE, failure["reason"], f"{task}{failure['message']}")
    if not cluster.exists:
        return NO_CLUSTER
    if not applied:
        return ConditionState(FALSE, "SpecNotApplied", "The order's spec is not applied yet")
    return ConditionState(FALSE, "PostInstallPending", "The template's post_install runs once the control plane is available")


def deleting(order: ClusterOrder, observed: ObservedState, report: Outcome | None, failure: Object | None) -> ConditionState:
    if not order.is_deleting:
        return ConditionState(FALSE, "NotRequested")
    if failure:
        return ConditionState(TRUE, failure["reason"], failure["message"])
    left = ["the cluster"] if observed.cluster.exists else []
    if node_sets := len(observed.cluster.node_sets):
        left.append(f"{node_sets} node set" + ("s" if node_sets > 1 else ""))
    if observed.namespace_exists:
        left.append("the namespace")
    message = f"Waiting for the deletion of {', '.join(left)}" if left else "Everything is deleted"
    before = order.condition("Deleting") or {}
    requested = (report is not None and report.finished) or before.get("reason") == DELETING_CLUSTER
    return ConditionState(TRUE, DELETING_CLUSTER if requested else "Requested", message)


def merged(
    order: ClusterOrder, cluster: ObservedCluster, report: Outcome | None, states: dict[str, ConditionState], now: datetime
) -> list[Object]:
    """The order's conditions with ours updated in place; new ones come last, and those of other controllers stay unchanged.

    Beside an external controller the conditions in `order.status` are ours only, so another one among them is a copy and is dropped.
    """
    beside = order.names.external_controller
    dropped = {kind for kind in GITOPS if kind not in states}  # the order has used them before
    was_run = report is not None and report.step == "post_install" and report.finished
    result: dict[str, Object] = {
        item["type"]: item
        for item in order.status.get("conditions", [])
        if item["type"] in states or not (beside or item["type"] in dropped)
    }
    for kind, state in states.items():
        before = result.get(kind, {})
        same = before.get("status") == state.status
        if kind == "TemplateApplied" and same and state.status == TRUE and _is_of_another_cluster(before, cluster):
            same = False  # applied to the previous cluster, now to this one
        if kind in GITOPS and state.reason == MISSING and (before.get("reason") != MISSING or was_run):
            same = False  # how long it is missing since it was applied decides when it is applied again
        result[kind] = {
            "type": kind,
            "status": state.status,
            "reason": as_reason(state.reason),
            "message": shortened(state.message, MESSAGE_LIMIT),
            "lastTransitionTime": before["lastTransitionTime"] if same else format_time(now),
            "observedGeneration": order.generation,
        }
    return list(result.values())


def _is_of_another_cluster(applied: Object, cluster: ObservedCluster) -> bool:
    """Whether the cluster was created after the template was applied: the changes inside the previous one are lost."""
    since = parse_time(applied.get("lastTransitionTime"))
    return bool(cluster.created_at and since and since < cluster.created_at)
