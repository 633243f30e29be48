# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An assignment of the home cluster as an order on the hub, and the status of the order as that of the assignment. Pure functions.

Each cluster has a namespace of its own on the hub, named by the tenant and a hash of the cluster's uid, so that no two clusters of any
fleet share one. No tenant has a permission in it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..common.text import as_reason, shortened
from ..common.timestamps import format_time
from ..common.types import Object
from ..gitops.profiles.lock_file import ANNOTATION as PROFILES_LOCK
from ..orders.model import ClusterOrder, Names
from ..providers.model import TRUE
from .kinds import ADOPT_ORDER, AGENT_FINALIZER, GROUP, ORDER_NAMESPACE_PREFIX, RETRY
from .model import DEGRADED, DELETING, FAILED, PROGRESSING, READY, ClusterAssignment, NodeSet, nodes_by_class

UID_LABEL = f"{GROUP}/cluster-uid"  # on the namespace, the order and the Secrets of a cluster: who owns them
HUB_LABEL = f"{GROUP}/hub"  # the name that the fleet has for the hub
TENANT_LABEL = f"{GROUP}/tenant"  # the namespace of the tenant at home
CLUSTER_ANNOTATION = f"{GROUP}/cluster"  # namespace and name of the FleetCluster
PROVISIONED_ANNOTATION = f"{GROUP}/provisioned"  # on the namespace: the cluster was Ready
PROVISIONED = "Provisioned"  # the condition for the same at home
NAME_LIMIT, MESSAGE_LIMIT, URL_LIMIT, VERSION_LIMIT, TASK_LIMIT = 63, 32768, 2048, 255, 1024
MOST_PROFILES, LARGEST_LAYER = 64, 2**31
ORDER_DELETED = "OrderDeleted"


@dataclass(frozen=True)
class OrderReference:
    """Where the order of a cluster is on the hub. An adopted one is in a namespace that the agent has not created."""

    namespace: str
    name: str
    is_adopted: bool = False

    def __str__(self) -> str:
        return f"ClusterOrder {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Problem:
    """Why the agent cannot give the cluster an order. What to do is part of the message."""

    reason: str
    message: str


# Assignment -> order


def reference_of(assignment: ClusterAssignment) -> OrderReference:
    """The order of the cluster: the one that an operator had it adopt, or one with its name in a namespace of its own."""
    namespace, _slash, name = _annotations(assignment.raw).get(ADOPT_ORDER, "").partition("/")
    if namespace and name:
        return OrderReference(namespace, name, is_adopted=True)
    digest = base64.b32encode(hashlib.sha256(assignment.uid.encode()).digest())[:12].decode().lower()
    tenant = assignment.namespace[: NAME_LIMIT - len(ORDER_NAMESPACE_PREFIX) - len(digest) - 1].rstrip("-")
    return OrderReference(f"{ORDER_NAMESPACE_PREFIX}{tenant}-{digest}", assignment.name)


def marks_of(assignment: ClusterAssignment) -> Object:
    """The labels and annotations of everything on the hub that belongs to the cluster."""
    labels = {UID_LABEL: assignment.uid, HUB_LABEL: assignment.hub, TENANT_LABEL: assignment.namespace}
    return {"labels": labels, "annotations": {CLUSTER_ANNOTATION: f"{assignment.namespace}/{assignment.name}"}}


