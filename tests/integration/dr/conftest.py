"""Disaster recovery needs no processes behind HostedClusters: these tests use the quick hub, with Ramen's kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.upstream import acm_crds, ramen_crds

from ..support.dr_kinds import installed, view_crd_standin

RAMEN_KINDS = ("DRPlacementControl", "DRPolicy", "DRCluster", "VolumeReplicationGroup")
ACM_KINDS = ("ManagedCluster", "Placement", "PlacementDecision", "ManifestWork")


@pytest.fixture(scope="module")
def hub(quick_hub: Access) -> Iterator[Access]:
    with installed(quick_hub, [crd for crd in ramen_crds() if crd["spec"]["names"]["kind"] in RAMEN_KINDS]):
        yield quick_hub


@pytest.fixture(scope="module")
def acm(hub: Access) -> Iterator[Access]:
    """The hub, with the kinds of an ACM hub."""
    crds = [crd for crd in acm_crds() if crd["spec"]["names"]["kind"] in ACM_KINDS]
    with installed(hub, [*crds, view_crd_standin()]):
        yield hub
