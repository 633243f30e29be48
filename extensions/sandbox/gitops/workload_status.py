"""The status of Deployments, StatefulSets and Pods as their controllers and kubelets would report it. Pure functions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from ....plugins.module_utils.common.types import Object

# An image with this tag cannot be pulled, as far as the stand-in is concerned.
BROKEN_TAG = "broken"


def images(item: Object) -> list[str]:
    """The images of a Pod's containers, or of those of a workload's template."""
    spec = item["spec"] if item["kind"] == "Pod" else item["spec"]["template"]["spec"]
    return [container["image"] for container in spec["containers"]]


def problem(item: Object) -> str:
    """Why its pods do not run; empty where they do."""
    broken = [image for image in images(item) if image.rpartition(":")[2] == BROKEN_TAG]
    return f'Back-off pulling image "{broken[0]}"' if broken else ""


def deployment_status(item: Object, problem: str, now: str) -> Object:
    wanted = item["spec"]["replicas"]
    available = 0 if problem else wanted
    counts = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": available, "availableReplicas": available}
    minimum = {
        "status": "False",
        "reason": "MinimumReplicasUnavailable",
        "message": f"Deployment does not have minimum availability: {problem}",
    }
    if not problem:
        minimum = {"status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability."}
    progress = {"status": "True", "reason": "ReplicaSetUpdated" if problem else "NewReplicaSetAvailable", "message": "Run by the sandbox."}
    return _status(item, counts, {"Available": minimum, "Progressing": progress}, now) | (
        {"unavailableReplicas": wanted} if problem and wanted else {}
    )


def stateful_set_status(item: Object, problem: str, now: str) -> Object:
    wanted = item["spec"]["replicas"]
    available = 0 if problem else wanted
    counts = {"replicas": wanted, "currentReplicas": wanted, "updatedReplicas": wanted}
    counts |= {"readyReplicas": available, "availableReplicas": available}
    template = hashlib.sha256(json.dumps(item["spec"]["template"], sort_keys=True).encode()).hexdigest()[:10]
    revision = f"{item['metadata']['name']}-{template}"
    return _status(item, counts, {}, now) | {"currentRevision": revision, "updateRevision": revision}


def pod_status(item: Object, problem: str, now: str) -> Object:
    ready = {"status": "False", "reason": "ContainersNotReady", "message": problem} if problem else {"status": "True"}
    conditions = {"PodScheduled": {"status": "True"}, "Initialized": {"status": "True"}, "ContainersReady": ready, "Ready": ready}
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": problem}}
    before = {each["name"]: each for each in item.get("status", {}).get("containerStatuses", [])}
    containers = []
    for container in item["spec"]["containers"]:
        known = before.get(container["name"], {}).get("state", {})
        running = {"running": known.get("running") or {"startedAt": now}}
        containers.append(
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": not problem,
                "started": not problem,
                "restartCount": 0,
                "state": waiting if problem else running,
            }
        )
    before_status = item.get("status", {})
    return {
        **{key: before_status[key] for key in ("qosClass", "observedGeneration") if key in before_status},
        "phase": "Pending" if problem else "Running",
        "startTime": before_status.get("startTime", now),
        "conditions": _conditions(item, conditions, now),
        "containerStatuses": containers,
    }


STATUS: dict[str, Callable[[Object, str, str], Object]] = {
    "Deployment": deployment_status,
    "StatefulSet": stateful_set_status,
    "Pod": pod_status,
}


def _status(item: Object, counts: dict[str, int], conditions: dict[str, Object], now: str) -> Object:
    # The server leaves out counts that are 0, except those that its schema requires.
    shown = {
        name: count
        for name, count in counts.items()
        if count or (item["kind"] == "StatefulSet" and name in ("replicas", "availableReplicas"))
    }
    wanted = {"observedGeneration": item["metadata"]["generation"], **shown}
    return wanted | ({"conditions": _conditions(item, conditions, now)} if conditions else {})


def _conditions(item: Object, wanted: dict[str, Object], now: str) -> list[Object]:
    """Each with the time of its last transition, which a repeat does not change."""
    before = {each["type"]: each for each in item.get("status", {}).get("conditions", [])}
    conditions = []
    for kind, condition in wanted.items():
        known = before.get(kind, {})
        since = known["lastTransitionTime"] if known.get("status") == condition["status"] else now
        update = {"lastUpdateTime": known.get("lastUpdateTime", now)} if item["kind"] == "Deployment" else {}
        probe = {"lastProbeTime": None} if item["kind"] == "Pod" else {}
        conditions.append({"type": kind, **condition, **update, **probe, "lastTransitionTime": since})
    return conditions
