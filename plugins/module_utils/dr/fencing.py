# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the clusterFence of a DRCluster requests of a NetworkFence of csi-addons, and the status that follows. Pure.

Ramen's hub operator does this where there is a hub. The NetworkFence is on a peer of the fenced cluster, and has the name and the fields
that Ramen gives it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..common.types import Object
from .kinds import CSI_ADDONS, NETWORK_FENCE
from .model import ConditionState
from .ramen_api import FALSE, TRUE

FENCED, UNFENCED, MANUALLY_FENCED, MANUALLY_UNFENCED = "Fenced", "Unfenced", "ManuallyFenced", "ManuallyUnfenced"
SUCCEEDED, FAILED = "Succeeded", "Failed"
ANNOTATION = "drcluster.ramendr.openshift.io/storage-"
DRIVER, CLUSTER_ID, SECRET_NAME, SECRET_NAMESPACE = (
    f"{ANNOTATION}{name}" for name in ("driver", "clusterid", "secret-name", "secret-namespace")
)


@dataclass(frozen=True)
class FencePlan:
    """The status of a DRCluster, and what to do with its NetworkFence: write it in this state, or delete it."""

    phase: str
    fenced: ConditionState
    clean: ConditionState
    write: str = ""
    delete: bool = False
    complete: bool = True  # nothing more is waited for


def plan_fence(cluster: Object, fence: Object | None, *, is_own: bool) -> FencePlan:
    """`fence` is the NetworkFence of the cluster on this one. `is_own`: it is this cluster."""
    wanted = cluster["spec"].get("clusterFence") or ""
    if wanted == MANUALLY_FENCED:
        text = f"clusterFence is {MANUALLY_FENCED}: keep the cluster cut off from the storage, and set {MANUALLY_UNFENCED} to end that"
        return _plan("Fenced", TRUE, "Fenced", FALSE, text)
    if wanted == MANUALLY_UNFENCED:
        return _plan("Unfenced", FALSE, "Clean", TRUE, f"clusterFence is {MANUALLY_UNFENCED}: give the cluster access to the storage again")
    if wanted == FENCED:
        return _fence(cluster, fence, is_own=is_own)
    if fence:
        return _unfence(fence)
    return _plan("Unfenced" if wanted else "Available", FALSE, "Clean", TRUE, "The cluster is not fenced")


def network_fence(cluster: Object, state: str) -> Object:
    """The NetworkFence of a DRCluster."""
    annotations = cluster["metadata"].get("annotations") or {}
    return {
        "apiVersion": CSI_ADDONS,
        "kind": NETWORK_FENCE,
        "metadata": {"name": fence_name(cluster["metadata"]["name"]), "labels": {"app.kubernetes.io/managed-by": "openfleet.clusters"}},
        "spec": {
            "fenceState": state,
            "cidrs": list(cluster["spec"].get("cidrs") or ()),
            "driver": annotations.get(DRIVER, ""),
            "secret": {"name": annotations.get(SECRET_NAME, ""), "namespace": annotations.get(SECRET_NAMESPACE, "")},
            "parameters": {"clusterID": annotations.get(CLUSTER_ID, "")},
        },
    }


def fence_name(cluster: str) -> str:
    return f"network-fence-{cluster}"


def _fence(cluster: Object, fence: Object | None, *, is_own: bool) -> FencePlan:
    name = cluster["metadata"]["name"]
    if is_own:
        return _failed(f"{name} cannot fence itself: set clusterFence on the DRCluster {name} of another cluster")
    if missing := _missing(cluster):
        return _failed(f"The DRCluster has no {', '.join(missing)}: set it, or cut the cluster off and set {MANUALLY_FENCED}")
    if fence is None or _state(fence) != FENCED or "deletionTimestamp" in fence["metadata"]:
        text = "The NetworkFence asks the storage to refuse the cluster"
        return _plan("Fencing", FALSE, "Fencing", TRUE, text, write=FENCED, complete=False)
    result, message = _result(fence)
    if result == FAILED:
        return _failed(f"The storage has not fenced the cluster: {message}", complete=False)
    if result != SUCCEEDED:
        return _plan("Fencing", FALSE, "Fencing", TRUE, f"{fence['metadata']['name']} has no result yet", complete=False)
    return _plan("Fenced", TRUE, "Fenced", FALSE, "The storage refuses the cluster")


def _unfence(fence: Object) -> FencePlan:
    """Fenced stays True until the NetworkFence is gone: nothing is placed on the cluster before."""
    result, message = _result(fence)
    if "deletionTimestamp" in fence["metadata"]:
        return _plan("Unfencing", TRUE, "Unfencing", FALSE, "The NetworkFence is being deleted", complete=False)
    if _state(fence) == FENCED:
        text = "The NetworkFence asks the storage to accept the cluster"
        return _plan("Unfencing", TRUE, "Unfencing", FALSE, text, write=UNFENCED, complete=False)
    if result == SUCCEEDED:
        return _plan("Unfencing", TRUE, "Unfencing", FALSE, "The storage accepts the cluster", delete=True, complete=False)
    if result == FAILED:
        return _plan("Unfencing", TRUE, "UnfenceError", FALSE, f"The storage still refuses the cluster: {message}", complete=False)
    return _plan("Unfencing", TRUE, "Unfencing", FALSE, f"{fence['metadata']['name']} has no result yet", complete=False)


def _missing(cluster: Object) -> list[str]:
    annotations = cluster["metadata"].get("annotations") or {}
    absent = [f"annotation {name}" for name in (DRIVER, CLUSTER_ID, SECRET_NAME, SECRET_NAMESPACE) if not annotations.get(name)]
    return ([] if cluster["spec"].get("cidrs") else ["spec.cidrs"]) + absent


def _state(fence: Object) -> str:
    return str((fence.get("spec") or {}).get("fenceState") or FENCED)


def _result(fence: Object) -> tuple[str, str]:
    status = fence.get("status") or {}
    return str(status.get("result") or ""), str(status.get("message") or "no message")


def _failed(message: str, *, complete: bool = True) -> FencePlan:
    return _plan("Fencing", FALSE, "FenceError", TRUE, message, complete=complete)


def _plan(
    phase: str, fenced: str, reason: str, clean: str, message: str, *, write: str = "", delete: bool = False, complete: bool = True
) -> FencePlan:
    return FencePlan(phase, ConditionState(fenced, reason, message), ConditionState(clean, reason, message), write, delete, complete)
