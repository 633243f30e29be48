# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A ClusterOrder's status, and the next action for it, from what is seen. Pure: it reads and writes nothing but its arguments.

How the conditions are meant:

- Accepted, TemplateApplied: what runs reported, for the spec as it is now.
- NamespaceCreated, ControlPlaneCreated: whether the namespace and the cluster are there.
- InfrastructureReady, ControlPlaneAvailable: what the cluster's provider says.
- NodesReady: as many nodes as ordered, no fewer and no more: while nodes or classes that are no longer ordered still exist, scaling
  down isn't finished. Its message is what `kubectl get cord` shows.
- ClusterAvailable: the sum for whoever uses the cluster: a healthy control plane, an installed release, enough nodes. Its message
  names the condition that spoils it, which is why an order is Degraded.
- Deleting: the order is to go; its message says what is still there.

How they make the phase, first match first: Deleting; Ready, when all hold and nothing of a change is still being rolled out; Degraded,
when this spec had been Ready; Failed, when its last run failed or was killed, or its cluster failed; Progressing. An Unknown changes no
phase: it is no news.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..common.text import as_reason, shortened
from ..common.timestamps import format_time, parse_time
from ..common.types import Object
from ..providers.model import AVAILABLE, FALSE, INFRASTRUCTURE_READY, TRUE, UNKNOWN, ConditionState, NodeRequest, NodeSet, ObservedCluster
from ..providers.model import DEGRADED as CLUSTER_DEGRADED
from .model import (
    DEGRADED,
    DELETING,
    FAILED,
    MESSAGE_LIMIT,
    PROGRESSING,
    READY,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    ClusterOrder,
    Failure,
    config_version,
    with_failure,
    working_namespace,
)
from .observed import ObservedState, provider_type

Action = Literal["provision", "post_install", "delete"]

TAKING_DOWN = "TakingDown"  # reason of Deleting once a run has asked everything to go
CLUSTER_FAILED = "ClusterFailed"  # reason of a failure that is the cluster's, not a run's
NO_CLUSTER = ConditionState(FALSE, "ClusterMissing", "There is no cluster")
NOT_SAID = ConditionState(FALSE, "Pending", "The cluster does not say yet")


@dataclass(frozen=True)
class Job:
    """The run that works on an order."""

    id: str
    url: str = ""
    started_at: datetime | None = None

    @classmethod
    def from_status(cls, job: Object) -> Job:
        return cls(job["id"], job.get("url", ""), parse_time(job.get("startedAt")))

    def to_status(self) -> Object:
        job: Object = {"id": shortened(self.id, 255)}
        if self.url:
            job["url"] = shortened(self.url, 2048)
        if self.started_at:
            job["startedAt"] = format_time(self.started_at)
        return job


@dataclass(frozen=True)
class Outcome:
    """What a run reports of an order, beyond what can be seen, at its start and at its end, and the `job` that it is.

    `config_version` is that of the spec the run worked on: if the order has changed meanwhile, only the job is taken over.
    `finished` means that the step went through to its end, `template_applied` that no later step of the template is left to do.
    `accepted` is the verdict on template and parameters; with False comes a failure that says why. `node_requests` are those carried
    out, with the template's defaults in them. `provider` is the type of the one that serves the cluster.
    """

    step: Action
    config_version: str
    accepted: bool | None = None
    finished: bool = False
    template_applied: bool = False
    node_requests: tuple[NodeRequest, ...] | None = None
    provider: str = ""
    failure: Failure | None = None
    job: Job | None = None

    def is_about(self, order: ClusterOrder) -> bool:
        return self.config_version == config_version(order) and (self.step == "delete") == order.is_deleting

    def __post_init__(self) -> None:
        if self.accepted is False and self.failure is None:
            raise ValueError("an order is not refused without a failure that says why")


@dataclass(frozen=True)
class LostRun:
    """A run that was killed: it `began` when it took the order's lock, and is overdue since `at`, with the lock not given back."""

    holder: str
    at: datetime
    began: datetime | None = None

    def failure(self) -> Failure:
        return Failure(
            "RunLost",
            f"The run {self.holder} ended without a word, and its lock ran out at {format_time(self.at)}. "
            "The next run goes on from what it left.",
        )

    def is_about(self, order: ClusterOrder) -> bool:
        """Whether it was for this very order, and not for an earlier one of the same name."""
        created = parse_time(order.raw.get("metadata", {}).get("creationTimestamp"))
        return created is None or self.began is None or created <= self.began


