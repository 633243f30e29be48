"""The engine observes Flux: what its objects report becomes conditions and phases of the order, and a cluster that is dead is Unknown.

Flux of the hub has its objects in the working namespace, so that no further cluster is needed. Its controllers are not here: the tests
write what they would report.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.kinds import SOURCE

from ..support.flux_objects import NAMESPACE, report
from ..support.orders import Orders
from ..support.sources import InProcessEngine

CRD = "gitrepositories.source.toolkit.fluxcd.io"


@pytest.fixture
def flux_of_hub(quick_hub: Access, flux_crds: list[Object]) -> Iterator[Access]:
    (crd,) = (crd for crd in flux_crds if crd["metadata"]["name"] == CRD)
    quick_hub.install_crd(crd)
    yield quick_hub
    quick_hub.kubectl("delete", "crd", CRD)


@pytest.fixture
def engine(orders: Orders) -> Iterator[InProcessEngine]:
    with InProcessEngine(orders, poll=1).running() as engine:
        yield engine


def use_gitops(orders: Orders, *kinds: str) -> None:
    """The conditions that a run of the role reports."""
    conditions = orders.status()["conditions"]
    new = {"status": "Unknown", "reason": "Pending", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    orders.patch({"status": {"conditions": [*conditions, *({"type": kind, **new} for kind in kinds)]}}, subresource="status")


def test_what_flux_reports_is_on_the_order_within_the_poll(orders: Orders, engine: InProcessEngine, flux_of_hub: Access) -> None:
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")
    repository = {"apiVersion": SOURCE, "kind": "GitRepository", "metadata": {"name": NAMESPACE, "namespace": orders.working()}}
    flux_of_hub.kube.create(repository | {"spec": {"url": "https://git.example.com/a.git", "interval": "1m"}})
    use_gitops(orders, "GitOpsSourceReady")

    report(flux_of_hub, "GitRepository", "False", "GitOperationFailed", "authentication required", namespace=orders.working())
    engine.until_phase("Degraded")
    found = orders.condition("GitOpsSourceReady")
    assert (found["reason"], found["message"]) == ("GitOperationFailed", "GitRepository flux-system: authentication required")
    assert orders.condition("ClusterAvailable")["reason"] == "GitOpsNotReady"
    report(flux_of_hub, "GitRepository", "True", "Succeeded", "stored artifact", namespace=orders.working())
    engine.until_phase("Ready")
    assert engine.actions("demo") == ["provision"], "no run is needed for it"


def test_a_cluster_that_does_not_answer_is_unknown_and_stays_ready(orders: Orders, engine: InProcessEngine) -> None:
    """No process serves the clusters of the quick hub."""
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")
    use_gitops(orders, "GitOpsInstalled")
    until(lambda: orders.condition("GitOpsInstalled")["reason"] == "ClusterUnreachable", "the cluster was asked")
    assert orders.status()["phase"] == "Ready"
    assert orders.condition("GitOpsInstalled")["status"] == "Unknown"
