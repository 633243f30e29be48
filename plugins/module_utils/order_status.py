# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A ClusterOrder's status, and the next action for it, from what is seen. Pure: it reads and writes nothing but its arguments.

How the conditions are meant:

- Accepted, TemplateApplied: what runs reported, for the spec as it is now.
- NamespaceCreated, ControlPlaneCreated: whether the namespace and the HostedCluster are there.
- InfrastructureReady, ControlPlaneAvailable: what the HostedCluster says.
- NodesReady: as many nodes as ordered, no fewer and no more: while nodes or classes that are no longer ordered still exist, scaling
  down isn't finished. Its message is what `kubectl get cord` shows.
- ClusterAvailable: the sum for whoever uses the cluster: a healthy control plane, an installed release, enough nodes. Its message
  names the condition that spoils it, which is why an order is Degraded.
- Deleting: the order is to go; its message says what is still there.

How they make the phase, first match first: Deleting; Ready, when all hold and nothing of a change is still being rolled out; Degraded,
when this spec had been Ready; Failed, when its last run failed; Progressing. An Unknown changes no phase: it is no news.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from .order_world import (
    FALSE,
    TRUE,
    UNKNOWN,
    Object,
    Pool,
    Verdict,
    World,
    api_url,
    console_url,
    has_been_installed,
    is_going,
    is_true,
    is_updating,
    pools_of,
    verdict_of,
)
from .orders import (
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
    NodeRequest,
    as_reason,
    config_version,
    format_time,
    parse_time,
    shortened,
    with_failure,
    working_namespace,
)

Action = Literal["provision", "post_install", "delete"]

TAKING_DOWN = "TakingDown"  # reason of Deleting once a run has asked everything to go
NO_HOSTED_CLUSTER = Verdict(FALSE, "HostedClusterMissing", "There is no HostedCluster")
NOT_SAID = Verdict(FALSE, "Pending", "The HostedCluster does not say yet")


@dataclass(frozen=True)
class Job:
    """The run that works on an order."""

    id: str
    url: str = ""
    started_at: datetime | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run reports of an order, beyond what can be seen: at its start with its `job`, and at its end.

    `config_version` is that of the spec the run worked on: if the order has changed meanwhile, only the job is taken over.
    `finished` means that the step went through to its end, `template_applied` that no later step of the template is left to do.
    `accepted` is the verdict on template and parameters; with False comes a failure that says why. `node_requests` are those carried
    out, with the template's defaults in them.
    """

    step: Action
    config_version: str
    accepted: bool | None = None
    finished: bool = False
    template_applied: bool = False
    node_requests: tuple[NodeRequest, ...] | None = None
    failure: Failure | None = None
    job: Job | None = None

    def is_about(self, order: ClusterOrder) -> bool:
        return self.config_version == config_version(order) and (self.step == "delete") == order.is_deleting

    def __post_init__(self) -> None:
        if self.accepted is False and self.failure is None:
            raise ValueError("an order is not refused without a failure that says why")


@dataclass(frozen=True)
class NodeSet:
    """The nodes of one class: how many are wanted, ready, and too many. Not `certain` while a NodePool's answer is outdated."""

    resource_class: str
    requested: int
    ready: int
    surplus: int
    certain: bool

    def to_status(self) -> Object:
        return {"resourceClass": self.resource_class, "requested": self.requested, "ready": self.ready}


