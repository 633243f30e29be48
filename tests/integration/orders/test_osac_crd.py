"""Orders on a hub where OSAC's own CRD is installed, which knows fewer phases and drops status fields that only we have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from ..support.orders import GROUP, OTHER_GROUP, Orders
from ..support.osac_crd import replace_crds
from ..support.samples import FAULT


@pytest.fixture(scope="module")
def osac_hub(new_sandbox: Callable[..., Sandbox], osac_crd: Callable[[str], dict[str, Any]]) -> Iterator[Access]:
    sandbox = new_sandbox(status_only=True)
    hub = Access(sandbox.kubeconfig())
    replace_crds(hub, *map(osac_crd, (GROUP, OTHER_GROUP)))
    yield hub
    sandbox.down()


@pytest.mark.osac_crds
@pytest.mark.parametrize("group", [GROUP, OTHER_GROUP])
def test_an_order_is_reconciled_under_the_crd_of_another_controller(osac_hub: Access, tmp_path: Path, group: str) -> None:
    with fresh_namespace(osac_hub) as namespace:
        orders = Orders(osac_hub, namespace, tmp_path, group)
        orders.apply(nodes={"fc430": 2})
        orders.provision()
        assert orders.status()["phase"] == "Ready"
        assert "configVersion" not in orders.status(), "this CRD is expected to drop fields that it does not know"
        assert orders.provision().changed == 0

        orders.patch_pool({"metadata": {"annotations": {FAULT: "lose-node"}}})
        # It knows no Degraded; what is wrong is in the conditions all the same.
        orders.until_phase("Failed")
        assert orders.condition("NodesReady")["message"] == "1 of 2 nodes ready"
        orders.patch_pool({"metadata": {"annotations": {FAULT: None}}})
        orders.until_phase("Ready")

        orders.remove()
        assert orders.is_deleted()
