"""The status that HyperShift would write for a NodePool: a pure function of its machines and of the control plane."""

from __future__ import annotations

import copy

from ....plugins.module_utils.common.types import Object
from .status import (
    AS_EXPECTED,
    FALSE,
    TRUE,
    VALID_RELEASE_IMAGE,
    ConditionState,
    ControlPlane,
    Faults,
    conditions,
    is_older,
    release_version,
    wanted_nodes,
)

VALID = (TRUE, "AsExpected", AS_EXPECTED)


def is_counted(pool: Object) -> bool:
    """Whether HyperShift creates the machines of the pool. On platform None it does not, and never counts the nodes."""
    return bool(pool["spec"].get("platform", {}).get("type") != "None")


def needs_spare(pool: Object) -> bool:
    """Whether an update of the pool creates a new machine before it deletes an old one."""
    return bool(pool["spec"].get("management", {}).get("upgradeType") == "Replace") and is_counted(pool)


def node_pool_status(pool: Object, ready: int, plane: ControlPlane, now: str, running: str = "", machines: int | None = None) -> Object:
    """The status of a NodePool with `ready` Ready nodes, in a cluster that runs the release `running`.

    It can have that many `machines`, without one as many as it wants. A new release is an update in one status before it is complete.
    """
    status: Object = copy.deepcopy(pool.get("status") or {})
    known, generation = status.get("conditions", []), pool["metadata"]["generation"]
    if refused := _refused_release(pool, running):
        # HyperShift goes no further: the other conditions stay as they are, of an older generation.
        state: ConditionState = (VALID_RELEASE_IMAGE, FALSE, "ValidationFailed", refused)
        others = [item for item in known if item["type"] != VALID_RELEASE_IMAGE]
        return status | {"conditions": [*conditions(known, [state], generation, now), *others]}
    version = _version(pool, ready, plane, machines)
    if version:
        status["version"] = version
    states = _states(pool, status, ready)
    if is_counted(pool) and (plane.available or "replicas" in status):
        status["replicas"] = ready
        states += _machine_states(pool, ready)
    status["conditions"] = conditions(known, states, generation, now)
    return status


def _refused_release(pool: Object, running: str) -> str:
    """Why the requested release is refused; empty where it is not. A pool may be older than its control plane, but not newer."""
    requested, version = release_version(pool["spec"]["release"]["image"]), pool.get("status", {}).get("version", "")
    if _order(requested) and _order(running) and _order(requested) > _order(running):
        return f"the release {requested} is newer than {running}, which the control plane runs"
    return f"a downgrade of the minor version from {version} to {requested} is not supported" if is_older(requested, version) else ""


def _order(version: str) -> list[int]:
    """A version as numbers; nothing of an image by digest."""
    parts = version.partition("-")[0].split(".")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else []


def _version(pool: Object, ready: int, plane: ControlPlane, machines: int | None) -> str:
    """The release that all nodes of the pool run; empty before the first is installed."""
    requested, version = release_version(pool["spec"]["release"]["image"]), str(pool.get("status", {}).get("version", ""))
    if not plane.available or version == requested:
        return version
    if not version:
        return requested if ready >= wanted_nodes(pool) or not is_counted(pool) else ""
    announced = any(item["type"] == "UpdatingVersion" and item["status"] == TRUE for item in pool["status"].get("conditions", []))
    spare = machines is None or not needs_spare(pool) or machines > wanted_nodes(pool)
    return requested if announced and spare else version


def _states(pool: Object, status: Object, ready: int) -> list[ConditionState]:
    """The conditions that a pool has from the beginning."""
    requested, version = release_version(pool["spec"]["release"]["image"]), status.get("version", "")
    unknown = Faults.of(pool).unknown
    config = (FALSE, "InvalidConfiguration", f"The stand-in knows no fault {', '.join(unknown)}") if unknown else VALID
    updating = (TRUE, "AsExpected", f"Updating version in progress. Target version: {requested}")
    configuring = (TRUE, "AsExpected", "Updating config in progress")
    steady = (FALSE, "AsExpected", AS_EXPECTED)
    reached = VALID if ready else (FALSE, "ignitionNotReached", "No node has reached the ignition endpoint")
    return [
        ("ReconciliationActive", TRUE, "AsExpected", "Reconciliation active on resource"),
        (VALID_RELEASE_IMAGE, TRUE, "AsExpected", f"Using release image: {pool['spec']['release']['image']}"),
        ("ValidArchPlatform", *VALID),
        ("ValidMachineConfig", *config),
        ("SupportedVersionSkew", *VALID),
        ("UpdateManagementEnabled", *VALID),
        ("AutoscalingEnabled", TRUE if "autoScaling" in pool["spec"] else FALSE, "AsExpected", AS_EXPECTED),
        ("AutorepairEnabled", TRUE if pool["spec"].get("management", {}).get("autoRepair") else FALSE, "AsExpected", AS_EXPECTED),
        ("ReachedIgnitionEndpoint", *reached),
        ("UpdatingVersion", *(updating if version != requested else steady)),
        ("UpdatingConfig", *(configuring if not version else steady)),
    ]


def _machine_states(pool: Object, ready: int) -> list[ConditionState]:
    """The conditions that a pool has once its machines exist."""
    wanted = wanted_nodes(pool)
    holds, message = TRUE if ready >= wanted else FALSE, f"{ready} of {wanted} nodes are ready"
    reasons = {"AllMachinesReady": "WaitingForNodeRef", "AllNodesHealthy": "NodeConditionsFailed", "Ready": "WaitingForAvailableMachines"}
    return [(kind, holds, "AsExpected" if holds == TRUE else reason, message) for kind, reason in reasons.items()]