@dataclass(frozen=True)
class NodeCount:
    """The nodes of one class: how many are wanted, ready, and too many. Not `certain` while an answer about them is outdated."""

    resource_class: str
    requested: int
    ready: int
    surplus: int
    certain: bool

    def to_status(self) -> Object:
        return {"resourceClass": self.resource_class, "requested": self.requested, "ready": self.ready}


def derive_status(
    order: ClusterOrder, world: ObservedState, now: datetime, outcome: Outcome | None = None, lost_run: LostRun | None = None
) -> Object:
    """The status the order should have. It equals `order.status` when nothing changed, and then needs no write.

    A run reports its `outcome`. Of one that can report no more, `lost_run` is what its lock tells.

    Where the order's spec is not the one carried out, `configVersion` goes at once: half a change may have been made by the time the
    old spec is put back. So whoever changes a cluster writes the derived status before the first change.
    """
    heard = outcome if outcome is not None and outcome.is_about(order) else None
    carried_out = order.is_carried_out or (heard is not None and heard.step == "provision" and heard.finished)
    cluster = world.cluster
    failure = _failure(order, heard, lost_run, cluster, now)
    nodes = _node_counts(order, cluster.node_sets, _wanted_nodes(order, heard))
    verdicts = {
        "Accepted": _accepted(order, heard, carried_out),
        "NamespaceCreated": _namespace_created(order, world),
        "InfrastructureReady": _said_by(cluster, INFRASTRUCTURE_READY),
        "ControlPlaneCreated": _control_plane_created(cluster),
        "ControlPlaneAvailable": _said_by(cluster, AVAILABLE),
        "ClusterAvailable": _cluster_available(cluster, nodes),
        "NodesReady": _nodes_ready(nodes),
        "TemplateApplied": _template_applied(order, cluster, heard, carried_out, failure),
        "Deleting": _deleting(order, world, heard, failure),
    }
    fields = {
        "phase": _phase(order, verdicts, cluster.updating, failure),
        "observedGeneration": order.generation,
        "configVersion": config_version(order) if carried_out else None,
        "conditions": _merged_conditions(order, cluster, verdicts, now),
        "clusterReference": _cluster_reference(order, world),
        "provider": _provider(order, cluster, heard),
        "nodeRequests": _existing_nodes(cluster.node_sets),
        "nodeSets": None if nodes is None else [item.to_status() for item in nodes],
        "apiURL": cluster.api_url or None,
        "consoleURL": cluster.console_url or None,
        "failure": failure,
    }
    # What is not ours stays: another controller may keep fields of its own here.
    kept = {name: value for name, value in order.status.items() if name not in fields}
    status = kept | {name: value for name, value in fields.items() if value is not None}
    # The job is that of the last run with anything to report: one that found all well leaves the order as it is.
    if outcome and outcome.job and not (outcome.finished and status == order.status):
        status["job"] = outcome.job.to_status()
    return status


def next_action(
    order: ClusterOrder,
    cluster: ObservedCluster,
    now: datetime,
    *,
    template_has_post_install: bool = True,
    external_controller: bool = False,
) -> Action | None:
    """What is to be done for the order now; None when nothing is, or something must be waited for.

    What is being deleted is waited for: its end is the next event. With an external controller `<group>/finalizer` is that one's to remove.
    """
    if order.management_state != "managed" or (order.failure and not order.failure.is_due(now)):
        return None
    if order.is_deleting:
        return "delete" if _must_delete(order, cluster, external_controller) else None
    wanted = _wanted_nodes(order)
    if cluster.is_going or any(item.going and item.resource_class in (wanted or ()) for item in cluster.node_sets):
        return None
    if not order.is_carried_out or not cluster.exists or not _asked_as_wanted(cluster.node_sets, wanted):
        return "provision"
    if not _was_applied(order, cluster):
        if not template_has_post_install:
            return "provision"
        return "post_install" if cluster.is_true(AVAILABLE) else None
    # All looks well, but the last run, say a repair of what can't be seen here, did not come to its end.
    return "provision" if order.failure else None


