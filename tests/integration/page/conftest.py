"""The fleet page: a service on the quick hub, tenants with real tokens, and one browser for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import browser as browsers
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access

from ..fleet_api.conftest import facade, hub, other, site, tenant
from ..support.fleet import Fleet, fleet_of
from ..support.fleet_api import Tenant

__all__ = ["browser", "facade", "fleet", "hub", "other", "site", "tenant"]  # the fixtures; most are shared with the tests of the API


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if reason := browsers.missing():
        pytest.skip(reason)
    with browsers.running_browser() as started:
        yield started


@pytest.fixture
def fleet(quick_hub: Access, tenant: Tenant) -> Iterator[Fleet]:
    with fleet_of(quick_hub, tenant.name) as made:
        made.add_hub("east")
        made.set_quota(hard={"clusters": 100, "nodes": 100})
        yield made
