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
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.observe import OURS
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.render import render
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import gitops

from ..support.flux_objects import NAMESPACE, PROFILES, report, with_profiles
from ..support.orders import Orders
from ..support.sources import InProcessEngine

CRDS = ("gitrepositories.source.toolkit.fluxcd.io", "helmreleases.helm.toolkit.fluxcd.io")


@pytest.fixture
def flux_of_hub(quick_hub: Access, flux_crds: list[Object]) -> Iterator[Access]:
    quick_hub.install_crds(*(crd for crd in flux_crds if crd["metadata"]["name"] in CRDS))
    yield quick_hub
    quick_hub.kubectl("delete", "crd", *CRDS)


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


def test_a_release_that_was_deleted_is_missing_and_applied_again(
    orders: Orders, engine: InProcessEngine, flux_of_hub: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")
    items = [item for item in render(PROFILES, namespace=orders.working()) if item["kind"] == "HelmRelease"]
    for item in items:
        flux_of_hub.kube.create(item | {"metadata": item["metadata"] | {"labels": item["metadata"]["labels"] | {OURS: "gitops"}}})
    accepted = with_profiles(orders.get(), PROFILES)
    orders.patch({"metadata": {"annotations": accepted["metadata"]["annotations"]}})  # without its version: the engine may write meanwhile
    use_gitops(orders, "ProfilesReady")
    until(lambda: orders.condition("ProfilesReady")["reason"] == "ProfilesProgressing", "the releases are observed")
    flux_of_hub.kube.delete(items[1])
    until(lambda: orders.condition("ProfilesReady")["message"] == "HelmRelease web: it does not exist", "it is reported")
    assert engine.actions("demo") == ["provision"], "it is not applied again at once"
    monkeypatch.setattr(gitops, "REPAIR_SECONDS", 1.0)
    until(lambda: engine.actions("demo")[:2] == ["provision", "post_install"], "the step runs again")


def test_a_cluster_that_does_not_answer_is_unknown_and_stays_ready(orders: Orders, engine: InProcessEngine) -> None:
    """No process serves the clusters of the quick hub."""
    orders.apply(nodes={"fc430": 1})
    engine.until_phase("Ready")
    use_gitops(orders, "GitOpsInstalled")
    until(lambda: orders.condition("GitOpsInstalled")["reason"] == "ClusterUnreachable", "the cluster was asked")
    assert orders.status()["phase"] == "Ready"
    assert orders.condition("GitOpsInstalled")["status"] == "Unknown"