def _must_delete(order: ClusterOrder, cluster: ObservedCluster, external_controller: bool) -> bool:
    ours = {order.names.infrastructure_finalizer}
    if not external_controller:
        ours.add(order.names.controller_finalizer)
    if not ours.intersection(order.finalizers):
        return False
    asked = (order.condition("Deleting") or {}).get("reason") == TAKING_DOWN
    waiting = cluster.is_going or (not cluster.exists and any(item.going for item in cluster.node_sets))
    return not (asked and waiting)


def _wanted_nodes(order: ClusterOrder, heard: Outcome | None = None) -> dict[str, int] | None:
    """The ordered nodes by class; None while an order that names none has not met its template's defaults."""
    wanted: Counter[str] = Counter()
    if order.node_requests or (heard and heard.node_requests is not None):
        for request in order.node_requests or (heard and heard.node_requests) or ():
            wanted[request.resource_class] += max(request.number_of_nodes, 0)
    elif "nodeSets" in order.status:  # what the last run made of the defaults
        wanted.update({item["resourceClass"]: item["requested"] for item in order.status["nodeSets"] if item["requested"]})
    else:
        return None
    return dict(wanted)


def _asked_as_wanted(node_sets: Sequence[NodeSet], wanted: dict[str, int] | None) -> bool:
    """Whether what is asked for is what the order asks for. How many nodes there are already is another question."""
    if wanted is None:
        return True
    asked: Counter[str] = Counter()
    for item in node_sets:
        if item.going or item.given:
            continue
        if item.resource_class not in wanted:
            return False
        asked[item.resource_class] += wanted[item.resource_class] if item.asked is None else item.asked
    return all(asked[resource_class] == count for resource_class, count in wanted.items())


def _node_counts(order: ClusterOrder, node_sets: Sequence[NodeSet], wanted: dict[str, int] | None) -> list[NodeCount] | None:
    """The wanted classes, then those that are there and not wanted. None while it isn't known what is wanted."""
    if wanted is None:
        return None
    known = {item.get("resourceClass"): item.get("ready", 0) for item in order.status.get("nodeSets") or []}
    counts = []
    for resource_class in dict.fromkeys([*wanted, *(item.resource_class for item in node_sets)]):
        requested = wanted.get(resource_class, 0)
        mine = [item for item in node_sets if item.resource_class == resource_class]
        certain = not any(item.outdated for item in mine)
        # An outdated number is not taken over, and not taken for a loss either: the one known before stays.
        reported = sum(item.ready for item in mine) if certain else known.get(resource_class, 0)
        surplus = max(reported - requested, 0)
        if any(item.given for item in mine):
            surplus = 0
        elif resource_class not in wanted:
            surplus = max(surplus, 1)  # the node set itself is too many, even without nodes
        elif any(item.asked is None for item in mine):
            surplus = 0
        counts.append(NodeCount(resource_class, requested, min(reported, requested) if requested else reported, surplus, certain))
    return counts


def _existing_nodes(node_sets: Sequence[NodeSet]) -> list[Object] | None:
    count: Counter[str] = Counter()
    for item in node_sets:
        count[item.resource_class] += item.ready
    return [{"resourceClass": name, "numberOfNodes": nodes} for name, nodes in count.items()] or None


def _nodes_ready(nodes: Sequence[NodeCount] | None) -> ConditionState:
    if nodes is None:
        return ConditionState(FALSE, "NotPlanned", "The template has not said yet how many nodes it takes")
    requested = sum(item.requested for item in nodes)
    ready = sum(min(item.ready, item.requested) for item in nodes)
    surplus = sum(item.surplus for item in nodes)
    message = f"{ready} of {requested} ready" + (f", {surplus} to be removed" if surplus else "")
    if not all(item.certain for item in nodes):
        return ConditionState(UNKNOWN, "Outdated", message)
    if ready < requested:
        return ConditionState(FALSE, "NodesMissing", message)
    if surplus:
        return ConditionState(FALSE, "ScalingDown", message)
    return ConditionState(TRUE, "AllNodesReady", message)


def _accepted(order: ClusterOrder, heard: Outcome | None, carried_out: bool) -> ConditionState:
    if heard and heard.accepted is False and heard.failure:
        return ConditionState(FALSE, heard.failure.reason, heard.failure.message)
    if carried_out or (heard and heard.accepted):
        return ConditionState(TRUE, "Valid", "The template and its parameters are valid")
    before = order.condition("Accepted")
    if before and (before.get("observedGeneration") == order.generation or order.is_deleting):
        return ConditionState(before["status"], before["reason"], before["message"])
    return ConditionState(UNKNOWN, "NotChecked", "The template and its parameters are not checked yet")


