"""The status that HyperShift would write for a HostedCluster and its NodePools: pure functions of the observed control plane.

Nothing here calls an API server. Faults that an annotation asks for are read here too.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from ....plugins.module_utils.common.types import Object

ConditionState = tuple[str, bool, str, str]

FAULT = "standin.openfleet.clusters/fault"
MODE = "standin.openfleet.clusters/mode"
STATUS_ONLY = "status-only"
AS_EXPECTED = "All is well"  # HyperShift's own message


@dataclass(frozen=True)
class Faults:
    """The faults that an object's annotation asks for; `unknown` has the words in it that are no fault."""

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
    """The observed state of a hosted control plane. `problem` is (reason, message) of why it cannot be created."""

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


def hosted_cluster_status(cluster: Object, plane: ControlPlane, ready_nodes: int, now: str) -> Object:
    """The status of a HostedCluster. Its version is complete only when a node could run the cluster's own operators."""
    faults = Faults.of(cluster)
    status: Object = copy.deepcopy(cluster.get("status") or {})
    name, image = cluster["metadata"]["name"], cluster["spec"]["release"]["image"]
    if plane.available:
        status["controlPlaneEndpoint"] = {"host": plane.host, "port": plane.port}
        status["kubeconfig"] = {"name": f"{name}-admin-kubeconfig"}
        status["kubeadminPassword"] = {"name": f"{name}-kubeadmin-password"}
    status["version"] = _version(status.get("version"), cluster, image, plane.available and ready_nodes > 0, now)
    complete = status["version"]["history"][0]["state"] == "Completed"
    release = release_version(image)
    rollout = ("FromClusterVersion", f"Cluster version is {release}" if complete else f"Working towards {release}")
    waiting = plane.problem or ("WaitingForAvailable", "Waiting for the hosted control plane to be healthy")
    valid = plane.problem or ("AsExpected", AS_EXPECTED)
    healthy = ("AsExpected", AS_EXPECTED) if plane.available else waiting
    degraded = plane.available and faults.degraded
    states: list[ConditionState] = [
        ("ValidConfiguration", not plane.problem, *valid),
        ("SupportedHostedCluster", True, "AsExpected", "HostedCluster is supported by operator configuration"),
        ("ValidReleaseImage", not plane.problem, *valid),
        ("ReconciliationActive", True, "AsExpected", "Reconciliation active on resource"),
        ("ReconciliationSucceeded", not plane.problem, "ReconciliationError" if plane.problem else "ReconciliationSuccess", valid[1]),
        ("InfrastructureReady", plane.available, *healthy),
        ("EtcdAvailable", plane.available, *(("QuorumAvailable", AS_EXPECTED) if plane.available else waiting)),
        ("KubeAPIServerAvailable", plane.available, *healthy),
        ("IgnitionEndpointAvailable", plane.available, *healthy),
        ("Available", plane.available, healthy[0], "The hosted control plane is available" if plane.available else waiting[1]),
        (
            "Degraded",
            degraded,
            *(("UnavailableReplicas", "kube-apiserver has 1 unavailable replica") if degraded else ("AsExpected", AS_EXPECTED)),
        ),
        ("Progressing", not complete, "AsExpected" if complete else "Progressing", rollout[1]),
        ("ClusterVersionAvailable", complete, *rollout),
        ("ClusterVersionProgressing", not complete, *rollout),
        ("ClusterVersionSucceeding", complete, *rollout),
    ]
    status["conditions"] = conditions(status.get("conditions", []), states, cluster["metadata"]["generation"], now)
    return status


def _version(known: Object | None, cluster: Object, image: str, can_complete: bool, now: str) -> Object:
    """The release history, newest first. A new release is Partial in one status before it is Completed."""
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


def node_pool_status(pool: Object, ready: int, plane: ControlPlane, now: str) -> Object:
    """The status of a NodePool with `ready` Ready nodes. A new release is an update in one status before it is complete."""
    status: Object = copy.deepcopy(pool.get("status") or {})
    wanted, release = wanted_nodes(pool), release_version(pool["spec"]["release"]["image"])
    known = status.get("version")
    announced = any(item["type"] == "UpdatingVersion" and item["status"] == "True" for item in status.get("conditions", []))
    updating = bool(known) and known != release and not (announced and plane.available)
    unknown = Faults.of(pool).unknown
    valid = ("InvalidConfiguration", f"The stand-in knows no fault {', '.join(unknown)}") if unknown else ("AsExpected", AS_EXPECTED)
    if plane.available and not updating:
        status["version"] = release
    status["replicas"] = ready
    enough = ready >= wanted
    nodes = f"{ready} of {wanted} nodes are ready"
    reached = ("AsExpected", AS_EXPECTED) if ready else ("ignitionNotReached", "No node has reached the ignition endpoint")
    states: list[ConditionState] = [
        ("ReconciliationActive", True, "AsExpected", "Reconciliation active on resource"),
        ("ValidReleaseImage", True, "AsExpected", f"Using release image: {pool['spec']['release']['image']}"),
        ("ValidMachineConfig", not unknown, *valid),
        ("UpdateManagementEnabled", True, "AsExpected", AS_EXPECTED),
        ("AutoscalingEnabled", "autoScaling" in pool["spec"], "AsExpected", AS_EXPECTED),
        ("ReachedIgnitionEndpoint", ready > 0, *reached),
        (
            "UpdatingVersion",
            updating,
            "AsExpected",
            f"Updating version in progress. Target version: {release}" if updating else AS_EXPECTED,
        ),
        ("AllMachinesReady", enough, "AsExpected" if enough else "WaitingForNodeRef", nodes),
        ("AllNodesHealthy", enough, "AsExpected" if enough else "NodeConditionsFailed", nodes),
        ("Ready", enough, "AsExpected" if enough else "WaitingForAvailableMachines", nodes),
    ]
    status["conditions"] = conditions(status.get("conditions", []), states, pool["metadata"]["generation"], now)
    return status


def conditions(known: Sequence[Object], states: Sequence[ConditionState], generation: int, now: str) -> list[Object]:
    """The conditions of the states; the transition time changes only when the status does."""
    before = {item["type"]: item for item in known}
    made = []
    for kind, holds, reason, message in states:
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
