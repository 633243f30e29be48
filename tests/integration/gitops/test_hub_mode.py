"""An order whose cluster gets everything from Flux of the hub: objects with its labels, signed notifications, and its deletion.

All of it with the shipped permissions of the engine. Flux's definitions are its own. Its controllers are not here: the test has their
finalizers; `test_flux_of_hub` has them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.kinds import HELM, KUSTOMIZE, NOTIFICATION, SOURCE
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.notification_key import SECRET, find_site_key, key_of
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.site_settings import CONFIG_MAP
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.lease import SITE_NAMESPACE

from ..support.actions import answer
from ..support.deployment import account_kubeconfig
from ..support.flux_objects import NAMESPACE, PROFILES, with_profiles
from ..support.manifests import MANIFESTS, manifest
from ..support.ocm_site import standing_in
from ..support.ocm_standin import OFFLINE_TOKEN, TOKEN_PATH
from ..support.orders import Orders
from ..support.permissions import Recorder, allowed, permissions_of
from ..support.playbooks import Answer
from ..support.sources import InProcessEngine

OPTIONS: Object = {
    "source": {"url": "https://git.example.com/a.git", "secretRef": {"name": "deploy"}},
    "notifications": {"address": "https://engine.example.com:5000"},
    "allowed_addresses": ["git.example.com"],
}


@pytest.fixture(scope="module")
def flux_of_hub(quick_hub: Access, flux_crds: list[Object]) -> Iterator[Access]:
    quick_hub.install_crds(*flux_crds)
    yield quick_hub
    quick_hub.kubectl("delete", "crd", *(crd["metadata"]["name"] for crd in flux_crds))
    quick_hub.kubectl("delete", "--ignore-not-found", "secret", SECRET, "-n", SITE_NAMESPACE)


@dataclass(frozen=True)
class Account:
    """The account of the engine, with its permissions for Flux of the hub. What it asks for is recorded."""

    kubeconfig: Path
    recorder: Recorder

    def gitops(self, orders: Orders, **options: Any) -> Answer:
        order = with_profiles(orders.get(), PROFILES)
        done = answer("cluster_gitops", kubeconfig=str(self.kubeconfig), cluster_order=order, mode="hub", **options)
        assert not done.failed, done.result
        return done


@pytest.fixture
def account(flux_of_hub: Access, tmp_path: Path) -> Iterator[Account]:
    hub, folder = flux_of_hub, str(MANIFESTS / "gitops")
    engine = hub.kube.impersonate("system:serviceaccount:openfleet-system:openfleet-clusters")
    hub.kubectl("apply", "-k", folder)
    try:
        until(lambda: allowed(engine, "list", "alerts", NOTIFICATION.partition("/")[0]), "the server knows the permissions")
        with Recorder(hub).running() as recorder:
            yield Account(account_kubeconfig(hub, f"http://127.0.0.1:{recorder.port}", tmp_path / "account.kubeconfig"), recorder)
    finally:
        hub.kubectl("delete", "-k", folder)


def test_flux_of_the_hub_serves_an_order_and_lets_its_cluster_go(orders: Orders, account: Account) -> None:
    kube, working, gitops = orders.kube, orders.working(), account.gitops
    orders.put_secret("deploy", username="robot", password="hunter2")  # noqa: S106 - of this test
    with InProcessEngine(orders).running() as engine:
        orders.apply(nodes={"fc430": 1})
        engine.until_phase("Ready")
    assert gitops(orders, check=True, **OPTIONS).changed and find_site_key(kube, SITE_NAMESPACE) == ""
    assert gitops(orders, **OPTIONS).result["part"]["ready"]
    assert not gitops(orders, **OPTIONS).changed
    order = orders.get()["metadata"]
    for api_version, kind, name in (
        (SOURCE, "GitRepository", NAMESPACE),
        (KUSTOMIZE, "Kustomization", NAMESPACE),
        (HELM, "HelmRelease", "web"),
    ):
        labels = kube.get(api_version, kind, name, working)["metadata"]["labels"]
        assert labels[f"{orders.group}/clusterorder-uid"] == order["uid"]
    provider = kube.get(NOTIFICATION, "Provider", "openfleet", working)["spec"]
    assert provider["address"] == f"https://engine.example.com:5000/gitops-notifications/{order['uid']}"
    token = base64.b64decode(kube.get("v1", "Secret", provider["secretRef"]["name"], working)["data"]["token"]).decode()
    assert token == key_of(find_site_key(kube, SITE_NAMESPACE), order["uid"])

    # Less is asked for: what is no longer wanted is deleted.
    gitops(orders, **OPTIONS | {"notifications": None})
    assert kube.find(NOTIFICATION, "Provider", "openfleet", working) is None

    kustomization = kube.get(KUSTOMIZE, "Kustomization", NAMESPACE, working)
    kube.patch(kustomization, {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}}, checked=False)
    orders.ask_to_delete()
    waiting = gitops(orders, state="absent").result["part"]
    assert (waiting["ready"], waiting["message"]) == (False, "Kustomization flux-system: Flux of the hub runs its finalizer")
    suspended = kube.get(KUSTOMIZE, "Kustomization", NAMESPACE, working)
    assert suspended["spec"]["suspend"] is True, "Flux does not reach for a cluster that is being deleted"
    kube.patch(suspended, {"metadata": {"finalizers": []}}, checked=False)
    assert gitops(orders, state="absent").result["part"]["ready"]
    assert not kube.list_all("v1", "Secret", working, label_selector="openfleet.clusters/resource-set=gitops")
    assert permissions_of(manifest("gitops/cluster_role")) <= account.recorder.used
    assert account.recorder.refused == set()
    with InProcessEngine(orders).running():
        until(orders.is_deleted, "the order is deleted")


@pytest.fixture
def site_in_hub_mode(flux_of_hub: Access) -> Iterator[None]:
    stored = flux_of_hub.kube.get("v1", "ConfigMap", CONFIG_MAP, SITE_NAMESPACE)
    flux_of_hub.kube.patch(stored, {"data": {"infrastructure": yaml.safe_dump({"gitops": {"mode": "hub"}})}}, checked=False)
    yield
    flux_of_hub.kube.patch(stored, {"data": {"infrastructure": stored["data"].get("infrastructure")}}, checked=False)


@pytest.mark.usefixtures("site_in_hub_mode")
@pytest.mark.parametrize(("template", "nodes"), [("existing_cluster", None), ("osd_small", {"m5.xlarge": 2})])
def test_templates_of_other_providers_use_flux_and_return_everything(orders: Orders, template: str, nodes: dict[str, int] | None) -> None:
    kubeconfig = orders.hub.kubeconfig.read_text(encoding="utf-8")
    orders.put_secret("existing", kubeconfig=kubeconfig)
    own = {"kubeconfig": {"secretRef": {"name": "existing", "key": "kubeconfig"}}} if template == "existing_cluster" else {}

    def source() -> Object | None:
        return orders.kube.find(SOURCE, "GitRepository", NAMESPACE, orders.working())

    with standing_in(hurried=True) as service:
        service.kubeconfig = kubeconfig
        variables = {"osd_small_url": service.url, "osd_small_token_url": f"{service.url}{TOKEN_PATH}", "osd_small_token": OFFLINE_TOKEN}

        def run(step: str) -> None:
            orders.run(step, "demo", site=variables).complete().successful()

        orders.apply(template=template, nodes=nodes, **own)
        run("provision")
        until(lambda: orders.sync("demo") and orders.condition("ControlPlaneAvailable")["status"] == "True", "the cluster is there")
        run("post_install")
        assert source() is None and not orders.condition("GitOpsSourceReady")["status"], "neither site nor order names a repository"
        orders.apply(template=template, nodes=nodes, gitops={"source": {"url": "http://127.0.0.1/apps.git"}}, **own)
        run("provision")
        run("post_install")
        assert (source() or {})["spec"]["url"] == "http://127.0.0.1/apps.git"
        assert orders.condition("GitOpsSourceReady")["status"] == "Unknown"
        # The controllers of Flux, which are not here, would remove their finalizers.
        orders.ask_to_delete()

        def is_gone() -> bool:
            run("delete")
            return orders.is_deleted()

        until(is_gone, "the order is deleted")
    assert service.clusters == {}
