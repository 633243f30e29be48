"""With another controller of orders, or an imitation of it: neither undoes what the other writes, and deletion ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder

from ..support.engines import Engine, running
from ..support.in_process import act
from ..support.orders import GROUP, Orders
from ..support.osac_crd import replace_crds
from ..support.osac_imitation import FINALIZER, OURS, OsacImitation
from ..support.samples import FAULT
from ..support.sources import WebhookEngine

NAMESPACE_CREATED = "openfleet.clusters/NamespaceCreated"
MANAGEMENT_STATE = f"{GROUP}/management-state"


@dataclass(frozen=True)
class Shared:
    """Orders, an engine that reconciles them with another controller, and what a test needs of either kind of engine."""

    orders: Orders
    post: Callable[[str, dict[str, Any]], int]
    actions: Callable[[str], list[str]]
    repair: Callable[[], None]
    template: str
    random_names: bool


@pytest.fixture
def real(quick_hub: Access, tmp_path: Path) -> Iterator[Shared]:
    """A real rules engine, which passes the name of the controller to its runs."""
    with fresh_namespace(quick_hub) as namespace:
        orders = Orders(quick_hub, namespace, tmp_path, external=True)
        broken = tmp_path / "broken-demo"
        broken.touch()
        with running(Engine(quick_hub, tmp_path, cluster_order_controller="external", webhook_token="")) as engine:
            template = orders.fragile_template("fragile")

            def post(endpoint: str, order: dict[str, Any]) -> int:
                return engine.post(endpoint, order, token="")  # it has no credentials to send

            yield Shared(orders, post, lambda name: engine.actions(f"{namespace}/{name}"), broken.unlink, template, random_names=False)
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
            yield Shared(orders, engine.post, engine.actions, engine.failing.clear, template, random_names=True)
    sandbox.down()


@pytest.mark.parametrize("kind", ["real", pytest.param("in_process", marks=pytest.mark.osac_crds)])
def test_two_controllers_share_an_order_without_a_fight(request: pytest.FixtureRequest, kind: str) -> None:
    shared: Shared = request.getfixturevalue(kind)
    orders = shared.orders

    def version() -> str:
        return str(orders.get()["metadata"]["resourceVersion"])

    orders.apply("waiting", nodes={"fc430": 1}, template=shared.template)
    until(lambda: orders.condition(NAMESPACE_CREATED, "waiting")["reason"], "the order is observed")
    waiting = orders.condition(NAMESPACE_CREATED, "waiting")
    assert waiting["reason"] == "WaitingForController"
    assert f"Waiting since {orders.get('waiting')['metadata']['creationTimestamp']} for the order's controller" in waiting["message"]
    assert shared.actions("waiting") == [], "the namespace is the other controller's to create"
    orders.ask_to_delete("waiting")
    # Unmanaged at first, so that the other controller's status is the first.
    orders.apply(nodes={"fc430": 1}, template=shared.template, annotations={MANAGEMENT_STATE: "unmanaged"})
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    imitation = OsacImitation(kube, orders.namespace, shared.post, random_names=shared.random_names)
    with imitation.running():
        until(lambda: orders.status().get("clusterReference"), "the other controller has written its status")
        assert orders.working().startswith("cluster-demo-") == shared.random_names
        orders.apply(nodes={"fc430": 1}, template=shared.template, annotations={MANAGEMENT_STATE: "managed"})
        until(lambda: observed(orders).phase == "Failed", "it has failed")
        failure = observed(orders).failure
        assert failure and (failure.task, failure.attempts) == ("Fail for as long as the site is broken", 1) and failure.next_attempt
        until(lambda: orders.status().get("phase") == "Progressing", "the other's phase stays its own")
        until(lambda: imitation.settled(version, "demo"), "no controller writes")
        # Its time may have come on a machine that is slow.
        actions, is_due = shared.actions("demo"), datetime.now(UTC) >= failure.next_attempt
        assert actions == ["provision"] or is_due, "no webhook brings its next attempt"
        shared.repair()
        orders.apply(nodes={"fc430": 2}, template=shared.template)
        until(lambda: observed(orders).phase == "Ready", "it is Ready for us")
        until(lambda: orders.status().get("phase") == "Ready", "it is Ready for the other")
        assert set(orders.get()["metadata"]["finalizers"]) == {FINALIZER, OURS}
        namespace = orders.kube.get("v1", "Namespace", orders.working())["metadata"]
        assert "finalizers" not in namespace and f"{orders.group}/clusterorder-namespace" not in namespace["labels"]
        assert shared.actions("demo")[:2] == ["provision", "provision"] and shared.actions("demo").count("post_install") == 1

        conditions = {item["type"]: item for item in orders.status()["conditions"]}
        assert {kind for kind, item in conditions.items() if item["reason"] == "Osac"} == {
            "Accepted",
            "NamespaceCreated",
            "ControlPlaneAvailable",
            "Progressing",
        }
        assert "openfleet.clusters/Progressing" not in conditions, "no condition of the other's is copied"
        assert conditions["openfleet.clusters/NodesReady"]["message"] == "2 of 2 nodes ready"
        assert shown(orders) == {"phase": "Ready", "readyNodes": "2/2", "apiURL": observed(orders).status["apiURL"]}
        until(lambda: imitation.settled(version, "demo"), "no controller writes once the order is Ready")
        assert imitation.writes["demo"] < 10

        orders.patch_cluster({"metadata": {"annotations": {FAULT: "degraded"}}})
        until(lambda: observed(orders).phase == "Degraded", "we observe that it is degraded")
        assert orders.status()["phase"] == "Ready", "the other's phase stays its own"
        until(lambda: imitation.settled(version, "demo"), "no controller writes then either")

        working = orders.working()
        orders.ask_to_delete()
        until(lambda: orders.get() is None, "it is deleted")
        assert kube.find("v1", "Namespace", working) is None


def shown(orders: Orders) -> dict[str, Any]:
    """What a task shows of the order."""
    options = {"kubeconfig": str(orders.hub.kubeconfig), "api_group": orders.group, "controller": "external"}
    (order,) = act("cluster_order_info", options | {"namespace": orders.namespace, "name": "demo"})["orders"]
    assert order["next_action"] is None
    return {name: order["status"][name] for name in ("phase", "readyNodes", "apiURL")}


def observed(orders: Orders) -> ClusterOrder:
    """The order as we understand it."""
    return ClusterOrder.from_object(orders.get())
