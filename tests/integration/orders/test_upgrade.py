"""Upgrades of many orders in waves, on a real API server; runs in this process do what the engine does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

from ..support.actions import answer
from ..support.orders import NEXT_RELEASE, RELEASE, Orders
from ..support.samples import FAULT

ORDERS = 30
LABEL = "stage=test"


def names(count: int = ORDERS) -> list[str]:
    return [f"order-{number:02}" for number in range(count)]


def place(orders: Orders, count: int) -> None:
    """Create orders with a label, and run them until they are Ready."""
    for name in names(count):
        orders.apply(name, nodes={"fc430": 1}, release_image=RELEASE)
        orders.patch({"metadata": {"labels": dict([LABEL.split("=")])}}, name)
    orders.run("provision", *names(count)).complete(wait=200).successful()


def upgrade(placed: Orders, /, *, check: bool = False, **options: Any) -> Object:
    given = {"release": NEXT_RELEASE, "label_selectors": [LABEL], "canary": 2, "max_unavailable": "7", "degraded_after": 0}
    mine = {"kubeconfig": str(placed.hub.kubeconfig), "orders": [f"{placed.namespace}/{name}" for name in names()]}
    return answer("cluster_order_upgrade", check=check, **mine | given | options).result


def moved(result: Object) -> list[str]:
    return [order["name"] for order in result["orders"] if order["state"] in ("upgrading", "upgraded", "failed")]


def are_ready(orders: Orders, some: list[str]) -> bool:
    items = orders.kube.list_all(orders.api_version, "ClusterOrder", orders.namespace)
    return {item["status"]["phase"] for item in items if item["metadata"]["name"] in some} == {"Ready"}


def release_of(orders: Orders, name: str) -> str:
    return str(json.loads(orders.get(name)["spec"]["templateParameters"])["release_image"])


def versions(orders: Orders) -> dict[str, str]:
    items = orders.kube.list_all(orders.api_version, "ClusterOrder", orders.namespace)
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}


def test_a_wave_with_an_order_that_degrades_stops_the_upgrade_and_the_rest_is_untouched(orders: Orders) -> None:
    place(orders, ORDERS)
    before = versions(orders)

    planned = upgrade(orders, check=True)
    assert planned["changed"] and [len(wave) for wave in planned["waves"]] == [2, 7, 7, 7, 7]
    assert versions(orders) == before, "check mode changes nothing"

    bad, done = "order-12", 0
    for size in (2, 7, 7):
        wave = upgrade(orders)
        assert wave["changed"] and not wave.get("failed")
        now = moved(wave)[done:]
        done += size
        assert now == names()[done - size : done]
        assert not upgrade(orders)["changed"], "the next wave waits for this one"
        if bad in now:
            orders.patch_cluster({"metadata": {"annotations": {FAULT: "degraded"}}}, bad)
        orders.run("provision", *now).complete().successful()
        healthy = [name for name in now if name != bad]
        until(lambda healthy=healthy: orders.sync(*healthy) and are_ready(orders, healthy), "the wave is Ready")

    until(lambda: orders.sync(bad) and upgrade(orders).get("failed"), "the upgrade stops")
    stopped = upgrade(orders)
    assert not stopped["changed"] and stopped["reason"] == "UpgradeStopped"
    assert "15 upgraded, 1 failed, 14 pending" in stopped["msg"] and f"{orders.namespace}/{bad}" in stopped["msg"]
    assert "ClusterDegraded" in stopped["msg"]
    rest = names()[16:]
    assert {name: version for name, version in versions(orders).items() if name in rest} == {name: before[name] for name in rest}
    assert {release_of(orders, name) for name in rest} == {RELEASE}
    assert {release_of(orders, name) for name in names()[:16]} == {NEXT_RELEASE}

    # When it is repaired, the same task continues where it stopped.
    orders.patch_cluster({"metadata": {"annotations": {FAULT: None}}}, bad)
    orders.until_phase("Ready", bad)
    continued = upgrade(orders, wait_timeout=1)  # the end of a wait is no failure
    assert not continued.get("failed") and continued["changed"]
    assert moved(continued) == names()[:23]
    assert "c2VjcmV0" not in json.dumps([planned, stopped, continued])


def test_an_image_takes_the_place_of_the_version_that_an_order_has(orders: Orders) -> None:
    orders.apply("order-00", nodes={"fc430": 1}, version="4.17.0", base_domain="example.com")
    orders.patch({"metadata": {"labels": dict([LABEL.split("=")])}}, "order-00")
    orders.patch({"status": {"phase": "Ready", "observedGeneration": 1}}, "order-00", subresource="status")
    assert upgrade(orders)["changed"]
    changed = json.loads(orders.get("order-00")["spec"]["templateParameters"])
    assert changed == {"base_domain": "example.com", "release_image": NEXT_RELEASE}


def test_an_upgrade_that_cannot_work_is_one_message_and_changes_nothing(orders: Orders) -> None:
    orders.apply("order-00", nodes={"fc430": 1})
    orders.patch({"metadata": {"labels": {"stage": "test"}}}, "order-00")
    orders.patch({"status": {"phase": "Ready", "observedGeneration": 1}}, "order-00", subresource="status")
    before = versions(orders)
    cases: list[tuple[Object, str]] = [
        ({"release": "quay.io/acme/other:1"}, "release_image belongs to the site, which allows"),
        ({"max_unavailable": "many"}, "max_unavailable is 'many': use a number of orders"),
        ({"canary": -1}, "must not be negative"),
        ({"orders": []}, "The list of orders is empty"),
        ({"orders": ["a"]}, "An order is named by its name and its namespace"),
        ({"label_selectors": ["=="]}, "check the label selector"),
        ({"label_selectors": [], "orders": None}, "Select the orders: by templates, label_selectors, phases or orders"),
    ]
    for options, message in cases:
        refused = upgrade(orders, **options)
        assert refused["failed"] and message in refused["msg"], refused
        assert "\n" not in refused["msg"]
    skipped = upgrade(orders, parameter="flavour", release="4.18.1")
    assert skipped["complete"] and "has no parameter flavour" in skipped["orders"][0]["message"]
    assert versions(orders) == before


def test_the_playbook_prints_the_plan_for_the_orders_of_an_inventory_group(orders: Orders, tmp_path: Path) -> None:
    for name, region in (("order-00", "east"), ("order-01", "west")):
        orders.apply(name, nodes={"fc430": 1})
        orders.patch({"metadata": {"labels": {"topology.kubernetes.io/region": region}}}, name)
        orders.patch({"status": {"phase": "Ready", "observedGeneration": 1}}, name, subresource="status")
    inventory = tmp_path / "fleet.yml"
    inventory.write_text(f"plugin: openfleet.clusters.fleet\nnamespace: {orders.namespace}\nsources: [orders]\n", encoding="utf-8")
    before = versions(orders)
    run = orders.play(
        "upgrade_clusters", None, "--check", "-i", str(inventory), cluster_upgrade_release=NEXT_RELEASE, cluster_upgrade_group="region_east"
    ).successful()
    assert f"wave 1 of 1, 1 order: {orders.namespace}/order-00" in run.output and "order-01" not in run.output
    assert run.changed == 1 and versions(orders) == before
