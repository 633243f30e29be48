"""The account that the rules engine runs with in a cluster: its rights are enough for the whole life of an order, and none is too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox

from .deployed import Deployed, account_kubeconfig, install, manifest
from .engines import running
from .orders import GROUP, Orders
from .rights import Recorder, Right, rights_of, without
from .samples import FAULT

# What the server looks for on the way to something else, and no request of its own.
IMPLIED = {Right("rbac.authorization.k8s.io", "clusterroles", "bind")}
ROLE = manifest("cluster_role")


class Site(SimpleNamespace):
    hub: Access
    orders: Orders
    engine: Deployed
    recorder: Recorder

    def until_phase(self, phase: str, name: str) -> None:
        until(lambda: self.orders.status(name).get("phase") == phase, f"{name} is {phase}; the log is {self.engine.log}", 120)


@pytest.fixture(scope="module")
def site(new_sandbox: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    sandbox, folder = new_sandbox(status_only=True), tmp_path_factory.mktemp("site")
    hub = Access(sandbox.kubeconfig())
    install(hub)
    with fresh_namespace(hub) as namespace, Recorder(hub).running() as recorder:
        orders = Orders(hub, namespace, folder)
        orders.template("finished", post_install="[]\n")
        account = Access(account_kubeconfig(hub, f"http://127.0.0.1:{recorder.port}", folder / "account.kubeconfig"))
        with running(Deployed(account, folder)) as engine:
            yield Site(hub=hub, orders=orders, engine=engine, recorder=recorder)
    sandbox.down()


def test_with_the_rights_of_the_manifest_and_no_others_an_order_lives_its_whole_life(site: Site) -> None:
    site.orders.place("demo", nodes={"fc430": 1}, template="acme.site.finished")
    site.until_phase("Ready", "demo")
    site.orders.place("demo", nodes={"fc430": 2}, template="acme.site.finished")
    until(lambda: site.orders.condition("NodesReady")["message"] == "2 of 2 ready", "it is scaled")
    site.until_phase("Ready", "demo")
    place = ("hostedcluster", "demo", "-n", site.orders.working("demo"))
    site.hub.kubectl("annotate", *place, f"{FAULT}=degraded")
    site.until_phase("Degraded", "demo")
    site.hub.kubectl("annotate", *place, f"{FAULT}-")
    site.until_phase("Ready", "demo")
    site.hub.kubectl("delete", site.orders.kind, "demo", "-n", site.orders.namespace, "--wait=false")
    until(lambda: site.orders.is_gone("demo"), f"it is gone; the log is {site.engine.log}")
    actions = site.engine.actions(f"{site.orders.namespace}/demo")
    assert actions[:2] == ["provision", "post_install"]
    assert actions[-1] == "delete"
    assert site.recorder.refused == set()
    assert site.recorder.used | IMPLIED == rights_of(ROLE)