def namespace_of(assignment: ClusterAssignment) -> Object:
    """The namespace of the order."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": reference_of(assignment).namespace, **marks_of(assignment)}}


def order_of(assignment: ClusterAssignment, names: Names) -> Object:
    """The order that the hub has to fulfil."""
    reference, spec, marks = reference_of(assignment), assignment.raw["spec"], marks_of(assignment)
    if retry := _annotations(assignment.raw).get(RETRY):
        marks["annotations"][RETRY] = retry
    requests = [{"resourceClass": name, "numberOfNodes": count} for name, count in nodes_by_class(assignment.node_sets).items()]
    parameters = {"templateParameters": _as_text(spec["templateParameters"])} if spec.get("templateParameters") else {}
    return {
        "apiVersion": names.api_version,
        "kind": "ClusterOrder",
        "metadata": {"name": reference.name, "namespace": reference.namespace, **marks},
        "spec": {"templateID": spec["template"], **parameters, "nodeRequests": requests},
    }


def changes_of(order: Object, wanted: Object, *, is_adopted: bool = False) -> Object:
    """The merge patch that brings an order to what is wanted; empty where it is that already. An adopted one keeps what is not asked for.

    A retry is a change of the layout of its parameters: a changed order starts again without backoff, and its content is the same.
    """
    spec, requested = order.get("spec") or {}, wanted["spec"]
    text, parameters = spec.get("templateParameters") or "", requested.get("templateParameters")
    changed: Object = {}
    if parameters is None and not is_adopted and _parsed(text) != {}:
        changed["templateParameters"] = None
    elif parameters is not None and _parsed(text) != _parsed(parameters):
        changed["templateParameters"] = text = parameters
    if not (is_adopted and not requested["nodeRequests"]) and _by_class(spec) != _by_class(requested):
        changed["nodeRequests"] = requested["nodeRequests"]
    metadata: Object = {}
    for kind in ("labels", "annotations"):
        present = order["metadata"].get(kind) or {}
        if missing := {name: value for name, value in wanted["metadata"][kind].items() if present.get(name) != value}:
            metadata[kind] = missing
    if RETRY in metadata.get("annotations", {}):
        text = changed.get("templateParameters", text) or "{}"
        changed["templateParameters"] = text.rstrip() if text != text.rstrip() else f"{text} "
    return ({"metadata": metadata} if metadata else {}) | ({"spec": changed} if changed else {})


def ownership_problem(reference: OrderReference, order: Object, wanted: Object) -> Problem | None:
    """Why the order cannot be that of the cluster."""
    uid = wanted["metadata"]["labels"][UID_LABEL]
    if (order["metadata"].get("labels") or {}).get(UID_LABEL) != uid:
        remedy = f"label it {UID_LABEL}={uid} on the hub to have it adopted" if reference.is_adopted else "delete it on the hub"
        return Problem("OrderTaken", f"The {reference} on the hub does not belong to this cluster: {remedy}.")
    template = (order.get("spec") or {}).get("templateID", "")
    if template.rpartition(".")[2] != wanted["spec"]["templateID"].rpartition(".")[2]:
        return Problem("TemplateDiffers", f"The {reference} on the hub is of the template {template}, which cannot be changed.")
    return None


# Order -> status of the assignment


def status_of(
    assignment: ClusterAssignment, order: ClusterOrder | None, now: datetime, *, problem: Problem | None = None, provisioned: bool = False
) -> Object:
    """The status of the assignment. It equals the present one where nothing changed, and then needs no write.

    `problem` is why there is no order, or why it does not follow the assignment. `provisioned`: the hub remembers that the cluster was
    Ready.
    """
    before = assignment.raw.get("status") or {}
    was_ready = provisioned or is_provisioned(assignment) or (order is not None and order.phase == READY)
    if order is None and was_ready and not problem and not _is_deleting(assignment):
        problem = Problem(
            ORDER_DELETED,
            f"The {reference_of(assignment)} was deleted on the hub, and the cluster with it. Delete the FleetCluster, or create another.",
        )
    status: Object = {"state": _state(assignment, order, problem)}
    if generation := _observed_generation(assignment, order, problem):
        status["observedGeneration"] = generation
    if order is not None:
        status |= _reported(order, problem)
    elif problem:
        status["failure"] = {"reason": problem.reason, "message": shortened(problem.message, MESSAGE_LIMIT)}
    if sets := _node_sets(assignment, order):
        status["nodeSets"] = sets
    conditions = _conditions(order) if order else []
    if was_ready:
        conditions.append(_provisioned(before, now))
    if conditions:
        status["conditions"] = conditions
    return status


def _reported(order: ClusterOrder, problem: Problem | None) -> Object:
    """What the order itself says: addresses, version, failure and profiles."""
    known = {"apiURL": order.status.get("apiURL"), "consoleURL": order.status.get("consoleURL")}
    status: Object = {name: url for name, url in known.items() if isinstance(url, str) and url and len(url) <= URL_LIMIT}
    if version := (order.status.get("version") or {}).get("running"):
        status["version"] = shortened(str(version), VERSION_LIMIT)
    if failure := problem or _failure(order):
        status["failure"] = {"reason": as_reason(failure.reason), "message": shortened(failure.message, MESSAGE_LIMIT)}
        status["failure"] |= {} if problem else _attempts(order)
    if profiles := _profiles(order):
        status["profiles"] = profiles
    return status


def is_provisioned(assignment: ClusterAssignment) -> bool:
    """Whether the cluster was Ready once, as its hub reported."""
    conditions = (assignment.raw.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == PROVISIONED and each.get("status") == TRUE for each in conditions)


def has_finalizer(assignment: ClusterAssignment) -> bool:
    return AGENT_FINALIZER in (assignment.raw["metadata"].get("finalizers") or ())


def _is_deleting(assignment: ClusterAssignment) -> bool:
    return "deletionTimestamp" in assignment.raw["metadata"]


def _state(assignment: ClusterAssignment, order: ClusterOrder | None, problem: Problem | None) -> str:
    if _is_deleting(assignment):
        return DELETING
    if order is None:
        return FAILED if problem else PROGRESSING
    if order.is_deleting:
        return DELETING
    if problem:
        return DEGRADED if order.phase in (READY, DEGRADED) else FAILED
    is_current = order.status.get("observedGeneration", order.generation) == order.generation
    if order.phase in (READY, DEGRADED, FAILED) and (is_current or order.phase == DEGRADED):
        return order.phase
    return PROGRESSING


def _observed_generation(assignment: ClusterAssignment, order: ClusterOrder | None, problem: Problem | None) -> int:
    """That of the assignment once the order has its spec and reports about that; before, the one of the last report."""
    metadata, before = assignment.raw["metadata"], (assignment.raw.get("status") or {}).get("observedGeneration") or 0
    generation = int(metadata.get("generation") or 0)
    if problem:
        return generation
    if order is None or order.status.get("observedGeneration") != order.generation:
        return int(before)
    wanted = order_of(assignment, order.names)
    is_current = "spec" not in changes_of(order.raw, wanted, is_adopted=reference_of(assignment).is_adopted)
    return generation if is_current else int(before)


def _failure(order: ClusterOrder) -> Problem | None:
    failure = order.failure
    if failure is None or order.phase == READY:
        return None
    task = f"{failure.task}: " if failure.task else ""
    return Problem(failure.reason, f"{task}{failure.message}")


def _attempts(order: ClusterOrder) -> Object:
    """Which task of the run failed, how often, and when it is tried again."""
    failure = order.failure
    if failure is None:
        return {}
    known = {"task": shortened(failure.task, TASK_LIMIT), "attempts": failure.attempts}
    if failure.retryable and failure.next_attempt:
        known["nextAttempt"] = format_time(failure.next_attempt)
    return {name: value for name, value in known.items() if value}


def _profiles(order: ClusterOrder) -> list[Object]:
    """The profiles of the order's lock file, without their values."""
    content = _parsed(_annotations(order.raw).get(f"{order.names.group}/{PROFILES_LOCK}", ""))
    entries = content.get("profiles") if isinstance(content, dict) else None
    return [_profile(each) for each in (entries if isinstance(entries, list) else [])[:MOST_PROFILES] if isinstance(each, dict)]