def _namespace_created(order: ClusterOrder, world: ObservedState) -> ConditionState:
    name = working_namespace(order.namespace, order.name)
    if world.namespace_exists:
        return ConditionState(TRUE, "NamespaceExists", f"The working namespace is {name}")
    return ConditionState(FALSE, "NamespaceMissing", f"There is no namespace {name}")


def _control_plane_created(cluster: ObservedCluster) -> ConditionState:
    if cluster.status == "unknown":
        return ConditionState(UNKNOWN, "ProviderNotAsked", cluster.status_details)
    return ConditionState(TRUE, "ClusterExists", f"The cluster is {cluster.internal_id}") if cluster.exists else NO_CLUSTER


def _said_by(cluster: ObservedCluster, kind: str) -> ConditionState:
    return cluster.conditions.get(kind, NOT_SAID) if cluster.exists else NO_CLUSTER


def _cluster_available(cluster: ObservedCluster, nodes: Sequence[NodeCount] | None) -> ConditionState:
    if not cluster.exists:
        return NO_CLUSTER
    if cluster.is_going:
        return ConditionState(FALSE, "ClusterDeleting", "The cluster is being deleted")
    if cluster.status == "failed":
        return ConditionState(FALSE, CLUSTER_FAILED, cluster.status_details)
    control_plane = _said_by(cluster, AVAILABLE)
    if control_plane.status != TRUE:
        return ConditionState(control_plane.status, "ControlPlaneUnavailable", f"ControlPlaneAvailable is {control_plane}")
    degraded = cluster.conditions.get(CLUSTER_DEGRADED)
    if degraded and degraded.status == TRUE:
        return ConditionState(FALSE, "ClusterDegraded", f"The cluster's Degraded is {degraded}")
    if not cluster.installed:
        return ConditionState(FALSE, "Installing", "The release is not installed completely yet")
    nodes_ready = _nodes_ready(nodes)
    if nodes_ready.status != TRUE and nodes_ready.reason != "ScalingDown":  # too many nodes keep nobody from using the cluster
        return ConditionState(nodes_ready.status, "NodesNotReady", f"NodesReady is {nodes_ready}")
    return ConditionState(TRUE, "Available", "The control plane and all nodes are available")


def _was_applied(order: ClusterOrder, cluster: ObservedCluster) -> bool:
    """Whether the whole template was applied to this very cluster for the spec as it is now."""
    before = order.condition("TemplateApplied")
    return bool(order.is_carried_out and before and before["status"] == TRUE and not _is_of_another_cluster(before, cluster))


def _is_of_another_cluster(applied: Object, cluster: ObservedCluster) -> bool:
    """Whether the cluster was made anew after the template had been applied: what that had done inside it is gone."""
    since = parse_time(applied.get("lastTransitionTime"))
    return bool(cluster.created_at and since and since < cluster.created_at)


def _template_applied(
    order: ClusterOrder, cluster: ObservedCluster, heard: Outcome | None, carried_out: bool, failure: Object | None
) -> ConditionState:
    if cluster.exists and (_was_applied(order, cluster) or (heard and heard.finished and heard.template_applied and carried_out)):
        return ConditionState(TRUE, "Applied", "The template is applied")
    if failure:
        task = f"{failure['task']}: " if failure.get("task") else ""
        return ConditionState(FALSE, failure["reason"], f"{task}{failure['message']}")
    if not cluster.exists:
        return NO_CLUSTER
    if not carried_out:
        return ConditionState(FALSE, "SpecNotCarriedOut", "The order's spec is not carried out yet")
    return ConditionState(
        FALSE, "PostInstallPending", "The cluster is made, and its template has more to do once the control plane is available"
    )