def derive_status(order: ClusterOrder, world: World, now: datetime, outcome: Outcome | None = None) -> Object:
    """The status the order should have. It equals `order.status` when nothing changed, and then needs no write.

    Where the order's spec is not the one carried out, `configVersion` goes at once: half a change may have been made by the time the
    old spec is put back. So whoever changes a cluster writes the derived status before the first change.
    """
    heard = outcome if outcome is not None and outcome.is_about(order) else None
    carried_out = order.is_carried_out or (heard is not None and heard.step == "provision" and heard.finished)
    failure = _failure(order, heard, now)
    hosted_cluster, pools = world.hosted_cluster, pools_of(world.node_pools, order.names.resource_class_label)
    nodes = _node_sets(order, pools, _wanted_nodes(order, heard))
    verdicts = {
        "Accepted": _accepted(order, heard, carried_out),
        "NamespaceCreated": _namespace_created(order, world),
        "InfrastructureReady": _said_by(hosted_cluster, "InfrastructureReady"),
        "ControlPlaneCreated": _control_plane_created(hosted_cluster),
        "ControlPlaneAvailable": _said_by(hosted_cluster, "Available"),
        "ClusterAvailable": _cluster_available(hosted_cluster, nodes),
        "NodesReady": _nodes_ready(nodes),
        "TemplateApplied": _template_applied(order, hosted_cluster, heard, carried_out, failure),
        "Deleting": _deleting(order, world, heard, failure),
    }
    updating = hosted_cluster is not None and is_updating(hosted_cluster, pools)
    fields = {
        "phase": _phase(order, verdicts, updating, failure),
        "observedGeneration": order.generation,
        "configVersion": config_version(order) if carried_out else None,
        "conditions": _merged_conditions(order, hosted_cluster, verdicts, now),
        "clusterReference": _cluster_reference(order, world),
        "nodeRequests": _existing_nodes(pools),
        "nodeSets": None if nodes is None else [item.to_status() for item in nodes],
        "apiURL": (hosted_cluster and api_url(hosted_cluster)) or None,
        "consoleURL": (hosted_cluster and console_url(hosted_cluster)) or None,
        "failure": failure,
        "job": _job(order, outcome),
    }
    # What is not ours stays: another controller may keep fields of its own here.
    kept = {name: value for name, value in order.status.items() if name not in fields}
    return kept | {name: value for name, value in fields.items() if value is not None}


