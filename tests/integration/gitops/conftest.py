"""Flux's own definitions, for tests without its controllers, and a browser."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.flux_manifest import Manifest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.bounded_yaml import load_all
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ..page.conftest import browser

__all__ = ["browser", "flux_crds"]


@pytest.fixture(scope="session")
def flux_crds(flux_manifest: Manifest) -> list[Object]:
    return [item for item in load_all(flux_manifest.path.read_bytes(), 2**23, 500_000) if item["kind"] == "CustomResourceDefinition"]
