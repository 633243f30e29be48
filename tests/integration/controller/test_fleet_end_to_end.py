"""A whole fleet: the home engine as a process, the agents and engines of two hubs, and clusters from their creation to their records.

Home is one of the hubs. The other one has the stand-in for HyperShift with real API servers behind its clusters.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, HUB
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kubeconfig_request import KubeconfigAnswer, KubeconfigRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_storage import IS_DEFAULT
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import target

from ..support.fleet import Fleet, fleet_of
from ..support.fleet_agents import ORDERS, AgentSite, agent_installed, agent_site
from ..support.fleet_source import running
from ..support.orders import PULL_SECRET, Orders
from ..support.running_agents import RunningAgent
from ..support.sources import InProcessEngine

WAIT_SECONDS = 300
STORAGE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "of-the-fleet", "annotations": {IS_DEFAULT: "true"}},
    "provisioner": "example.com/none",
}


@contextlib.contextmanager
def hub_of(fleet: Fleet, access: Access, name: str, folder: Path) -> Iterator[AgentSite]:
    """A hub with storage, its engine and its agent."""
    capacity = {"clusters": 2, "nodes": {"fc430": 10}}
    with (
        agent_installed(access),
        fresh_namespace(access) as namespace,
        agent_site(fleet.access, access, f"{fleet.namespace}-{name}") as site,
        contextlib.ExitStack() as after,
    ):
        after.callback(access.kube.delete, access.kube.create(STORAGE))
        fleet.home.create(
            {"apiVersion": API_VERSION, "kind": HUB, "metadata": {"name": site.name}, "spec": {"capacity": capacity, "region": name}}
        )
        fleet.hubs.append(site.name)
        folder.mkdir()
        after.enter_context(InProcessEngine(Orders(access, namespace, folder)).running())
        after.enter_context(RunningAgent(site).running())
        yield site


@pytest.fixture
def fleet(quick_hub: Access) -> Iterator[Fleet]:
    with fresh_namespace(quick_hub) as namespace, fleet_of(quick_hub, namespace) as made:
        yield made


def until_state(fleet: Fleet, name: str, state: str, nodes: str) -> None:
    def shown() -> Object:
        found: Object = (fleet.home.find(API_VERSION, CLUSTER, name, fleet.namespace) or {}).get("status") or {}
        return found

    try:
        until(lambda: (shown().get("state"), shown().get("nodes")) == (state, nodes), f"{name} is {state} with {nodes}", WAIT_SECONDS)
    except UserError as error:
        hubs = [fleet.home.get(API_VERSION, HUB, each).get("status", {}).get("conditions") for each in fleet.hubs]
        raise AssertionError(f"{error} It is {shown()}; the hubs are {hubs}, their assignments {fleet.assignments()}") from error


def test_clusters_are_ordered_scaled_used_and_deleted_on_two_hubs(fleet: Fleet, hub: Access, tmp_path: Path) -> None:
    with (
        hub_of(fleet, fleet.access, "near", tmp_path / "near") as near,
        hub_of(fleet, hub, "far", tmp_path / "far") as far,
        running(fleet),
    ):
        fleet.set_quota(hard={"clusters": 2, "nodes": 6})
        data = {"auth": base64.b64encode(PULL_SECRET.encode()).decode()}
        metadata = {"name": "registries", "namespace": fleet.namespace}
        fleet.home.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        parameters = {"pull_secret": {"secretRef": {"name": "registries", "key": "auth"}}}
        fleet.add_cluster("used", 2, templateParameters=parameters, placement={"region": "far"})
        fleet.add_cluster("plain", 1, templateParameters=parameters, placement={"region": "near"})
        until_state(fleet, "plain", "Ready", "1/1")
        until_state(fleet, "used", "Ready", "2/2")
        assert [fleet.cluster(name)["status"]["hub"] for name in ("used", "plain")] == [far.name, near.name]
        fleet.resize("used", 3)
        until_state(fleet, "used", "Ready", "3/3")
        assert fleet.quota()["used"]["nodes"] == 4
        fleet.resize("used", 1)
        until_state(fleet, "used", "Ready", "1/1")
        until(lambda: fleet.quota()["used"]["nodes"] == 2, "the quota is released after the hub reported it")

        request = fleet.home.create(KubeconfigRequest(fleet.cluster("used")["metadata"]["uid"], "anna").to_secret(far.name))

        def answered() -> KubeconfigAnswer | None:
            return KubeconfigAnswer.from_secret(fleet.home.get("v1", "Secret", request["metadata"]["name"], far.namespace))

        answer = until(answered, "the request is answered")
        assert answer is not None and answer.error == ""
        inside = Kube(target({"kubeconfig": yaml.safe_load(answer.kubeconfig)}, {}))
        until(lambda: len(inside.list_all("v1", "Node")) == 1, "the other nodes are deleted")
        assert inside.target.server == fleet.cluster("used")["status"]["apiURL"]

        for name in ("used", "plain"):
            fleet.home.delete(fleet.cluster(name))
        # Their records come before the end of their reservations.
        until(lambda: not fleet.home.list_all(API_VERSION, CLUSTER, fleet.namespace), "both clusters are deleted", WAIT_SECONDS)
        records = {each["spec"]["name"]: each["spec"] for each in fleet.records()}
        assert {name: each["hub"] for name, each in records.items()} == {"used": far.name, "plain": near.name}
        assert fleet.assignments() == []
        assert fleet.quota()["reservations"] == {}
        for site in (near, far):
            assert fleet.hub(site.name).get("reservations") in (None, {})
            assert site.hub.kube.list_all(ORDERS, "ClusterOrder", label_selector=f"fleet.openfleet.io/hub={site.name}") == []
