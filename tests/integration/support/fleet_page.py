"""A user of the fleet page in a real browser: logs in, goes to its pages, and reports what the browser complains about.

Also the page of a single hub, and a tenant of it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox import browser as browsers
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DEFAULT_GROUP

from .deployment import account_kubeconfig
from .fleet_api import Client, Facade
from .manifests import MANIFESTS, manifest
from .permissions import Permission, Recorder, allowed, permissions_of
from .tenants import RBAC

PATIENCE = 60_000  # milliseconds


def expect(locator: Any) -> Any:
    """Playwright's assertions about a part of a page, which wait."""
    expect_ = browsers.module("playwright.sync_api").expect
    expect_.set_options(timeout=PATIENCE)
    return expect_(locator)


@dataclass
class User:
    """One context of the browser, which shares nothing with others. `complaints` has errors of scripts and of the page's policy."""

    address: str
    page: Any
    complaints: list[str] = field(default_factory=list)

    def log_in(self, token: str) -> None:
        self.page.goto(f"{self.address}/")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Log in with the token").click()
        self.heading("Overview")

    def go(self, route: str) -> None:
        """Another route without a reload."""
        self.page.evaluate("route => { location.hash = route; }", route)

    def heading(self, text: str) -> None:
        self.page.get_by_role("heading", level=1, name=text, exact=True).wait_for()

    @property
    def state(self) -> Any:
        """The state of the cluster that is shown."""
        return self.page.locator(".head .badge").first

    def workload(self, kind: str, name: str) -> Any:
        """The row of a workload of the cluster that is shown."""
        page = self.page
        return page.get_by_role("row").filter(has_text=kind).filter(has=page.get_by_role("rowheader", name=name, exact=True))

    def condition(self, kind: str) -> Any:
        """The entry of a condition of the cluster that is shown."""
        return self.page.locator(".timeline li").filter(has=self.page.locator(f".type:text-is('{kind}')"))

    def _heard(self, message: Any) -> None:
        # The browser logs each answer with an error status, also those that the page expects.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.complaints.append(message.text)


@contextlib.contextmanager
def user_of(browser: Any, address: str, **options: Any) -> Iterator[User]:
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    user = User(address, context.new_page())
    user.page.on("console", user._heard)  # noqa: SLF001 - its own
    user.page.on("pageerror", lambda error: user.complaints.append(str(error)))
    try:
        yield user
        assert not user.complaints, user.complaints
    finally:
        context.close()


@dataclass(frozen=True)
class SingleHubPage:
    """The service for the orders of one hub. `recorder` has what its account has asked the hub for."""

    facade: Facade
    recorder: Recorder

    def permissions(self) -> tuple[set[Permission], set[Permission]]:
        """Those of the shipped role, but for what it may do as its callers, and those that were used."""
        shipped = {each for each in permissions_of(manifest("page/cluster_role")) if not each.verb.startswith("impersonate")}
        return shipped, self.recorder.used & shipped


@contextlib.contextmanager
def single_hub_page(hub: Access, folder: Path) -> Iterator[SingleHubPage]:
    """The service with the shipped account, permissions and settings, as a process."""
    hub.kubectl("apply", "-k", str(MANIFESTS / "page"))
    account = manifest("page/service_account")["metadata"]
    user = hub.kube.impersonate(f"system:serviceaccount:{account['namespace']}:{account['name']}")
    try:
        until(lambda: allowed(user, "list", "events"), "the server knows its permissions")
        with Recorder(hub).running() as recorder:
            server, file = f"http://127.0.0.1:{recorder.port}", folder / "page.kubeconfig"
            settings = yaml.safe_load(manifest("page/config_map")["data"]["settings.yaml"])["single_hub"]
            assert settings["collections_paths"] == ["/usr/share/ansible/collections"]  # of a container
            settings["collections_paths"] = [str(Path(sys.prefix) / "collections")]
            facade = Facade(account_kubeconfig(hub, server, file, "page/service_account"), folder / "page", {"single_hub": settings})
            try:
                facade.start()
                yield SingleHubPage(facade, recorder)
            finally:
                facade.kill()
    finally:
        hub.kubectl("delete", "-k", str(MANIFESTS / "page"))


def tenant_token(hub: Access, namespace: str, facade: Facade) -> str:
    """A token that the service knows: of an account with the shipped permissions of tenants in this namespace, and for kubeconfigs."""
    metadata = {"name": "page", "namespace": namespace}
    rules = manifest("tenant_cluster_role")["rules"]
    rules.append({"apiGroups": [DEFAULT_GROUP], "resources": ["clusterorders/kubeconfig"], "verbs": ["create"]})
    role = {"apiGroup": RBAC, "kind": "Role", "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", **metadata}
    hub.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]},
    )
    client = Client(facade.address, hub.kubectl("create", "token", metadata["name"], "-n", namespace).stdout.strip())
    until(lambda: client.get("/tenants").json().get("items"), "the service knows the tenant")
    return client.token
