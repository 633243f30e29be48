"""The pinned API definitions of other projects are ones that the hub serves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import upstream
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access

EXPECTED = {
    upstream.acm_crds: {"ManagedCluster", "ManagedClusterSet", "Placement", "PlacementDecision", "ManifestWork"},
    upstream.ramen_crds: {"DRPolicy", "DRCluster", "DRPlacementControl", "VolumeReplicationGroup"},
}


@pytest.mark.parametrize("crds", EXPECTED, ids=lambda crds: crds.__name__)
def test_definitions_are_served(crds: Callable[[], list[dict[str, Any]]], hub: Access) -> None:
    definitions = crds()
    assert {crd["spec"]["names"]["kind"] for crd in definitions} >= EXPECTED[crds]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions})
    try:
        hub.kubectl("apply", "--server-side", "-f", "-", stdin=text)
        hub.kubectl("wait", "--for=condition=Established", "--timeout=120s", "-f", "-", stdin=text)
    finally:
        hub.kubectl("delete", "-f", "-", "--ignore-not-found", stdin=text)


def test_hub_has_the_collections_and_hypershifts_definitions(hub: Access) -> None:
    kinds = {item["spec"]["names"]["kind"] for item in hub.get("crds")["items"]}
    assert kinds >= {"AddressPool", "ClusterOrder", "ClusterRegistry", "HostedCluster", "NodePool"}
