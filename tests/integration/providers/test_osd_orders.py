"""Orders of the template `osd_small`, from the order to OpenShift Cluster Manager and back, against the stand-in.

One run is of `ansible-playbook`, for what it prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ..support.ocm_site import standing_in
from ..support.ocm_standin import OFFLINE_TOKEN, TOKEN_PATH, OcmStandIn
from ..support.orders import Orders


@pytest.fixture
def service() -> Iterator[OcmStandIn]:
    """A stand-in whose clusters advance by a step with each read."""
    with standing_in(hurried=True) as service:
        yield service


def site(service: OcmStandIn) -> dict[str, Any]:
    """What a site sets for all orders."""
    return {"osd_small_url": service.url, "osd_small_token_url": f"{service.url}{TOKEN_PATH}", "osd_small_token": OFFLINE_TOKEN}


def apply_order(orders: Orders, nodes: dict[str, int], **parameters: Any) -> None:
    orders.apply(template="osd_small", nodes=nodes, raw_parameters=json.dumps(parameters))


def pools(service: OcmStandIn) -> dict[str, int]:
    (cluster,) = service.clusters
    return {pool["instance_type"]: pool["replicas"] for pool in service.shelf(cluster, "machine_pools").values()}


def until_ready(orders: Orders, service: OcmStandIn) -> str:
    """What events would start: runs until there is nothing left to do. Returns what they answered."""
    answers = []
    for _run in range(9):
        # Without a name: whichever order needs it, if any does.
        run = orders.run("provision", site=site(service)).complete().successful()
        answers += [run.results, orders.sync("demo")]
        if orders.status()["phase"] == "Ready":
            return json.dumps(answers)
    raise AssertionError(orders.status())


def test_order_becomes_a_managed_cluster_that_is_scaled_and_deleted(orders: Orders, service: OcmStandIn) -> None:
    apply_order(orders, {"m5.xlarge": 2, "r5.xlarge": 1}, multi_az=True)
    seen = orders.play("create_cluster", **site(service)).successful().output
    orders.sync("demo")
    seen += until_ready(orders, service)
    assert pools(service) == {"m5.xlarge": 3, "r5.xlarge": 3}
    status = orders.status()
    assert status["nodeSets"] == [
        {"resourceClass": "m5.xlarge", "requested": 2, "ready": 2},
        {"resourceClass": "r5.xlarge", "requested": 1, "ready": 1},
    ]
    assert status["provider"]["type"] == "ocm"
    assert status["provider"]["internalID"] in service.clusters
    assert status["apiURL"].startswith("https://api.demo-")

    before = service.writes()
    assert orders.run("provision", "demo", site=site(service)).complete().successful().changed == 0
    assert service.writes() == before

    apply_order(orders, {"m5.xlarge": 4}, multi_az=True)
    seen += until_ready(orders, service)
    assert pools(service) == {"m5.xlarge": 6}

    seen += json.dumps(orders.remove(wait=120).results)
    assert orders.is_deleted()
    assert service.clusters == {}
    assert OFFLINE_TOKEN not in seen


def test_failed_installation_is_reported_on_the_order(orders: Orders, service: OcmStandIn) -> None:
    service.hurried = False
    apply_order(orders, {"m5.xlarge": 2})
    orders.run("provision", "demo", site=site(service)).complete().successful()
    service.fail_installation("OCM5003", "the keys are wrong")
    assert not orders.sync("demo").get("failed")
    failure = orders.status()["failure"]
    assert (orders.status()["phase"], failure["message"], failure["retryable"]) == ("Failed", "OCM5003: the keys are wrong", False)
    service.hurried = True
    orders.remove(wait=120)
    assert orders.is_deleted()


def test_order_without_any_token_says_what_to_do(orders: Orders, service: OcmStandIn) -> None:
    apply_order(orders, {"m5.xlarge": 2})
    run = orders.run("provision", "demo", site=site(service) | {"osd_small_token": ""}).complete()
    assert not run.is_successful
    assert "create the cluster with secrets.token" in orders.status()["failure"]["message"]
    assert service.clusters == {}
