"""What the tests of cluster orders share beyond the sandbox: a hub without processes for HostedClusters, and orders on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from .orders import Orders


@pytest.fixture(scope="session")
def quick_hub(new_sandbox: Callable[..., Sandbox]) -> Access:
    """A hub whose HostedClusters become available at once, because nothing runs behind them."""
    return Access(new_sandbox(status_only=True).kubeconfig())


@pytest.fixture
def orders(quick_hub: Access, tmp_path: Path) -> Iterator[Orders]:
    """A namespace of the quick hub to place orders in, and the playbooks to carry them out with."""
    with fresh_namespace(quick_hub) as namespace:
        place = Orders(quick_hub, namespace, tmp_path)
        yield place
        place.clean_up()
