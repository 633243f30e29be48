"""Beside another controller of orders, or an imitation of it: neither undoes what the other writes, and deletion ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder

from ..support.engines import Engine, running
from ..support.orders import GROUP, Orders
from ..support.osac_crd import replace_crds
from ..support.osac_imitation import FINALIZER, OURS, OsacImitation
from ..support.samples import FAULT
from ..support.sources import WebhookEngine


@dataclass(frozen=True)
class Shared:
    """Orders, an engine that reconciles them beside another controller, and what a test needs of either kind of engine."""

    orders: Orders
    post: Callable[[str, dict[str, Any]], int]
    actions: Callable[[], list[str]]
    repair: Callable[[], None]
    template: str


@pytest.fixture
def real(quick_hub: Access, tmp_path: Path) -> Iterator[Shared]:
    """A real rules engine, which passes the name of the controller to its runs."""
    with fresh_namespace(quick_hub) as namespace:
        orders = Orders(quick_hub, namespace, tmp_path, external=True)
        broken = tmp_path / "broken-demo"
        broken.touch()
        with running(Engine(quick_hub, tmp_path, cluster_order_controller="external")) as engine:
            template = orders.fragile_template("fragile")
            yield Shared(orders, engine.post, lambda: engine.actions(f"{namespace}/demo"), broken.unlink, template)
            assert engine.is_running
        orders.clean_up()


@pytest.fixture
def in_process(new_sandbox: Callable[..., Sandbox], osac_crd: Callable[[str], dict[str, Any]], tmp_path: Path) -> Iterator[Shared]:
    """A hub with the CRD of the other controller, which drops what only we have in a status."""
    sandbox = new_sandbox(status_only=True)
    hub = Access(sandbox.kubeconfig())
    replace_crds(hub, osac_crd(GROUP))
    with fresh_namespace(hub) as namespace:
        orders = Orders(hub, namespace, tmp_path, external=True)
        with WebhookEngine(orders, controller="external").running() as engine:
            engine.failing.add("demo")
            template = orders.template("finished", post_install="[]\n")
            yield Shared(orders, engine.post, lambda: engine.actions("demo"), engine.failing.clear, template)
    sandbox.down()


@pytest.mark.parametrize("kind", ["real", pytest.param("in_process", marks=pytest.mark.osac_crds)])
def test_two_controllers_share_an_order_without_a_fight(request: pytest.FixtureRequest, kind: str) -> None:
    shared: Shared = request.getfixturevalue(kind)
    orders = shared.orders

    def version() -> str:
        return str(orders.get()["metadata"]["resourceVersion"])

    orders.apply(nodes={"fc430": 1}, template=shared.template)
    until(lambda: orders.status().get("conditions"), "the order is observed")
    assert shared.actions() == [], "the namespace is the other controller's to create"
    imitation = OsacImitation(Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)}), orders.namespace, shared.post)
    with imitation.running():
        until(lambda: observed(orders).phase == "Failed", "it has failed")
        failure = observed(orders).failure
        assert failure and (failure.task, failure.attempts) == ("Fail for as long as the site is broken", 1) and failure.next_attempt
        until(lambda: orders.status().get("phase") == "Progressing", "the other's phase stays its own")
        until(lambda: imitation.settled(version, "demo"), "no controller writes")
        assert shared.actions() == ["provision"], "no webhook brings its next attempt"
        shared.repair()
        orders.apply(nodes={"fc430": 2}, template=shared.template)
        until(lambda: observed(orders).phase == "Ready", "it is Ready for us")
        until(lambda: orders.status().get("phase") == "Ready", "it is Ready for the other")
        assert set(orders.get()["metadata"]["finalizers"]) == {FINALIZER, OURS}
        namespace = orders.kube.get("v1", "Namespace", orders.working())["metadata"]
        assert "finalizers" not in namespace and f"{orders.group}/clusterorder-namespace" not in namespace["labels"]
        assert shared.actions()[:2] == ["provision", "provision"] and shared.actions().count("post_install") == 1

        conditions = {item["type"]: item for item in orders.status()["conditions"]}
        assert {kind for kind, item in conditions.items() if item["reason"] == "Osac"} == {
            "Accepted",
            "NamespaceCreated",
            "ControlPlaneAvailable",
            "Progressing",
        }
        assert conditions["openfleet.clusters/NodesReady"]["message"] == "2 of 2 nodes ready"
        until(lambda: imitation.settled(version, "demo"), "no controller writes once the order is Ready")
        assert imitation.writes["demo"] < 10

        orders.patch_cluster({"metadata": {"annotations": {FAULT: "degraded"}}})
        until(lambda: observed(orders).phase == "Degraded", "we observe that it is degraded")
        assert orders.status()["phase"] == "Ready", "the other's phase stays its own"
        until(lambda: imitation.settled(version, "demo"), "no controller writes then either")

        orders.ask_to_delete()
        until(orders.is_deleted, "it is deleted")


def observed(orders: Orders) -> ClusterOrder:
    """The order as we understand it."""
    return ClusterOrder.from_object(orders.get())