def _deleting(order: ClusterOrder, world: ObservedState, heard: Outcome | None, failure: Object | None) -> ConditionState:
    if not order.is_deleting:
        return ConditionState(FALSE, "NotRequested")
    if failure:
        return ConditionState(TRUE, failure["reason"], failure["message"])
    left = ["the cluster"] if world.cluster.exists else []
    if node_sets := len(world.cluster.node_sets):
        left.append(f"{node_sets} node set" + ("s" if node_sets > 1 else ""))
    if world.namespace_exists:
        left.append("the namespace")
    message = f"Still there: {', '.join(left)}" if left else "Nothing is left"
    before = order.condition("Deleting") or {}
    asked = (heard is not None and heard.finished) or before.get("reason") == TAKING_DOWN
    return ConditionState(TRUE, TAKING_DOWN if asked else "Requested", message)


def _phase(order: ClusterOrder, verdicts: dict[str, ConditionState], updating: bool, failure: Object | None) -> str:
    if order.is_deleting:
        return DELETING
    available, applied = verdicts["ClusterAvailable"].status, verdicts["TemplateApplied"].status
    was_ready = order.is_carried_out and order.phase in (READY, DEGRADED)
    if was_ready:
        if FALSE in (available, applied):
            return DEGRADED
        # Updates and nodes too many that the spec did not ask for take nothing away from whoever uses the cluster.
        return order.phase if available == UNKNOWN else READY
    if not updating and {available, applied, verdicts["NodesReady"].status} == {TRUE}:
        return READY
    return FAILED if failure else PROGRESSING


def _failure(
    order: ClusterOrder, heard: Outcome | None, lost_run: LostRun | None, cluster: ObservedCluster, now: datetime
) -> Object | None:
    """What a run reports, else what became of one that was killed, else what the cluster says; seen again it is the same one."""
    known: Object | None = order.status["failure"] if order.failure else None
    finished = heard is not None and heard.finished
    if heard and heard.failure:
        return dict(with_failure({"failure": known}, heard.failure, now)["failure"])
    if lost_run and lost_run.is_about(order) and not finished:
        # Dated when it happened, not when it was seen: whoever looks late has waited already.
        failure, at = lost_run.failure(), lost_run.at
    elif cluster.status == "failed" and not order.is_deleting:
        failure, at = Failure(CLUSTER_FAILED, shortened(cluster.status_details, MESSAGE_LIMIT), retryable=cluster.retryable), now
    else:
        return None if finished or (known and known["reason"] == CLUSTER_FAILED) else known
    if known and not finished and (known["reason"], known["message"]) == (failure.reason, failure.message):
        return known
    return dict(with_failure({"failure": known}, failure, at)["failure"])


def _merged_conditions(order: ClusterOrder, cluster: ObservedCluster, verdicts: dict[str, ConditionState], now: datetime) -> list[Object]:
    """The order's conditions with ours brought up to date where they stand; new ones come last, others' are left as they are."""
    merged: dict[str, Object] = {item["type"]: item for item in order.status.get("conditions", [])}
    for kind, verdict in verdicts.items():
        before = merged.get(kind, {})
        same = before.get("status") == verdict.status
        if kind == "TemplateApplied" and same and verdict.status == TRUE and _is_of_another_cluster(before, cluster):
            same = False  # applied to the one before, now to this one
        merged[kind] = {
            "type": kind,
            "status": verdict.status,
            "reason": as_reason(verdict.reason),
            "message": shortened(verdict.message, MESSAGE_LIMIT),
            "lastTransitionTime": before["lastTransitionTime"] if same else format_time(now),
            "observedGeneration": order.generation,
        }
    return list(merged.values())


def _cluster_reference(order: ClusterOrder, world: ObservedState) -> Object | None:
    """All four names or none. Where another controller chose account and binding, its names stay."""
    if not world.namespace_exists:
        return None
    before = order.status.get("clusterReference") or {}
    return {
        "namespace": working_namespace(order.namespace, order.name),
        "hostedClusterName": order.name if world.cluster.exists else "",
        "serviceAccountName": before.get("serviceAccountName") or SERVICE_ACCOUNT,
        "roleBindingName": before.get("roleBindingName") or ROLE_BINDING,
    }


def _provider(order: ClusterOrder, cluster: ObservedCluster, heard: Outcome | None) -> Object | None:
    """Who serves the cluster, once that is settled, and what finds it. The ids of one that is gone stay until it is made anew."""
    kind = provider_type(order) or (heard.provider if heard else "")
    if not kind:
        return None
    kept = (
        cluster.to_stored() if cluster.exists else {key: value for key, value in order.status.get("provider", {}).items() if key != "type"}
    )
    return {"type": kind, **kept}
