"""The provider `standalone` in the conformance suite: the cluster that exists already is the hub itself, with a node of the test."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import Backend, kubeconfig_for
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance import ProviderConformance
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest

# The proxy sends credentials of its own, which the API server reads first, so that any token will do.
TOKEN, NEXT_TOKEN = "hunter2-the-first-token-of-all", "hunter2-the-second-token-of-all"
LOST = "KubeletStoppedPostingStatus"


class Standalone(Backend):
    TYPE = "standalone"
    UNSUPPORTED = frozenset({"cloud_providers", "regions", "add_identity_provider", "remove_identity_provider", "scale", "install_addon"})

    def __init__(self, hub: Access, namespace: str, proxy: ApiProxy) -> None:
        super().__init__(hub, namespace, proxy)
        self.own = yaml.safe_load(hub.kubeconfig.read_text())
        self.server = yaml.safe_load(proxy.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        self.failed = False
        self.node = self.kube.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": namespace}})
        self.undo.callback(self.kube.delete, self.node)

    def request(self, token: str = TOKEN) -> ClusterRequest:
        return ClusterRequest(secrets={"kubeconfig": kubeconfig_for(self.server, token=token)})

    def changed_request(self) -> ClusterRequest:
        return self.request(NEXT_TOKEN)

    def has_changed(self, name: str) -> bool:
        secret = self.kube.get("v1", "Secret", f"{name}-kubeconfig", self.namespace)
        return NEXT_TOKEN in base64.b64decode(secret["data"]["kubeconfig"]).decode()

    def advance(self, name: str) -> None:
        ready = {"type": "Ready", "status": "False" if self.failed else "True", "reason": LOST if self.failed else "KubeletReady"}
        self.kube.patch(self.node, {"status": {"conditions": [ready]}}, subresource="status", checked=False)

    def fail(self, name: str) -> str:
        self.failed = True
        return LOST

    @contextlib.contextmanager
    def hold(self, name: str) -> Iterator[None]:
        def hold(finalizers: list[str]) -> None:
            secret = self.kube.get("v1", "Secret", f"{name}-kubeconfig", self.namespace)
            self.kube.patch(secret, {"metadata": {"finalizers": finalizers}})

        hold(["example.com/held"])
        try:
            yield
        finally:
            hold([])

    def unreachable(self) -> tuple[Provider, ClusterRequest]:
        return self.provider(), ClusterRequest(secrets={"kubeconfig": kubeconfig_for(f"http://127.0.0.1:{free_port()}", token=TOKEN)})

    def refused(self) -> tuple[Provider, ClusterRequest]:
        self.own["users"][0]["user"] = {"token": "wrong"}
        return self.provider(), ClusterRequest(secrets={"kubeconfig": yaml.safe_dump(self.own)})


class TestStandalone(ProviderConformance):
    BACKEND = Standalone