def _profile(entry: Mapping[str, Any]) -> Object:
    layer, needed = entry.get("layer"), entry.get("dependsOn")
    texts = {
        name: shortened(entry[name], NAME_LIMIT) for name in ("name", "chart", "version", "namespace") if isinstance(entry.get(name), str)
    }
    names = [shortened(each, NAME_LIMIT) for each in (needed if isinstance(needed, list) else [])[:MOST_PROFILES] if isinstance(each, str)]
    return {"name": ""} | texts | {"layer": layer if isinstance(layer, int) and abs(layer) < LARGEST_LAYER else 0, "dependsOn": names}


def _conditions(order: ClusterOrder) -> list[Object]:
    """Those of the order. Their generation is that of the order, which has no meaning at home."""
    kept = ("type", "status", "reason", "message", "lastTransitionTime")
    found = [each for each in order.status.get("conditions") or () if all(name in each for name in kept)]
    return [{name: each[name] for name in kept} for each in found if each["type"] != PROVISIONED]


def _provisioned(before: Object, now: datetime) -> Object:
    known: Object = next((each for each in before.get("conditions") or () if each["type"] == PROVISIONED), {})
    since = known.get("lastTransitionTime") or format_time(now)
    message = "The cluster was Ready"
    return {"type": PROVISIONED, "status": TRUE, "reason": "WasReady", "message": message, "lastTransitionTime": since}


