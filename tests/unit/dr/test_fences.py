"""The fence of a cluster, as its DRCluster reports it."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.dr_clusters import Fence, fence_of


@pytest.mark.parametrize(
    ("wanted", "status", "observed", "fence"),
    [
        (None, None, 0, Fence("eu")),
        ("Unfenced", "False", 4, Fence("eu")),
        ("Fenced", "True", 4, Fence("eu", fenced=True, requested=True)),
        ("Fenced", "True", 3, Fence("eu", fenced=False, requested=True)),  # of an earlier fence
        ("Fenced", None, 0, Fence("eu", fenced=False, requested=True)),
        ("ManuallyFenced", "False", 4, Fence("eu", fenced=False, requested=True)),
        ("Unfenced", "True", 3, Fence("eu", fenced=False, requested=True)),  # it ends
        ("Unfenced", "True", 4, Fence("eu", fenced=False, requested=True)),
    ],
)
def test_fence(wanted: str | None, status: str | None, observed: int, fence: Fence) -> None:
    condition = {"type": "Fenced", "status": status, "observedGeneration": observed}
    item = {"metadata": {"name": "east", "generation": 4}, "spec": {"region": "eu", "clusterFence": wanted}}
    assert fence_of(item | {"status": {"conditions": [condition] if status else []}}) == fence
