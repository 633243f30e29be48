"""What HyperShift would say of a HostedCluster and its NodePools: pure functions from what is seen to a status.

Nothing here talks to an API server. Faults that an annotation asks for are read here too.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
ConditionState = tuple[str, bool, str, str]

FAULT = "standin.openfleet.clusters/fault"
MODE = "standin.openfleet.clusters/mode"
STATUS_ONLY = "status-only"
WELL = "All is well"


@dataclass(frozen=True)
class Faults:
    """What an object's annotation asks to go wrong; `unknown` names the words in it that mean nothing."""

    never_available: bool = False
    degraded: bool = False
    lose_node: bool = False
    slow: float = 0.0
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, item: Object) -> Faults:
        words = [word.strip() for word in annotation(item, FAULT).split(",") if word.strip()]
        slow, unknown = 0.0, []
        for word in words:
            name, _equals, value = word.partition("=")
            if name == "slow" and value.replace(".", "", 1).isdecimal():
                slow = float(value)
            elif word not in ("never-available", "degraded", "lose-node"):
                unknown.append(word)
        return cls("never-available" in words, "degraded" in words, "lose-node" in words, slow, tuple(unknown))


@dataclass(frozen=True)
class ControlPlane:
    """What is seen of a hosted control plane. `problem` is (reason, message) of what keeps it from being made."""

    available: bool = False
    host: str = ""
    port: int = 0
    problem: tuple[str, str] | None = None


def annotation(item: Object, name: str) -> str:
    return str(item["metadata"].get("annotations", {}).get(name, ""))


def release_version(image: str) -> str:
    """The version in an image's tag, as in `ocp-release:4.17.0-x86_64`; of an image by digest, the beginning of that."""
    name, _at, digest = image.rpartition("/")[2].partition("@")
    tag = name.partition(":")[2] or digest[:19]
    for architecture in ("-x86_64", "-aarch64", "-multi", "-ppc64le", "-s390x"):
        tag = tag.removesuffix(architecture)
    return tag or "unknown"


def hosted_cluster_status(cluster: Object, seen: ControlPlane, ready_nodes: int, now: str) -> Object:
    """The status of a HostedCluster. Its version is complete only when a node could run the cluster's own operators."""
    faults = Faults.of(cluster)
    status: Object = copy.deepcopy(cluster.get("status") or {})
    name, image = cluster["metadata"]["name"], cluster["spec"]["release"]["image"]
    if seen.available:
        status["controlPlaneEndpoint"] = {"host": seen.host, "port": seen.port}
        status["kubeconfig"] = {"name": f"{name}-admin-kubeconfig"}
        status["kubeadminPassword"] = {"name": f"{name}-kubeadmin-password"}
    status["version"] = _version(status.get("version"), cluster, image, seen.available and ready_nodes > 0, now)
    complete = status["version"]["history"][0]["state"] == "Completed"
    release = release_version(image)
    rollout = ("FromClusterVersion", f"Cluster version is {release}" if complete else f"Working towards {release}")
    waiting = seen.problem or ("WaitingForAvailable", "Waiting for the hosted control plane to be healthy")
    valid = seen.problem or ("AsExpected", WELL)
    healthy = ("AsExpected", WELL) if seen.available else waiting
    degraded = seen.available and faults.degraded
    verdicts: list[ConditionState] = [
        ("ValidConfiguration", not seen.problem, *valid),
        ("SupportedHostedCluster", True, "AsExpected", "HostedCluster is supported by operator configuration"),
        ("ValidReleaseImage", not seen.problem, *valid),
        ("ReconciliationActive", True, "AsExpected", "Reconciliation active on resource"),
        ("ReconciliationSucceeded", not seen.problem, "ReconciliationError" if seen.problem else "ReconciliationSuccess", valid[1]),
        ("InfrastructureReady", seen.available, *healthy),
        ("EtcdAvailable", seen.available, *(("QuorumAvailable", WELL) if seen.available else waiting)),
        ("KubeAPIServerAvailable", seen.available, *healthy),
        ("IgnitionEndpointAvailable", seen.available, *healthy),
        ("Available", seen.available, healthy[0], "The hosted control plane is available" if seen.available else waiting[1]),
        (
            "Degraded",
            degraded,
            *(("UnavailableReplicas", "kube-apiserver has 1 unavailable replica") if degraded else ("AsExpected", WELL)),
        ),
        ("Progressing", not complete, "AsExpected" if complete else "Progressing", rollout[1]),
        ("ClusterVersionAvailable", complete, *rollout),
        ("ClusterVersionProgressing", not complete, *rollout),
        ("ClusterVersionSucceeding", complete, *rollout),
    ]
    status["conditions"] = conditions(status.get("conditions", []), verdicts, cluster["metadata"]["generation"], now)
    return status


