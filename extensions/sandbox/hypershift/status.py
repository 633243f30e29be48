"""The status that HyperShift would write for a HostedCluster: a pure function of the observed control plane.

Nothing here calls an API server. Faults that an annotation asks for are read here too. The status of NodePools is in `pools`.
"""

from __future__ import annotations

import copy
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from ....plugins.module_utils.common.types import Object

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
ConditionState = tuple[str, str, str, str]  # type, status, reason, message

FAULT = "standin.openfleet.clusters/fault"
MODE = "standin.openfleet.clusters/mode"
STATUS_ONLY = "status-only"
AS_EXPECTED = "All is well"  # HyperShift's own message
NOT_FOUND = "The hosted control plane is not found"
VALID_CONFIGURATION, VALID_RELEASE_IMAGE, RECONCILED = "ValidConfiguration", "ValidReleaseImage", "ReconciliationSucceeded"
ARCHITECTURES = {"-x86_64": "AMD64", "-aarch64": "ARM64", "-multi": "Multi", "-ppc64le": "PPC64LE", "-s390x": "S390X"}


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
class Problem:
    """Why HyperShift does not go on with a HostedCluster: the condition that says so, its reason and message."""

    condition: str
    reason: str
    message: str


@dataclass(frozen=True)
class ControlPlane:
    """The observed state of a hosted control plane, and what is wrong with its HostedCluster."""

    available: bool = False
    host: str = ""
    port: int = 0
    problem: Problem | None = None


def annotation(item: Object, name: str) -> str:
    return str(item["metadata"].get("annotations", {}).get(name, ""))


def control_plane_namespace(cluster: Object) -> str:
    return f"{cluster['metadata']['namespace']}-{cluster['metadata']['name']}"


def release_version(image: str) -> str:
    """The version in an image's tag, as in `ocp-release:4.17.0-x86_64`; of an image by digest, the beginning of that."""
    name, _at, digest = image.rpartition("/")[2].partition("@")
    tag = name.partition(":")[2] or digest[:19]
    for architecture in ARCHITECTURES:
        tag = tag.removesuffix(architecture)
    return tag or "unknown"


def minor_version(version: str) -> tuple[int, int] | None:
    """The major and the minor version; None of an image by digest."""
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdecimal() and parts[1].isdecimal() else None


def is_older(version: str, than: str) -> bool:
    """Whether the minor version is lower than that of the other release."""
    one, other = minor_version(version), minor_version(than)
    return one is not None and other is not None and one < other


def running_release(cluster: Object) -> Object:
    """The newest release of a HostedCluster that is installed completely; empty before the first."""
    history = (cluster.get("status", {}).get("version") or {}).get("history", [])
    return next((entry for entry in history if entry["state"] == "Completed"), {})


def refused_release(cluster: Object) -> str:
    """Why the requested release is refused; empty where it is not."""
    running, requested = running_release(cluster).get("version", ""), release_version(cluster["spec"]["release"]["image"])
    return f"a downgrade of the minor version from {running} to {requested} is not supported" if is_older(requested, running) else ""


def invalid_networks(cluster: Object) -> str:
    """Why the networks are refused although the CRD accepts them; empty where they are not."""
    networking = cluster["spec"].get("networking", {})
    cidrs = [entry["cidr"] for name in ("clusterNetwork", "serviceNetwork", "machineNetwork") for entry in networking.get(name, [])]
    versions = {ipaddress.ip_network(cidr, strict=False).version for cidr in cidrs}
    return f"the networks {', '.join(cidrs)} are of different IP versions" if len(versions) > 1 else ""


def hosted_cluster_status(cluster: Object, plane: ControlPlane, ready_nodes: int, now: str) -> Object:
    """The status of a HostedCluster. Its version is complete only when a node could run the cluster's own operators."""
    status: Object = copy.deepcopy(cluster.get("status") or {})
    refused = refused_release(cluster)
    # A refused image never reaches the control plane.
    image = status["version"]["desired"]["image"] if refused else cluster["spec"]["release"]["image"]
    if plane.available:
        status |= _access(cluster, plane)
        status["payloadArch"] = next((name for suffix, name in ARCHITECTURES.items() if image.endswith(suffix)), "Multi")
        if cluster["spec"].get("configuration", {}).get("oauth"):
            status.pop("kubeadminPassword", None)
    status["version"] = _version(status.get("version"), cluster, image, plane.available, ready_nodes, now)
    states = [*_reconciliation(plane.problem, refused), *_components(status, plane, Faults.of(cluster)), *_rollout(status, plane, refused)]
    status["conditions"] = conditions(status.get("conditions", []), states, cluster["metadata"]["generation"], now)
    return status


def _access(cluster: Object, plane: ControlPlane) -> Object:
    name = cluster["metadata"]["name"]
    return {
        "controlPlaneEndpoint": {"host": plane.host, "port": plane.port},
        "ignitionEndpoint": f"ignition-server-{control_plane_namespace(cluster)}.apps.hub.example.com",
        "kubeconfig": {"name": f"{name}-admin-kubeconfig"},
        "kubeadminPassword": {"name": f"{name}-kubeadmin-password"},
    }


