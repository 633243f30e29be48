"""Orders of every provider on one hub: created in one run, each by its own provider, observed in one task, and deleted in one run."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import kubeconfig_for
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.providers import standalone

from ...hostile_server import HARM, SECRET, answer, serving
from ..support.ocm_site import standing_in
from ..support.ocm_standin import OFFLINE_TOKEN, TOKEN_PATH, OcmStandIn
from ..support.orders import ALLOWED, Orders

PROVIDERS = {"bare": "hypershift", "machines": "capi", "dedicated": "ocm", "there": "standalone"}

ELSEWHERE = kubeconfig_for("http://10.96.0.1:443", token="x")  # noqa: S106 - made up


@pytest.fixture
def service() -> Iterator[OcmStandIn]:
    with standing_in(hurried=True) as service:
        yield service


@pytest.fixture
def mixed(capi_hub: Access, tmp_path: Path) -> Iterator[Orders]:
    with fresh_namespace(capi_hub) as namespace:
        orders = Orders(capi_hub, namespace, tmp_path)
        yield orders
        orders.clean_up()


def add_node(cluster: Access) -> None:
    """A node for the cluster that exists already: one without any is not ready."""
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}})
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    cluster.kubectl("patch", "node", "worker", "--subresource=status", "--type=merge", "-p", json.dumps(ready))


def site(service: OcmStandIn) -> dict[str, Any]:
    return {"osd_small_url": service.url, "osd_small_token_url": f"{service.url}{TOKEN_PATH}", "osd_small_token": OFFLINE_TOKEN}


def test_each_order_has_its_own_provider_for_all_its_life(mixed: Orders, service: OcmStandIn) -> None:
    """All are created in one run of the playbook."""
    kubeconfig = mixed.hub.kubeconfig.read_text()
    add_node(mixed.hub)
    mixed.apply("bare", nodes={"fc430": 1})
    mixed.apply("machines", nodes={"small": 1}, template="capi_small", raw_parameters="{}")
    mixed.apply("dedicated", nodes={"m5.xlarge": 2}, template="osd_small", raw_parameters="{}")
    mixed.apply("there", template="existing_cluster", raw_parameters=json.dumps({"kubeconfig": kubeconfig}))
    chosen = [f"{mixed.namespace}/{name}" for name in PROVIDERS]
    created = mixed.play(
        "create_cluster", None, "-vvv", cluster_orders=chosen, cluster_allowed_addresses=ALLOWED, **site(service)
    ).successful()
    # What a run is given on its command line, Ansible shows at this verbosity itself; the rest must not be shown.
    assert "client-key-data" not in created.output

    def all_ready() -> bool:
        assert not mixed.sync(*PROVIDERS).get("failed")
        return all(mixed.status(name).get("phase") == "Ready" for name in PROVIDERS)

    until(all_ready, "all orders are Ready", 600)
    assert {name: mixed.status(name)["provider"]["type"] for name in PROVIDERS} == PROVIDERS
    assert len({mixed.status(name)["provider"]["internalID"] for name in PROVIDERS}) == len(PROVIDERS)
    assert mixed.status("dedicated")["provider"]["region"] == "us-east-1"
    assert mixed.run("provision", *PROVIDERS, site=site(service)).complete().successful().changed == 0

    mixed.apply("dedicated", nodes={"m5.xlarge": 3}, template="osd_small", raw_parameters="{}")
    assert mixed.run("provision", "dedicated", site=site(service)).complete().successful().changed > 0
    mixed.run("delete", *PROVIDERS, site=site(service)).complete(wait=400).successful()
    assert [name for name in PROVIDERS if not mixed.is_deleted(name)] == []
    assert service.clusters == {}


def test_an_order_whose_provider_is_no_longer_on_the_hub_harms_no_other(orders: Orders) -> None:
    """The quick hub has no Cluster API."""
    orders.apply("bare", nodes={"fc430": 1})
    orders.provision("bare")
    orders.apply("machines", nodes={"small": 1}, template="capi_small", raw_parameters="{}")
    orders.patch({"status": {"phase": "Ready", "observedGeneration": 1, "provider": {"type": "capi"}}}, "machines", "status")
    assert not orders.sync("bare", "machines").get("failed")
    assert orders.status("bare")["phase"] == "Ready"
    assert orders.condition("ControlPlaneAvailable", "machines")["status"] == "Unknown"
    assert "Cluster" in orders.condition("ControlPlaneAvailable", "machines")["message"]


def test_a_provider_that_is_no_longer_installed_fails_its_order_with_what_to_do(orders: Orders) -> None:
    orders.apply("blades", nodes={"fc430": 1})
    orders.patch({"status": {"provider": {"type": "acme.absent.rack"}}}, "blades", "status")
    assert not orders.run("provision", "blades").complete().is_successful
    failure = orders.status("blades")["failure"]
    assert failure["reason"] == "UnknownProvider"
    assert "install its collection" in failure["message"]


def test_a_provider_that_does_not_answer_fails_its_own_order_and_is_retried(mixed: Orders, service: OcmStandIn) -> None:
    mixed.apply("bare", nodes={"fc430": 1})
    mixed.apply("dedicated", nodes={"m5.xlarge": 2}, template="osd_small", raw_parameters="{}")
    nowhere = {"osd_small_url": "http://127.0.0.1:9", "osd_small_token_url": "http://127.0.0.1:9/token", "osd_small_token": OFFLINE_TOKEN}
    failed = mixed.run("provision", "bare", "dedicated", site=nowhere).complete()
    assert not failed.is_successful
    assert mixed.status("bare")["phase"] in ("Progressing", "Ready")
    failure = mixed.status("dedicated")["failure"]
    assert (mixed.status("dedicated")["phase"], failure["retryable"]) == ("Failed", True)
    assert "127.0.0.1:9" in failure["message"]
    assert OFFLINE_TOKEN not in failed.messages
    mixed.provision("dedicated", site=site(service))
    assert len(service.clusters) == 1
    mixed.run("delete", "bare", "dedicated").complete(wait=120).successful()


def test_a_cluster_that_drips_or_leaks_fails_its_own_order_in_time_and_is_not_quoted(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their tenant's other orders, and those of others in the same run and the same task, are reconciled."""
    for name in ("CONNECT_SECONDS", "READ_SECONDS", "TOTAL_SECONDS"):
        monkeypatch.setattr(standalone, name, 8.0)  # within which the third has to answer on a busy machine
    leak = answer("403 Forbidden", b'{"message": "%s"}' % SECRET)
    servers = {"hangs": HARM["accepts and says nothing"], "drips": HARM["drips its body"], "leaks": leak}
    orders.apply("bare", nodes={"fc430": 1})
    with contextlib.ExitStack() as stack:
        for name, behave in servers.items():
            kubeconfig = kubeconfig_for(f"http://{stack.enter_context(serving(behave))}", token="x")  # noqa: S106 - made up
            orders.apply(name, template="existing_cluster", raw_parameters=json.dumps({"kubeconfig": json.dumps(kubeconfig)}))
        orders.apply("elsewhere", template="existing_cluster", raw_parameters=json.dumps({"kubeconfig": json.dumps(ELSEWHERE)}))
        began = time.monotonic()
        run = orders.run("provision", "hangs", "drips", "leaks", "elsewhere", "bare").complete()
        synced = orders.sync(*servers, "elsewhere", "bare")
        assert time.monotonic() - began < 400, "without a deadline, a server that drips is read for an hour"
    assert {report["name"] for report in synced["orders"]} == {*servers, "elsewhere", "bare"}
    reasons = {name: orders.status(name)["failure"]["reason"] for name in (*servers, "elsewhere")}
    assert reasons == {"hangs": "Unreachable", "drips": "Unreachable", "leaks": "Forbidden", "elsewhere": "AddressNotAllowed"}
    assert orders.status("bare")["phase"] in ("Progressing", "Ready")
    seen = run.messages + json.dumps([orders.status(name) for name in servers]) + json.dumps(synced)
    assert SECRET.decode() not in seen
