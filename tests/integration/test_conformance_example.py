"""The example of the documentation in the conformance suite, installed as a collection and found by its dotted name.

Its rack has no controller here: the test does that one's work on the ConfigMap. The clusters of the rack are the hub itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import Backend
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance import ProviderConformance
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import NodeRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "acme_metal"
HELD = {"finalizers": ["metal.acme.example/machines"]}


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of collections with the example in it."""
    folder = tmp_path_factory.mktemp("collections")
    command = [str(Path(sys.executable).parent / "ansible-galaxy"), "collection", "install", "--offline", "--no-deps", "-p", str(folder)]
    subprocess.run([*command, str(EXAMPLE)], check=True, capture_output=True, text=True)
    return folder


class Rack(Backend):
    TYPE = "acme.metal.rack"
    CANNOT = frozenset({"dns", "cloud_providers", "regions", "add_identity_provider", "remove_identity_provider", "scale", "install_addon"})

    def request(self, machines: int = 2) -> ClusterRequest:
        return ClusterRequest(node_requests=[NodeRequest("blade", machines)], settings={"rack": "r1"})

    def changed_request(self) -> ClusterRequest:
        return self.request(3)

    def has_changed(self, name: str) -> bool:
        return bool(json.loads(self._rack(name)["data"]["machines"]) == {"blade": "3"})

    def go_on(self, name: str) -> None:
        """What the rack's controller does at each look."""
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
        """The controller holds it by itself, for as long as nobody lets it go on."""
        yield

    def _rack(self, name: str) -> Object:
        return self.kube.get("v1", "ConfigMap", f"{name}-rack", self.namespace)

    def _secret(self, name: str) -> Object:
        kubeconfig = json.dumps(yaml.safe_load(self.door.kubeconfig.read_text()))
        metadata = {"name": f"{name}-rack-kubeconfig", "namespace": self.namespace}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "data": {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()},
        }


class TestExample(ProviderConformance):
    BACKEND = Rack

    @pytest.fixture(autouse=True)
    def installed(self, example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Python finds the example as Ansible does, in a second folder of collections."""
        monkeypatch.syspath_prepend(str(example))
