"""Tests of the REST API of a fleet: they need no processes behind HostedClusters, so they use the quick hub."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access

from ..support.fleet import Fleet, fleet_of
from ..support.fleet_api import Facade, Site, Tenant, site_on


@pytest.fixture(scope="session")
def hub(quick_hub: Access) -> Access:
    return quick_hub


@pytest.fixture(scope="module")
def site(quick_hub: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_on(quick_hub, tmp_path_factory.mktemp("api")) as made:
        yield made


@pytest.fixture(scope="module")
def facade(site: Site) -> Facade:
    return site.start()


@pytest.fixture
def tenant(site: Site, facade: Facade) -> Iterator[Tenant]:
    with site.tenant(facade) as made:
        yield made


@pytest.fixture
def other(site: Site, facade: Facade) -> Iterator[Tenant]:
    with site.tenant(facade) as made:
        yield made


@pytest.fixture
def fleet(quick_hub: Access, tenant: Tenant) -> Iterator[Fleet]:
    """The hubs and the quota of the tenant."""
    with fleet_of(quick_hub, tenant.name) as made:
        yield made
