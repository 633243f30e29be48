"""An order to the end on a real hosted cluster with real Flux: git and two layers of profiles, a change, a failure, an upgrade, kills.

A tenant watches it on the page of the hub, in a real browser.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.access import GitOpsAccess
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.charts import Chart
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.flux_manifest import Manifest
from ansible_collections.openfleet.clusters.extensions.sandbox.gobuild import FLUX_CONTROLLERS
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from ..support.fleet_page import SingleHubPage, User, expect, single_hub_page, tenant_token, user_of
from ..support.gitops_orders import CONFIG, DEPLOYMENT, GitOpsSite, gitops_site
from ..support.orders import Orders

FAILS = {"fail.yaml": '{{ fail "the licence of web has expired" }}\n'}


@pytest.fixture
def site(
    sandbox: Sandbox, hub: Access, namespace: str, gitops_services: GitOpsAccess, flux_manifest: Manifest, tmp_path: Path
) -> Iterator[GitOpsSite]:
    manifests = {"path": str(flux_manifest.path), "sha256": flux_manifest.sha256, "version": flux_manifest.version}
    with gitops_site(sandbox, gitops_services, Orders(hub, namespace, tmp_path), {"manifests": manifests}) as made:
        yield made


@pytest.fixture
def page(hub: Access, tmp_path: Path) -> Iterator[SingleHubPage]:
    with single_hub_page(hub, tmp_path) as made:
        yield made


@pytest.fixture
def user(browser: Any, hub: Access, namespace: str, page: SingleHubPage) -> Iterator[User]:
    """The tenant on the page of the hub."""
    with user_of(browser, page.facade.address) as made:
        made.log_in(tenant_token(hub, namespace, page.facade))
        yield made


def until_shown(site: GitOpsSite, user: User, release: str, *texts: str) -> None:
    """Wait until the page has these texts beside a release. It asks the cluster again at each event of the order."""

    def is_shown() -> bool:
        site.orders.patch({"metadata": {"annotations": {"example.com/seen": str(time.time())}}})
        user.page.wait_for_timeout(1000)
        shown = user.workload("HelmRelease", release).all_inner_texts()
        return len(shown) == 1 and all(text in shown[0] for text in texts)

    until(is_shown, f"the page shows {', '.join(texts)} beside {release}")


def get_kubeconfig(user: User, file: Path) -> Access:
    """What the tenant downloads in the dialog."""
    page = user.page
    page.get_by_role("button", name="Kubeconfig").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Valid for").select_option(label="10 minutes")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_text("Valid until")).to_be_visible()
    link = dialog.get_by_role("link", name="Download")
    expect(link).to_be_focused()
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "demo.kubeconfig"
    download.value.save_as(file)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Kubeconfig")).to_be_focused()
    return Access(file)


def test_an_order_gets_git_and_profiles_changes_fails_and_is_upgraded_layer_by_layer(
    site: GitOpsSite, user: User, page: SingleHubPage, tmp_path: Path
) -> None:
    site.order(base="^1", web="^1")
    user.go("#/clusters")
    user.page.get_by_role("link", name="demo", exact=True).click()
    user.heading("demo")
    user.page.evaluate("window.marker = 1")
    site.play()
    site.until_conditions()
    assert site.orders.status()["phase"] == "Ready"
    expect(user.state).to_have_text("Ready")
    until(lambda: sorted(site.controllers()) == sorted(FLUX_CONTROLLERS), "every controller runs, also one that has just started again")
    assert site.answer() == "41"
    assert site.inside().get("deployment", "web", "-n", "workloads")["status"]["availableReplicas"] == 1

    # The kubeconfig that the tenant downloads reaches the cluster.
    assert get_kubeconfig(user, tmp_path / "downloaded").get("configmap", "from-git")["data"] == {"answer": "41"}

    # A change that is pushed to git arrives without a run.
    site.git.commit({"apps/config.yaml": CONFIG.format(answer="42")})
    site.fetch("gitrepositories")
    until(lambda: site.answer() == "42", "the change arrives")

    # A chart that fails: the order has its own message, and the layer below is upgraded all the same.
    site.registry.push(site.orders.namespace, Chart("base", "2.0.0"))
    site.charts.publish(Chart("web", "2.0.0", templates=FAILS))
    site.order(base="^2", web="2.0.0")
    site.play()
    site.fetch("helmrepositories")
    site.until_conditions("the licence of web has expired", ProfilesReady="False")
    assert site.orders.condition("ProfilesReady")["message"].startswith("HelmRelease web: ")
    assert site.orders.status()["phase"] == "Degraded"
    expect(user.state).to_have_text("Degraded")
    expect(user.condition("ProfilesReady")).to_contain_text("the licence of web has expired")
    until_shown(site, user, "web", "Failed", "the licence of web has expired")
    assert site.deployed("base")[0] == "2.0.0"

    # An upgrade of both layers, whose controllers are killed meanwhile.
    site.registry.push(site.orders.namespace, Chart("base", "3.0.0"))
    site.charts.publish(Chart("web", "3.0.0", templates={"deployment.yaml": DEPLOYMENT}))
    site.order(base="^3", web="^3")
    site.play()
    site.fetch("helmrepositories")
    site.kill_controllers()
    site.until_conditions()
    assert site.orders.status()["phase"] == "Ready"
    (base, base_time), (web, web_time) = site.deployed("base"), site.deployed("web")
    assert (base, web) == ("3.0.0", "3.0.0")
    assert base_time <= web_time
    expect(user.state).to_have_text("Ready")
    expect(user.condition("ProfilesReady")).to_contain_text("True")
    until_shown(site, user, "web", "Healthy")
    assert user.page.evaluate("window.marker") == 1, "the page was loaded again"

    site.orders.remove()
    assert site.orders.is_deleted()
    until(lambda: not site.controllers(), "the controllers have ended with their cluster")
    user.heading("demo is deleted")
    shipped, used = page.permissions()
    assert used == shipped and not page.recorder.refused


def test_a_run_that_is_killed_at_any_task_is_continued_by_the_next(site: GitOpsSite) -> None:
    site.order(base="^1", web="^1")
    site.provision()
    assert site.play_and_kill() > 3
    site.kill_controllers()
    site.play()
    site.until_conditions()
    assert site.orders.status()["phase"] == "Ready"
    assert (site.answer(), site.deployed("web")[0]) == ("41", "1.0.0")