def _version(known: Object | None, cluster: Object, image: str, can_complete: bool, now: str) -> Object:
    """The release history, newest first. A new release is seen as Partial before it is seen as Completed."""
    version: Object = known or {"history": [], "availableUpdates": None}
    history: list[Object] = version["history"]
    release = {"image": image, "version": release_version(image)}
    if not history or history[0]["image"] != image:
        history.insert(0, release | {"state": "Partial", "startedTime": now, "completionTime": None, "verified": False})
    elif history[0]["state"] == "Partial" and can_complete:
        history[0] |= {"state": "Completed", "completionTime": now}
    return version | {"desired": release, "observedGeneration": cluster["metadata"]["generation"]}


def wanted_nodes(pool: Object) -> int:
    """How many nodes a NodePool asks for; an autoscaled one starts at its minimum."""
    scaling = pool["spec"].get("autoScaling")
    return int(scaling["min"] if scaling else pool["spec"].get("replicas", 0))


def node_pool_status(pool: Object, ready: int, seen: ControlPlane, now: str) -> Object:
    """The status of a NodePool with `ready` Ready nodes. A new release is seen as an update before it is seen as done."""
    status: Object = copy.deepcopy(pool.get("status") or {})
    wanted, release = wanted_nodes(pool), release_version(pool["spec"]["release"]["image"])
    known = status.get("version")
    announced = any(item["type"] == "UpdatingVersion" and item["status"] == "True" for item in status.get("conditions", []))
    updating = bool(known) and known != release and not (announced and seen.available)
    unknown = Faults.of(pool).unknown
    valid = ("InvalidConfiguration", f"The stand-in knows no fault {', '.join(unknown)}") if unknown else ("AsExpected", WELL)
    if seen.available and not updating:
        status["version"] = release
    status["replicas"] = ready
    enough = ready >= wanted
    nodes = f"{ready} of {wanted} nodes are ready"
    reached = ("AsExpected", WELL) if ready else ("ignitionNotReached", "No node has reached the ignition endpoint")
    verdicts: list[ConditionState] = [
        ("ReconciliationActive", True, "AsExpected", "Reconciliation active on resource"),
        ("ValidReleaseImage", True, "AsExpected", f"Using release image: {pool['spec']['release']['image']}"),
        ("ValidMachineConfig", not unknown, *valid),
        ("UpdateManagementEnabled", True, "AsExpected", WELL),
        ("AutoscalingEnabled", "autoScaling" in pool["spec"], "AsExpected", WELL),
        ("ReachedIgnitionEndpoint", ready > 0, *reached),
        ("UpdatingVersion", updating, "AsExpected", f"Updating version in progress. Target version: {release}" if updating else WELL),
        ("AllMachinesReady", enough, "AsExpected" if enough else "WaitingForNodeRef", nodes),
        ("AllNodesHealthy", enough, "AsExpected" if enough else "NodeConditionsFailed", nodes),
        ("Ready", enough, "AsExpected" if enough else "WaitingForAvailableMachines", nodes),
    ]
    status["conditions"] = conditions(status.get("conditions", []), verdicts, pool["metadata"]["generation"], now)
    return status


def conditions(known: Sequence[Object], verdicts: Sequence[ConditionState], generation: int, now: str) -> list[Object]:
    """Conditions for the verdicts; the time of a transition moves only when the status does."""
    before = {item["type"]: item for item in known}
    made = []
    for kind, holds, reason, message in verdicts:
        status = "True" if holds else "False"
        old = before.get(kind)
        since = old["lastTransitionTime"] if old and old["status"] == status else now
        made.append(
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since,
                "observedGeneration": generation,
            }
        )
    return made
