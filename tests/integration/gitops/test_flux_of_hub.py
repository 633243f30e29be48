"""Flux of the hub brings git and profiles into a real hosted cluster that has no Flux: its own controllers, by the cluster's kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import GitOpsAccess
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.flux_manifest import Manifest
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads_answers import answer_workloads
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

from ..support.gitops import FLUX_NAMESPACE, install_flux
from ..support.gitops_orders import GitOpsSite, gitops_site
from ..support.orders import Orders

RELEASES = (("HelmRelease", "base"), ("HelmRelease", "web"), ("Kustomization", "flux-system"))


@pytest.fixture
def flux_of_hub(sandbox: Sandbox, hub: Access, flux_manifest: Manifest) -> Iterator[Access]:
    sandbox.up(workloads=["hub"])
    install_flux(hub, flux_manifest)
    yield hub
    hub.kubectl("delete", "-f", str(flux_manifest.path))


@pytest.fixture
def site(sandbox: Sandbox, flux_of_hub: Access, namespace: str, gitops_services: GitOpsAccess, tmp_path: Path) -> Iterator[GitOpsSite]:
    with gitops_site(sandbox, gitops_services, Orders(flux_of_hub, namespace, tmp_path), {"mode": "hub"}) as made:
        yield made


def test_an_order_gets_git_and_profiles_from_the_hub(site: GitOpsSite) -> None:
    orders = site.orders
    site.order(base="^1", web="^1")
    site.provision()
    orders.run("post_install", "demo").complete().successful()
    site.until_conditions()
    assert orders.status()["phase"] == "Ready"
    inside = site.inside()
    assert site.answer() == "41"
    assert inside.get("deployment", "web", "-n", "workloads")["status"]["availableReplicas"] == 1
    assert inside.get("namespace", FLUX_NAMESPACE) is None

    shown = answer_workloads(orders.kube, Names(orders.group), orders.get()).content()["items"]
    of_flux = {(each["kind"], each["name"], each["health"]) for each in shown if each["namespace"] == orders.working()}
    assert of_flux == {(kind, name, "Healthy") for kind, name in RELEASES}
    assert {each["name"] for each in shown if each["kind"] == "Deployment"} == {"web"}

    def is_gone() -> bool:
        orders.run("delete", "demo").complete().successful()
        return orders.is_deleted()

    until(is_gone, "the order is deleted")
