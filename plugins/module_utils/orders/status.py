# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status of a ClusterOrder, derived from its observed state and from what a run reported. Pure: it reads and writes nothing else.

The phase, first match first: Deleting; Ready, when all conditions hold and no change is being rolled out; Degraded, when this spec was
Ready before; Failed, when its last run failed or was lost, or its cluster failed; Degraded, when nothing is missing but what Flux could
not apply; Progressing. An Unknown condition changes no phase.
"""

from __future__ import annotations

from datetime import datetime

from ..common.text import shortened
from ..common.types import Object
from ..providers.model import AVAILABLE, FALSE, INFRASTRUCTURE_READY, TRUE, UNKNOWN, ConditionState, ObservedCluster
from . import conditions
from .gitops import NOT_READY as GITOPS_NOT_READY
from .gitops import cluster_with_gitops, gitops_states
from .infrastructure import cluster_with_parts, infrastructure_ready, updated_parts
from .model import (
    CLUSTER_FAILED,
    DEGRADED,
    DELETING,
    FAILED,
    MESSAGE_LIMIT,
    PROGRESSING,
    READY,
    ClusterOrder,
    Failure,
    config_version,
    with_failure,
)
from .nodes import existing_nodes, node_counts, ready_column, wanted_nodes
from .observe import ObservedState, provider_type
from .outcome import LostRun, Outcome, UnstartedRun

VERSION_LIMIT, UPDATES_LIMIT = 255, 100  # of the CRD; a cluster reports its versions itself


def derive_status(
    order: ClusterOrder,
    observed: ObservedState,
    now: datetime,
    outcome: Outcome | None = None,
    lost_run: LostRun | UnstartedRun | None = None,
) -> Object:
    """The status the order should have. It equals `order.status` when nothing changed, and then needs no write.

    A run reports its `outcome`. For a run that can no longer report, `lost_run` is what its lock shows; for one that has not begun, what
    its launcher knows.

    Where the order's spec is not the one applied, `configVersion` is removed at once: half of a change may exist by the time a tenant
    reverts it. So a run writes the derived status before its first change to the cluster.
    """
    report = outcome if outcome is not None and outcome.is_about(order) else None
    applied = order.is_applied or (report is not None and report.step == "provision" and report.finished)
    cluster = observed.cluster
    failure = _failure(order, report, lost_run, cluster, now)
    nodes = node_counts(order, cluster.node_sets, wanted_nodes(order, report.node_requests if report else None))
    parts = updated_parts(order, report, now)
    gitops = gitops_states(order, report, observed.gitops)
    states = {
        "Accepted": conditions.accepted(order, report, applied),
        "NamespaceCreated": conditions.namespace_created(order, observed),
        "InfrastructureReady": infrastructure_ready(conditions.reported_by(cluster, INFRASTRUCTURE_READY), parts),
        "ControlPlaneCreated": conditions.control_plane_created(cluster),
        "ControlPlaneAvailable": conditions.reported_by(cluster, AVAILABLE),
        "ClusterAvailable": cluster_with_gitops(cluster_with_parts(conditions.cluster_available(cluster, nodes), parts), gitops),
        "NodesReady": conditions.nodes_ready(nodes),
        "TemplateApplied": conditions.template_applied(order, cluster, report, applied, failure),
        "Deleting": conditions.deleting(order, observed, report, failure),
        **gitops,
    }
    fields = {
        "phase": _phase(order, states, cluster.updating, failure),
        "observedGeneration": order.generation,
        "configVersion": config_version(order) if applied else None,
        "conditions": conditions.merged(order, cluster, report, states, now),
        "clusterReference": _cluster_reference(order, observed),
        "provider": _provider(order, cluster, report),
        "nodeRequests": existing_nodes(cluster.node_sets),
        "nodeSets": None if nodes is None else [item.to_status() for item in nodes],
        "readyNodes": None if nodes is None else ready_column(nodes),
        "version": _version(cluster),
        "apiURL": cluster.api_url or None,
        "consoleURL": cluster.console_url or None,
        "failure": failure,
        "infrastructure": [part.to_status() for part in parts] or None,
    }
    # Other fields stay: another controller may keep its own here.
    kept = {name: value for name, value in order.status.items() if name not in fields}
    status = kept | {name: value for name, value in fields.items() if value is not None}
    # The job is that of the last run with something to report: a run that changed nothing leaves the status unchanged.
    if outcome and outcome.job and not (outcome.finished and status == order.status):
        status["job"] = outcome.job.to_status()
    return status


def _phase(order: ClusterOrder, states: dict[str, ConditionState], updating: bool, failure: Object | None) -> str:
    if order.is_deleting:
        return DELETING
    available, applied = states["ClusterAvailable"].status, states["TemplateApplied"].status
    was_ready = order.is_applied and order.phase in (READY, DEGRADED)
    if was_ready:
        if FALSE in (available, applied):
            return DEGRADED
        # Updates and surplus nodes that the spec did not ask for take nothing away from the tenant.
        return order.phase if available == UNKNOWN else READY
    nodes = states["NodesReady"]
    if not updating and available == applied == TRUE and (nodes.status == TRUE or nodes.reason == conditions.NOT_COUNTED):
        return READY
    if failure:
        return FAILED
    # The cluster works without what Flux could not apply, and no run changes that.
    lacks_gitops = available == FALSE and states["ClusterAvailable"].reason == GITOPS_NOT_READY and applied == TRUE
    return DEGRADED if lacks_gitops and not updating else PROGRESSING


def _failure(
    order: ClusterOrder, report: Outcome | None, lost_run: LostRun | UnstartedRun | None, cluster: ObservedCluster, now: datetime
) -> Object | None:
    """What the run reports, else a lost run, else what the cluster reports; the same failure observed again is not counted again."""
    known: Object | None = order.status["failure"] if order.failure else None
    finished = report is not None and report.finished
    if report and report.failure:
        return dict(with_failure({"failure": known}, report.failure, now)["failure"])
    if lost_run and lost_run.is_about(order) and not finished:
        # Dated when it happened, not when it was observed: an observer that is late has waited already. A run that may
        # yet start is waited for first.
        failure, at = lost_run.failure(), lost_run.at
    elif cluster.status == "failed" and not order.is_deleting:
        failure, at = Failure(CLUSTER_FAILED, shortened(cluster.status_details, MESSAGE_LIMIT), retryable=cluster.retryable), now
    else:
        return None if finished or (known and known.get("reason") == CLUSTER_FAILED) else known
    if known and not finished and (known.get("reason"), known.get("message")) == (failure.reason, failure.message):
        return known
    return dict(with_failure({"failure": known}, failure, at)["failure"])


def _cluster_reference(order: ClusterOrder, observed: ObservedState) -> Object | None:
    """All four names or none: the CRDs require them. Service account and role binding are another controller's; we create none."""
    if not observed.namespace_exists:
        return None
    before = order.status.get("clusterReference") or {}
    return {
        "namespace": observed.namespace or order.working_namespace,
        "hostedClusterName": order.names.cluster_name(order.name) if observed.cluster.exists else "",
        "serviceAccountName": before.get("serviceAccountName") or "",
        "roleBindingName": before.get("roleBindingName") or "",
    }


def _version(cluster: ObservedCluster) -> Object | None:
    """The running and the desired version, and the updates that the provider recommends, as far as they are known."""
    known = {
        "running": shortened(cluster.running_version, VERSION_LIMIT),
        "desired": shortened(cluster.desired_version or cluster.version, VERSION_LIMIT),
        "availableUpdates": [shortened(version, VERSION_LIMIT) for version in cluster.available_updates[:UPDATES_LIMIT]],
    }
    return {name: value for name, value in known.items() if value} or None


def _provider(order: ClusterOrder, cluster: ObservedCluster, report: Outcome | None) -> Object | None:
    """The provider that serves the cluster, once it is known, and the ids that find it. Those of a deleted cluster stay until the next."""
    kind = provider_type(order) or (report.provider if report else "")
    if not kind:
        return None
    known = {key: value for key, value in order.status.get("provider", {}).items() if key != "type"}
    return {"type": kind, **(cluster.to_stored() if cluster.exists else known)}
