"""The account that the rules engine runs with in a cluster: its rights are enough for the whole life of an order, and none is too much."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import urllib3
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


@pytest.fixture
def less(site: Site) -> Iterator[Callable[[Right], None]]:
    """Take one right away from the account, for the length of a test."""
    yield lambda right: site.hub.apply(without(ROLE, right))
    site.hub.apply(ROLE)


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (Right("", "namespaces", "create"), 'cannot create resource "namespaces"'),
        (Right("", "secrets", "create"), 'cannot create resource "secrets"'),
        (Right("hypershift.openshift.io", "nodepools", "create"), 'cannot create resource "nodepools"'),
        (Right(GROUP, "clusterorders", "patch"), 'cannot patch resource "clusterorders"'),
        (Right("rbac.authorization.k8s.io", "clusterroles", "bind"), "grant the verb bind of that role"),
    ],
    ids=lambda value: f"{value.resource}-{value.verb}" if isinstance(value, Right) else "",
)
def test_an_order_says_which_right_is_missing(site: Site, less: Callable[[Right], None], right: Right, said: str) -> None:
    name = f"no-{right.resource}-{right.verb}"
    less(right)
    site.orders.place(name, nodes={"fc430": 1})
    site.until_phase("Failed", name)
    message = site.orders.status(name)["failure"]["message"]
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "right",
    [Right("coordination.k8s.io", "leases", "create"), Right(GROUP, "clusterorders/status", "update")],
    ids=lambda right: f"{right.resource}-{right.verb}",
)
def test_the_log_says_which_right_is_missing_where_the_order_cannot(site: Site, less: Callable[[Right], None], right: Right) -> None:
    less(right)
    site.orders.place(f"no-{right.resource.replace('/', '-')}", nodes={"fc430": 1})
    said = f'cannot {right.verb} resource "{right.resource}"'
    until(lambda: site.engine.said(said), f"{said!r} is in {site.engine.log}")


def test_it_ends_in_order_and_a_new_one_is_not_well_and_says_why_where_it_may_not_watch(site: Site, less: Callable[[Right], None]) -> None:
    assert site.engine.end(signal.SIGTERM) == 0
    assert site.engine.processes() == []
    less(Right(GROUP, "clusterorders", "list"))
    site.engine.start(wait=False)
    until(lambda: site.engine.said('watch of ClusterOrder: .* cannot list resource "clusterorders"'), f"it is in {site.engine.log}")
    answer = urllib3.request("GET", f"http://127.0.0.1:{site.engine.port}/healthz", timeout=10)
    assert (answer.status, "ClusterOrder is not listed yet" in answer.data.decode()) == (503, True)
