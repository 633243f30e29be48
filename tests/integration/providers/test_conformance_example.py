"""The example of the documentation in the conformance suite, installed as a collection and found by its dotted name.

Its rack has no controller here: the test does that one's work on the ConfigMap. The clusters of the rack are the hub itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import Backend
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance import ProviderConformance, config_map
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest

from ..support.actions import answer
from ..support.orders import Orders
from ..support.playbooks import Answer, Task, play, task

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "acme_metal"
HELD = {"finalizers": ["metal.acme.example/machines"]}


def test_example_is_short_and_the_page_shows_it_as_it_is() -> None:
    text = (EXAMPLE / "plugins/module_utils/providers/rack.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 90
    assert f"```python\n{text}```" in (EXAMPLE.parents[1] / "writing_a_provider.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in a folder of collections, as a user would install it."""
    folder = tmp_path_factory.mktemp("collections")
    command = [str(Path(sys.executable).parent / "ansible-galaxy"), "collection", "install", "--offline", "--no-deps", "-p", str(folder)]
    subprocess.run([*command, str(EXAMPLE)], check=True, capture_output=True, text=True)
    return folder


@pytest.fixture(scope="module", autouse=True)
def installed(example: Path) -> Iterator[None]:
    """Python finds the example as Ansible does, in a second folder of collections; also for the cluster that tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(example))
        yield


class Rack(Backend):
    TYPE = "acme.metal.rack"
    UNSUPPORTED = frozenset(
        {"dns", "cloud_providers", "regions", "add_identity_provider", "remove_identity_provider", "scale", "install_addon"}
    )

    def request(self, machines: int = 2) -> ClusterRequest:
        return ClusterRequest(node_requests=[NodeRequest("blade", machines)], settings={"rack": "r1"})

    def changed_request(self) -> ClusterRequest:
        return self.request(3)

    def has_changed(self, name: str) -> bool:
        return bool(json.loads(self._rack(name)["data"]["machines"]) == {"blade": "3"})

    def advance(self, name: str) -> None:
        """What the rack's controller does in each reconcile."""
        rack = self.kube.find("v1", "ConfigMap", f"{name}-rack", self.namespace)
        if rack is None:
            return
        if "deletionTimestamp" in rack["metadata"]:
            self.kube.patch(rack, {"metadata": {"finalizers": []}})
            return
        state = {"": "mounting", "mounting": "up", "broken": "broken", "up": "up"}[rack["data"].get("state", "")]
        ready = sum(map(int, json.loads(rack["data"]["machines"]).values())) if state == "up" else 0
        self.kube.patch(rack, {"metadata": HELD, "data": {"state": state, "ready": str(ready)}})
        if state == "up":
            self.kube.apply(self._secret(name))

    def fail(self, name: str) -> str:
        self.kube.patch(self._rack(name), {"data": {"state": "broken", "reason": "Blade 7 has no power"}})
        return "Blade 7 has no power"

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """The controller of the example holds the cluster until `advance` is called."""
        yield

    def _rack(self, name: str) -> Object:
        return self.kube.get("v1", "ConfigMap", f"{name}-rack", self.namespace)

    def _secret(self, name: str) -> Object:
        kubeconfig = json.dumps(yaml.safe_load(self.proxy.kubeconfig.read_text()))
        metadata = {"name": f"{name}-rack-kubeconfig", "namespace": self.namespace}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "data": {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()},
        }


class TestExample(ProviderConformance):
    BACKEND = Rack


def test_order_for_a_template_of_the_example_becomes_ready(orders: Orders, example: Path) -> None:
    """Ansible loads the template and its provider in the first run; the others are in process."""
    (orders.folder / "collections").symlink_to(example)
    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        rack = Rack(orders.hub, orders.working(), proxy)
        orders.apply(template="acme.metal.blades", raw_parameters='{"rack": "r1"}')
        orders.play("create_cluster").successful()
        assert orders.status()["phase"] == "Progressing"
        assert orders.status()["provider"]["type"] == "acme.metal.rack"
        for _step in ("mounting", "up"):
            rack.advance("demo")
        assert not orders.sync("demo").get("failed")
        assert orders.status()["phase"] == "Ready", orders.status()
        assert orders.status()["nodeSets"] == [{"resourceClass": "blade", "requested": 2, "ready": 2}]
        assert orders.run("provision", "demo").complete().successful().changed == 0
        orders.remove(wait=0)
        assert not orders.is_deleted()
        rack.advance("demo")
        orders.remove()
        assert orders.is_deleted()


def test_playbook_uses_it_by_its_dotted_name(example: Path, orders: Orders) -> None:
    cluster = {"name": "demo", "namespace": orders.namespace, "provider": "acme.metal.rack"}

    def on(module: str, called: str, /, **arguments: Any) -> Task:
        return task(module, called, **cluster | arguments)

    def fine(module: str, **arguments: Any) -> Answer:
        done = answer(module, kubeconfig=str(orders.hub.kubeconfig), **cluster | arguments)
        assert not done.failed, done.result
        return done

    wanted = {"node_requests": [{"resourceClass": "blade", "numberOfNodes": 2}], "settings": {"rack": "r1"}}
    tasks = [
        on("cluster", "unknown collection", provider="acme.absent.rack", **wanted),
        on("cluster", "no rack", settings={}),
        on("cluster", "make it", **wanted),
        on("cluster", "make it again", **wanted),
        on("cluster_node_set", "scale it", resource_class="blade", nodes=3),
    ]
    settings = {"ANSIBLE_COLLECTIONS_PATH": os.pathsep.join([str(example), str(Path(sys.prefix) / "collections")])}
    played = play(orders.folder, tasks, defaults={"kubeconfig": str(orders.hub.kubeconfig)}, environment=settings)
    assert "The provider acme.absent.rack cannot be loaded" in played["unknown collection"].message
    assert "settings.rack is required" in played["no rack"].message
    assert "The provider acme.metal.rack does not support a change of the number of nodes" in played["scale it"].message
    assert [played.fine(name).changed for name in ("make it", "make it again")] == [True, False]
    assert played["make it"].result["cluster"]["status"] == "cluster_accepted"
    with ApiProxy(orders.hub.kubeconfig, orders.folder).open() as proxy:
        rack = Rack(orders.hub, orders.namespace, proxy)
        for _step in ("mounting", "up"):
            rack.advance("demo")
        motd = config_map(orders.namespace, text="Welcome")
        assert fine("cluster_info").result["cluster"]["status"] == "ready"
        assert fine("cluster_resources", resource_set="motd", resources=[motd]).changed
        assert fine("cluster_resources", resource_set="motd", state="absent").result["deleted"]
        assert not fine("cluster", state="absent").result["deleted"]
        rack.advance("demo")
        assert fine("cluster", state="absent").result["deleted"]
