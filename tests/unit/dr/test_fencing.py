"""What a DRCluster requests of a NetworkFence, case by case."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.fencing import (
    CLUSTER_ID,
    DRIVER,
    SECRET_NAME,
    SECRET_NAMESPACE,
    network_fence,
    plan_fence,
)

ANNOTATIONS = {DRIVER: "csi.example.com", CLUSTER_ID: "storage", SECRET_NAME: "csi", SECRET_NAMESPACE: "storage"}


def drcluster(wanted: str, annotations: Object | None = None, **spec: object) -> Object:
    metadata = {"name": "east", "annotations": ANNOTATIONS if annotations is None else annotations}
    return {"metadata": metadata, "spec": {"clusterFence": wanted, "cidrs": ["10.0.1.0/24"]} | spec}


def fence(state: str, result: str = "", *, deleting: bool = False) -> Object:
    metadata = {"name": "network-fence-east"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})
    return {"metadata": metadata, "spec": {"fenceState": state}, "status": {"result": result, "message": "refused"} if result else {}}


# clusterFence, the NetworkFence -> phase, Fenced, Clean, what is written, whether it is deleted, whether all is
# done
CASES: dict[str, tuple[str, Object | None, tuple[str, str, str, str, bool, bool]]] = {
    "clusterFence is empty": ("", None, ("Available", "False/Clean", "True", "", False, True)),
    "a fence begins": ("Fenced", None, ("Fencing", "False/Fencing", "True", "Fenced", False, False)),
    "the storage has not answered": ("Fenced", fence("Fenced"), ("Fencing", "False/Fencing", "True", "", False, False)),
    "the storage refuses": ("Fenced", fence("Fenced", "Failed"), ("Fencing", "False/FenceError", "True", "", False, False)),
    "it is fenced": ("Fenced", fence("Fenced", "Succeeded"), ("Fenced", "True/Fenced", "False", "", False, True)),
    "the result is of its end": ("Fenced", fence("Unfenced", "Succeeded"), ("Fencing", "False/Fencing", "True", "Fenced", False, False)),
    "its fence is being deleted": (
        "Fenced",
        fence("Fenced", "Succeeded", deleting=True),
        ("Fencing", "False/Fencing", "True", "Fenced", False, False),
    ),
    "the end begins": ("Unfenced", fence("Fenced", "Succeeded"), ("Unfencing", "True/Unfencing", "False", "Unfenced", False, False)),
    "the line is removed": ("", fence("Fenced", "Succeeded"), ("Unfencing", "True/Unfencing", "False", "Unfenced", False, False)),
    "the end has no answer": ("Unfenced", fence("Unfenced"), ("Unfencing", "True/Unfencing", "False", "", False, False)),
    "the end is refused": ("Unfenced", fence("Unfenced", "Failed"), ("Unfencing", "True/UnfenceError", "False", "", False, False)),
    "it is unfenced": ("Unfenced", fence("Unfenced", "Succeeded"), ("Unfencing", "True/Unfencing", "False", "", True, False)),
    "it is being deleted": (
        "Unfenced",
        fence("Unfenced", "Succeeded", deleting=True),
        ("Unfencing", "True/Unfencing", "False", "", False, False),
    ),
    "it is clean": ("Unfenced", None, ("Unfenced", "False/Clean", "True", "", False, True)),
    "it is fenced manually": ("ManuallyFenced", None, ("Fenced", "True/Fenced", "False", "", False, True)),
    "it is unfenced manually": ("ManuallyUnfenced", None, ("Unfenced", "False/Clean", "True", "", False, True)),
}


@pytest.mark.parametrize("case", CASES)
def test_fence(case: str) -> None:
    wanted, found, expected = CASES[case]
    plan = plan_fence(drcluster(wanted), found, is_own=False)
    texts = plan.phase, f"{plan.fenced.status}/{plan.fenced.reason}", plan.clean.status
    assert (*texts, plan.write, plan.delete, plan.complete) == expected


def test_the_network_fence_has_what_ramen_gives_it() -> None:
    item = network_fence(drcluster("Fenced"), "Fenced")
    assert item["metadata"]["name"] == "network-fence-east"
    assert item["spec"] == {
        "fenceState": "Fenced",
        "cidrs": ["10.0.1.0/24"],
        "driver": "csi.example.com",
        "secret": {"name": "csi", "namespace": "storage"},
        "parameters": {"clusterID": "storage"},
    }


@pytest.mark.parametrize(
    ("cluster", "own", "text"),
    [
        (drcluster("Fenced"), True, "east cannot fence itself: set clusterFence on the DRCluster east of another cluster"),
        (drcluster("Fenced", cidrs=[]), False, "The DRCluster has no spec.cidrs: set it, or cut the cluster off and set ManuallyFenced"),
        (drcluster("Fenced", ANNOTATIONS | {DRIVER: ""}), False, f"The DRCluster has no annotation {DRIVER}: set it"),
    ],
)
def test_what_cannot_be_fenced_says_why_and_writes_nothing(cluster: Object, own: bool, text: str) -> None:
    plan = plan_fence(cluster, None, is_own=own)
    assert (plan.fenced.status, plan.fenced.reason, plan.write) == ("False", "FenceError", "")
    assert plan.fenced.message.startswith(text)