def _reconciliation(problem: Problem | None, refused: str) -> list[ConditionState]:
    """The conditions of the operator itself."""
    wrong = {problem.condition: (FALSE, problem.reason, problem.message)} if problem else {}
    if refused:
        wrong[VALID_RELEASE_IMAGE] = (FALSE, "InvalidImage", refused)
    well = (TRUE, "AsExpected", AS_EXPECTED)
    # The spelling is HyperShift's.
    reconciled = (
        (FALSE, "ReconciliationError", problem.message) if problem else (TRUE, "ReconciliatonSucceeded", "Reconciliation completed")
    )
    return [
        (VALID_CONFIGURATION, *wrong.get(VALID_CONFIGURATION, well)),
        ("SupportedHostedCluster", TRUE, "AsExpected", "HostedCluster is supported by operator configuration"),
        (VALID_RELEASE_IMAGE, *wrong.get(VALID_RELEASE_IMAGE, well)),
        ("ReconciliationActive", TRUE, "AsExpected", "Reconciliation active on resource"),
        (RECONCILED, *reconciled),
    ]


def _components(status: Object, plane: ControlPlane, faults: Faults) -> list[ConditionState]:
    """The conditions of the control plane. Before it was ever available, HyperShift knows nothing of most of its parts."""
    waiting = ("WaitingForAvailable", "Waiting for the hosted control plane to be healthy")
    if plane.available:
        part: tuple[str, str, str] = (TRUE, "AsExpected", AS_EXPECTED)
    elif "controlPlaneEndpoint" in status:
        part = (FALSE, *waiting)
    else:
        part = (UNKNOWN, "StatusUnknown", NOT_FOUND)
    degraded: tuple[str, str, str] = (FALSE, "AsExpected", AS_EXPECTED)
    if plane.available and faults.degraded:
        degraded = (TRUE, "UnavailableReplicas", "kube-apiserver has 1 unavailable replica")
    elif part[0] == UNKNOWN:
        degraded = part
    return [
        ("InfrastructureReady", *part),
        ("EtcdAvailable", *((TRUE, "QuorumAvailable", AS_EXPECTED) if plane.available else part)),
        ("KubeAPIServerAvailable", *part),
        ("IgnitionEndpointAvailable", *(part if part[0] != UNKNOWN else (FALSE, *waiting))),
        ("Available", *((TRUE, "AsExpected", "The hosted control plane is available") if plane.available else (FALSE, *waiting))),
        ("Degraded", *degraded),
    ]


def _rollout(status: Object, plane: ControlPlane, refused: str) -> list[ConditionState]:
    """The conditions of the release."""
    newest = status["version"]["history"][0]
    complete, release = newest["state"] == "Completed", release_version(newest["image"])
    message = f"Cluster version is {release}" if complete else f"Working towards {release}"
    wrong = plane.problem if plane.problem and plane.problem.condition != RECONCILED else None
    blocked = refused or (f"{wrong.condition} condition is false: {wrong.message}" if wrong else "")
    progressing = (FALSE, "AsExpected", message) if complete else (TRUE, "Progressing", message)
    if blocked:
        progressing = (FALSE, "Blocked", blocked)
    if not newest["version"]:
        known = dict.fromkeys((True, False), (UNKNOWN, "StatusUnknown", NOT_FOUND))
    else:
        known = {holds: (TRUE if holds else FALSE, "FromClusterVersion", message) for holds in (True, False)}
    return [
        ("Progressing", *progressing),
        ("ClusterVersionAvailable", *known[complete]),
        ("ClusterVersionProgressing", *known[not complete]),
        ("ClusterVersionSucceeding", *known[complete]),
    ]


def _version(known: Object | None, cluster: Object, image: str, available: bool, ready_nodes: int, now: str) -> Object:
    """The release history, newest first. A new release is Partial in one status before it is Completed.

    The control plane reports the number of a version, so that it is empty until that is available.
    """
    version: Object = known or {"history": [], "availableUpdates": None}
    history: list[Object] = version["history"]
    if not history or history[0]["image"] != image:
        reported = release_version(image) if available else ""
        entry = {"image": image, "version": reported, "state": "Partial", "startedTime": now, "completionTime": None, "verified": False}
        history.insert(0, entry)
    elif history[0]["state"] == "Partial" and available:
        history[0]["version"] = release_version(image)
        if ready_nodes > 0:
            history[0] |= {"state": "Completed", "completionTime": now}
    desired = {"image": image, "version": history[0]["version"]}
    return version | {"desired": desired, "observedGeneration": cluster["metadata"]["generation"]}


def wanted_nodes(pool: Object) -> int:
    """How many nodes a NodePool asks for; an autoscaled one starts at its minimum."""
    scaling = pool["spec"].get("autoScaling")
    return int(scaling["min"] if scaling else pool["spec"].get("replicas", 0))


def conditions(known: Sequence[Object], states: Sequence[ConditionState], generation: int, now: str) -> list[Object]:
    """The conditions of the states; the transition time changes only when the status does."""
    before = {item["type"]: item for item in known}
    made = []
    for kind, status, reason, message in states:
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
