"""OSAC's own CRD of orders in the place of ours, where this machine has it: it drops status fields that it does not know."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import UPSTREAM


def the_crd_of_osac(group: str) -> dict[str, Any]:
    """A test that asks for it is skipped where there is none."""
    file = UPSTREAM / "osac" / f"{group}_clusterorders.yaml"
    if not file.is_file():
        pytest.skip(f"OSAC's own CRD is not at {file}; OPENFLEET_UPSTREAM_CRDS names the folder that has it")
    return load_crd(file)


def put_in_place_of_ours(crd: dict[str, Any], hub: Access) -> None:
    hub.kubectl("delete", "crd", "clusterorders.cloudkit.openshift.io")
    hub.install_crd(crd)