@dataclass(frozen=True)
class _Count:
    """The nodes of one class: what the order requests, what exists, and what of that is ready and requested."""

    requested: int = 0
    existing: int = 0
    ready: int = 0


def _node_sets(assignment: ClusterAssignment, order: ClusterOrder | None) -> dict[str, Object]:
    """The nodes by the sets of the assignment. A hub counts by class, so sets of one class are filled in the order of their names.

    Nodes that exist and are no longer requested count until they are deleted: their quota and their capacity are released after that.
    """
    counts = _counts(order) if order else {}
    sets: dict[str, Object] = {}
    wanted: dict[str, dict[str, NodeSet]] = {}
    for name, each in sorted(assignment.node_sets.items()):
        wanted.setdefault(each.resource_class, {})[name] = each
    for resource_class in sorted({*wanted, *counts}):
        count, members = counts.get(resource_class, _Count()), wanted.get(resource_class, {})
        surplus = max(count.requested, count.existing) - sum(each.size for each in members.values())
        if not members:
            if surplus > 0:
                sets[_former_name(assignment, resource_class)] = _node_set(resource_class, surplus, 0)
            continue
        ready = count.ready
        for position, (name, each) in enumerate(members.items()):
            size = each.size + (max(surplus, 0) if position == 0 else 0)
            sets[name] = _node_set(resource_class, size, min(ready, size))
            ready -= min(ready, size)
    return sets


def _node_set(resource_class: str, size: int, ready: int) -> Object:
    return {"class": resource_class, "size": size, "ready": ready}


def _former_name(assignment: ClusterAssignment, resource_class: str) -> str:
    """The set that had the nodes, as far as it is known."""
    former = (name for name, each in assignment.reported.items() if each.resource_class == resource_class)
    return next((name for name in former if name not in assignment.node_sets), resource_class)


def _counts(order: ClusterOrder) -> dict[str, _Count]:
    existing = {each["resourceClass"]: int(each["numberOfNodes"]) for each in order.status.get("nodeRequests") or ()}
    found = {name: _Count(0, count, 0) for name, count in existing.items()}
    for each in order.status.get("nodeSets") or ():
        name, requested = each["resourceClass"], int(each["requested"])
        # Where the provider cannot count them, a Ready cluster has those that it requests.
        ready = int(each.get("ready", requested if order.phase == READY else 0))
        found[name] = _Count(requested, existing.get(name, 0), ready)
    return found


# Parts of objects


def _annotations(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("annotations") or {}


def _as_text(parameters: Mapping[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text


def _by_class(spec: Mapping[str, Any]) -> dict[str, int]:
    return {each["resourceClass"]: each["numberOfNodes"] for each in spec.get("nodeRequests") or ()}
