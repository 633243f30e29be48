"""Disaster recovery needs no processes behind HostedClusters: these tests use the quick hub, with Ramen's kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.upstream import ramen_crds

from ..support.dr_kinds import installed

KINDS = ("DRPlacementControl", "DRCluster", "VolumeReplicationGroup")


@pytest.fixture(scope="module")
def hub(quick_hub: Access) -> Iterator[Access]:
    with installed(quick_hub, [crd for crd in ramen_crds() if crd["spec"]["names"]["kind"] in KINDS]):
        yield quick_hub
