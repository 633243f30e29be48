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
from ..support.osac_crd import put_in_place_of_ours
from ..support.samples import FAULT


@pytest.fixture(scope="module", params=[GROUP, OTHER_GROUP])
def osac_hub(
    request: pytest.FixtureRequest, new_sandbox: Callable[..., Sandbox], osac_crd: Callable[[str], dict[str, Any]]
) -> Iterator[tuple[Access, str]]:
    sandbox = new_sandbox(status_only=True)
    hub = Access(sandbox.kubeconfig())
    put_in_place_of_ours(osac_crd(request.param), hub)
    yield hub, request.param
    sandbox.down()


@pytest.mark.osac_crds
def test_an_order_lives_under_the_crd_of_another_controller(osac_hub: tuple[Access, str], tmp_path: Path) -> None:
    hub, group = osac_hub
    with fresh_namespace(hub) as namespace:
        orders = Orders(hub, namespace, tmp_path, group)
        orders.place(nodes={"fc430": 2})
        orders.create()
        assert orders.status()["phase"] == "Ready"
        assert "configVersion" not in orders.status(), "this CRD is expected to drop what it does not know"
        assert orders.create().changed == 0

        hub.kubectl("annotate", "nodepool", "demo-fc430", "-n", orders.working(), f"{FAULT}=lose-node")
        hub.wait("nodepool/demo-fc430", "-n", orders.working(), "--for=condition=AllNodesHealthy=False")
        orders.play("sync_status").successful()
        # It knows no Degraded; what is wrong is in the conditions all the same.
        assert orders.status()["phase"] == "Failed"
        assert orders.condition("NodesReady")["message"] == "1 of 2 nodes ready"
        hub.kubectl("annotate", "nodepool", "demo-fc430", "-n", orders.working(), f"{FAULT}-")
        hub.wait("nodepool/demo-fc430", "-n", orders.working(), "--for=condition=Ready")
        orders.play("sync_status").successful()
        assert orders.status()["phase"] == "Ready"

        orders.delete()
        assert orders.is_gone()
