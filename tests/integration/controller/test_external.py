"""Beside another controller of orders, or an imitation of it: neither undoes what the other writes, and deletion ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from ..support.osac_crd import put_in_place_of_ours
from ..support.osac_imitation import FINALIZER, OURS, OsacImitation, quiet
from ..support.samples import FAULT

QUIET_SECONDS = 5


@pytest.fixture(params=["our CRD", pytest.param("the other's CRD", marks=pytest.mark.osac_crds)])
def orders(
    request: pytest.FixtureRequest, new_sandbox: Callable[..., Sandbox], osac_crd: Callable[[str], dict[str, Any]], tmp_path: Path
) -> Iterator[Orders]:
    """A hub with one of the two CRDs. That of the other drops what only we have in a status."""
    sandbox = new_sandbox(status_only=True)
    hub = Access(sandbox.kubeconfig())
    if request.param == "the other's CRD":
        put_in_place_of_ours(hub, osac_crd(GROUP))
    with fresh_namespace(hub) as namespace:
        yield Orders(hub, namespace, tmp_path)
    sandbox.down()


def test_two_controllers_share_an_order_without_a_fight(orders: Orders, tmp_path: Path) -> None:
    kube = Kube.connect({"kubeconfig": str(orders.hub.kubeconfig)})
    orders.fragile_template("fragile")
    (tmp_path / "broken-demo").touch()
    with running(Engine(orders.hub, tmp_path, cluster_order_controller="external")) as engine:
        orders.place("demo", nodes={"fc430": 1}, template="acme.site.fragile")
        until(lambda: orders.status("demo").get("conditions"), "the order is looked at")
        assert engine.actions(f"{orders.namespace}/demo") == [], "the namespace is another's to make"
        imitation = OsacImitation(kube, orders.namespace, engine.post)
        with imitation.running():
            until(lambda: seen(orders).phase == "Failed", f"it has failed; the log is {engine.log}", 180)
            failure = seen(orders).failure
            assert failure and (failure.task, failure.attempts) == ("Fail for as long as the site is broken", 1) and failure.next_attempt
            assert orders.status("demo")["phase"] == "Progressing", "the other's phase stays its own"
            assert quiet(lambda: orders.get("demo")["metadata"]["resourceVersion"], QUIET_SECONDS), "no webhook brings its next attempt"
            (tmp_path / "broken-demo").unlink()
            orders.place("demo", nodes={"fc430": 2}, template="acme.site.fragile")
            until(lambda: seen(orders).phase == "Ready", f"it is Ready for us; the log is {engine.log}", 180)
            until(lambda: orders.status("demo").get("phase") == "Ready", "it is Ready for the other")
            assert set(orders.get("demo")["metadata"]["finalizers"]) == {FINALIZER, OURS}
            namespace = orders.hub.get("namespace", orders.working("demo"))
            assert (
                "finalizers" not in namespace["metadata"]
                and f"{orders.group}/clusterorder-namespace" not in namespace["metadata"]["labels"]
            )
            actions = engine.actions(f"{orders.namespace}/demo")
            assert actions[:2] == ["provision", "provision"] and actions.count("post_install") == 1

            conditions = {item["type"]: item for item in orders.status("demo")["conditions"]}
            assert {kind for kind, item in conditions.items() if item["reason"] == "Osac"} == {
                "Accepted",
                "NamespaceCreated",
                "ControlPlaneAvailable",
                "Progressing",
            }
            assert conditions["openfleet.clusters/NodesReady"]["message"] == "2 of 2 nodes ready"
            posts = imitation.posts["demo"]
            until(lambda: quiet(lambda: orders.get("demo")["metadata"]["resourceVersion"], QUIET_SECONDS), "nobody writes once all is well")
            assert imitation.posts["demo"] > posts and imitation.writes["demo"] < 10

            place = ("hostedcluster", "demo", "-n", orders.working("demo"))
            orders.hub.kubectl("annotate", *place, f"{FAULT}=degraded")
            until(lambda: seen(orders).phase == "Degraded", "we see that it is degraded")
            assert orders.status("demo")["phase"] == "Ready", "the other's phase stays its own"
            until(lambda: quiet(lambda: orders.get("demo")["metadata"]["resourceVersion"], QUIET_SECONDS), "nobody writes then either")

            orders.hub.kubectl("delete", orders.kind, "demo", "-n", orders.namespace, "--wait=false")
            until(lambda: orders.is_gone("demo"), f"it is gone; the log is {engine.log}", 180)
        assert engine.is_running


def seen(orders: Orders) -> ClusterOrder:
    """The order as we understand it."""
    return ClusterOrder.from_object(orders.get("demo"))
