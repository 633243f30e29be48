"""Tests of the fleet need no processes behind HostedClusters: these tests use the quick hub."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access


@pytest.fixture(scope="session")
def hub(quick_hub: Access) -> Access:
    return quick_hub