def next_action(
    order: ClusterOrder,
    hosted_cluster: Object | None,
    node_pools: Sequence[Object],
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
    pools = pools_of(node_pools, order.names.resource_class_label)
    if order.is_deleting:
        return "delete" if _must_delete(order, hosted_cluster, pools, external_controller) else None
    wanted = _wanted_nodes(order)
    if is_going(hosted_cluster) or any(pool.going and pool.resource_class in (wanted or ()) for pool in pools):
        return None
    if not order.is_carried_out or hosted_cluster is None or not _pools_as_wanted(pools, wanted):
        return "provision"
    if not _was_applied(order, hosted_cluster):
        if not template_has_post_install:
            return "provision"
        return "post_install" if is_true(hosted_cluster, "Available") else None
    # All looks well, but the last run, say a repair of what can't be seen here, did not come to its end.
    return "provision" if order.failure else None


def _must_delete(order: ClusterOrder, hosted_cluster: Object | None, pools: Sequence[Pool], external_controller: bool) -> bool:
    ours = {order.names.infrastructure_finalizer}
    if not external_controller:
        ours.add(order.names.controller_finalizer)
    if not ours.intersection(order.finalizers):
        return False
    asked = (order.condition("Deleting") or {}).get("reason") == TAKING_DOWN
    waiting = is_going(hosted_cluster) or (hosted_cluster is None and any(pool.going for pool in pools))
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


def _pools_as_wanted(pools: Sequence[Pool], wanted: dict[str, int] | None) -> bool:
    """Whether the NodePools ask for what the order asks for. How many nodes there are already is another question."""
    if wanted is None:
        return True
    asked: Counter[str] = Counter()
    for pool in pools:
        if pool.going:
            continue
        if pool.resource_class not in wanted:
            return False
        asked[pool.resource_class] += wanted[pool.resource_class] if pool.asked is None else pool.asked
    return all(asked[resource_class] == count for resource_class, count in wanted.items())


def _node_sets(order: ClusterOrder, pools: Sequence[Pool], wanted: dict[str, int] | None) -> list[NodeSet] | None:
    """The wanted classes, then those that are there and not wanted. None while it isn't known what is wanted."""
    if wanted is None:
        return None
    known = {item.get("resourceClass"): item.get("ready", 0) for item in order.status.get("nodeSets") or []}
    sets = []
    for resource_class in dict.fromkeys([*wanted, *(pool.resource_class for pool in pools)]):
        requested = wanted.get(resource_class, 0)
        mine = [pool for pool in pools if pool.resource_class == resource_class]
        certain = not any(pool.outdated for pool in mine)
        # An outdated number is not taken over, and not taken for a loss either: the one known before stays.
        reported = sum(pool.reported for pool in mine) if certain else known.get(resource_class, 0)
        surplus = max(reported - requested, 0)
        if resource_class not in wanted:
            surplus = max(surplus, 1)  # the NodePool itself is too many, even without nodes
        elif any(pool.asked is None for pool in mine):
            surplus = 0
        sets.append(NodeSet(resource_class, requested, min(reported, requested) if requested else reported, surplus, certain))
    return sets


def _existing_nodes(pools: Sequence[Pool]) -> list[Object] | None:
    count: Counter[str] = Counter()
    for pool in pools:
        count[pool.resource_class] += pool.reported
    return [{"resourceClass": name, "numberOfNodes": nodes} for name, nodes in count.items()] or None


def _nodes_ready(nodes: Sequence[NodeSet] | None) -> Verdict:
    if nodes is None:
        return Verdict(FALSE, "NotPlanned", "The template has not said yet how many nodes it takes")
    requested = sum(item.requested for item in nodes)
    ready = sum(min(item.ready, item.requested) for item in nodes)
    surplus = sum(item.surplus for item in nodes)
    message = f"{ready} of {requested} ready" + (f", {surplus} to be removed" if surplus else "")
    if not all(item.certain for item in nodes):
        return Verdict(UNKNOWN, "Outdated", message)
    if ready < requested:
        return Verdict(FALSE, "NodesMissing", message)
    if surplus:
        return Verdict(FALSE, "ScalingDown", message)
    return Verdict(TRUE, "AllNodesReady", message)


def _accepted(order: ClusterOrder, heard: Outcome | None, carried_out: bool) -> Verdict:
    if heard and heard.accepted is False and heard.failure:
        return Verdict(FALSE, heard.failure.reason, heard.failure.message)
    if carried_out or (heard and heard.accepted):
        return Verdict(TRUE, "Valid", "The template and its parameters are valid")
    before = order.condition("Accepted")
    if before and (before.get("observedGeneration") == order.generation or order.is_deleting):
        return Verdict(before["status"], before["reason"], before["message"])
    return Verdict(UNKNOWN, "NotChecked", "The template and its parameters are not checked yet")


def _namespace_created(order: ClusterOrder, world: World) -> Verdict:
    name = working_namespace(order.namespace, order.name)
    if world.namespace_exists:
        return Verdict(TRUE, "NamespaceExists", f"The working namespace is {name}")
    return Verdict(FALSE, "NamespaceMissing", f"There is no namespace {name}")


def _control_plane_created(hosted_cluster: Object | None) -> Verdict:
    if hosted_cluster is None:
        return NO_HOSTED_CLUSTER
    return Verdict(TRUE, "HostedClusterExists", f"The HostedCluster is {hosted_cluster['metadata']['name']}")


def _said_by(hosted_cluster: Object | None, kind: str) -> Verdict:
    if hosted_cluster is None:
        return NO_HOSTED_CLUSTER
    return verdict_of(hosted_cluster, kind) or NOT_SAID


def _cluster_available(hosted_cluster: Object | None, nodes: Sequence[NodeSet] | None) -> Verdict:
    if hosted_cluster is None:
        return NO_HOSTED_CLUSTER
    if is_going(hosted_cluster):
        return Verdict(FALSE, "HostedClusterDeleting", "The HostedCluster is being deleted")
    control_plane = _said_by(hosted_cluster, "Available")
    if control_plane.status != TRUE:
        return Verdict(control_plane.status, "ControlPlaneUnavailable", f"ControlPlaneAvailable is {control_plane}")
    degraded = verdict_of(hosted_cluster, "Degraded")
    if degraded and degraded.status == TRUE:
        return Verdict(FALSE, "HostedClusterDegraded", f"The HostedCluster's Degraded is {degraded}")
    if not has_been_installed(hosted_cluster):
        return Verdict(FALSE, "Installing", "The release is not installed completely yet")
    nodes_ready = _nodes_ready(nodes)
    if nodes_ready.status != TRUE and nodes_ready.reason != "ScalingDown":  # too many nodes keep nobody from using the cluster
        return Verdict(nodes_ready.status, "NodesNotReady", f"NodesReady is {nodes_ready}")
    return Verdict(TRUE, "Available", "The control plane and all nodes are available")


def _was_applied(order: ClusterOrder, hosted_cluster: Object | None) -> bool:
    """Whether the whole template was applied to this very HostedCluster for the spec as it is now."""
    before = order.condition("TemplateApplied")
    return bool(order.is_carried_out and before and before["status"] == TRUE and not _is_of_another_cluster(before, hosted_cluster))


def _is_of_another_cluster(applied: Object, hosted_cluster: Object | None) -> bool:
    """Whether the HostedCluster was made anew after the template had been applied: what that had done inside it is gone."""
    created = parse_time((hosted_cluster or {}).get("metadata", {}).get("creationTimestamp"))
    since = parse_time(applied.get("lastTransitionTime"))
    return bool(created and since and since < created)


def _template_applied(
    order: ClusterOrder, hosted_cluster: Object | None, heard: Outcome | None, carried_out: bool, failure: Object | None
) -> Verdict:
    if hosted_cluster and (_was_applied(order, hosted_cluster) or (heard and heard.finished and heard.template_applied and carried_out)):
        return Verdict(TRUE, "Applied", "The template is applied")
    if failure:
        task = f"{failure['task']}: " if failure.get("task") else ""
        return Verdict(FALSE, failure["reason"], f"{task}{failure['message']}")
    if hosted_cluster is None:
        return NO_HOSTED_CLUSTER
    if not carried_out:
        return Verdict(FALSE, "SpecNotCarriedOut", "The order's spec is not carried out yet")
    return Verdict(FALSE, "PostInstallPending", "The cluster is made, and its template has more to do once the control plane is available")


def _deleting(order: ClusterOrder, world: World, heard: Outcome | None, failure: Object | None) -> Verdict:
    if not order.is_deleting:
        return Verdict(FALSE, "NotRequested")
    if failure:
        return Verdict(TRUE, failure["reason"], failure["message"])
    left = ["the HostedCluster"] if world.hosted_cluster else []
    if world.node_pools:
        left.append(f"{len(world.node_pools)} NodePool" + ("s" if len(world.node_pools) > 1 else ""))
    if world.namespace_exists:
        left.append("the namespace")
    message = f"Still there: {', '.join(left)}" if left else "Nothing is left"
    before = order.condition("Deleting") or {}
    asked = (heard is not None and heard.finished) or before.get("reason") == TAKING_DOWN
    return Verdict(TRUE, TAKING_DOWN if asked else "Requested", message)


def _phase(order: ClusterOrder, verdicts: dict[str, Verdict], updating: bool, failure: Object | None) -> str:
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


def _failure(order: ClusterOrder, heard: Outcome | None, now: datetime) -> Object | None:
    known = order.status["failure"] if order.failure else None
    if heard and heard.failure:
        failed: Object = with_failure({"failure": known}, heard.failure, now)["failure"]
        return failed
    return None if heard and heard.finished else known


def _merged_conditions(order: ClusterOrder, hosted_cluster: Object | None, verdicts: dict[str, Verdict], now: datetime) -> list[Object]:
    """The order's conditions with ours brought up to date where they stand; new ones come last, others' are left as they are."""
    merged: dict[str, Object] = {item["type"]: item for item in order.status.get("conditions", [])}
    for kind, verdict in verdicts.items():
        before = merged.get(kind, {})
        same = before.get("status") == verdict.status
        if kind == "TemplateApplied" and same and verdict.status == TRUE and _is_of_another_cluster(before, hosted_cluster):
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


def _cluster_reference(order: ClusterOrder, world: World) -> Object | None:
    """All four names or none. Where another controller chose account and binding, its names stay."""
    if not world.namespace_exists:
        return None
    before = order.status.get("clusterReference") or {}
    return {
        "namespace": working_namespace(order.namespace, order.name),
        "hostedClusterName": world.hosted_cluster["metadata"]["name"] if world.hosted_cluster else "",
        "serviceAccountName": before.get("serviceAccountName") or SERVICE_ACCOUNT,
        "roleBindingName": before.get("roleBindingName") or ROLE_BINDING,
    }


def _job(order: ClusterOrder, outcome: Outcome | None) -> Object | None:
    if outcome is None or outcome.job is None:
        return order.status.get("job")
    job: Object = {"id": shortened(outcome.job.id, 255)}
    if outcome.job.url:
        job["url"] = shortened(outcome.job.url, 2048)
    if outcome.job.started_at:
        job["startedAt"] = format_time(outcome.job.started_at)
    return job
