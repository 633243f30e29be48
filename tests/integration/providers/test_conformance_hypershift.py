"""The provider `hypershift` in the conformance suite, with the sandbox's stand-in behind it. No processes are behind a HostedCluster."""

from __future__ import annotations

import base64
import contextlib

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.status import FAULT
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import Backend, kubeconfig_for
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance import ProviderConformance
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest

from ..support.lock_holder import held
from ..support.orders import PULL_SECRET, RELEASE

API_VERSION = "hypershift.openshift.io/v1beta1"


class HyperShift(Backend):
    TYPE = "hypershift"
    UNSUPPORTED = frozenset({"cloud_providers", "regions", "install_addon"})

    def request(self, nodes: int = 2) -> ClusterRequest:
        settings = {"base_domain": "example.com"}
        return ClusterRequest(RELEASE, [NodeRequest("fc430", nodes)], settings=settings, secrets={"pull_secret": PULL_SECRET})

    def changed_request(self) -> ClusterRequest:
        return self.request(3)

    def has_changed(self, name: str) -> bool:
        return bool(self.kube.get(API_VERSION, "NodePool", f"{name}-fc430", self.namespace)["spec"]["replicas"] == 3)

    def advance(self, name: str) -> None:
        """The stand-in works by itself. No server is behind its kubeconfig, so the cluster for resources is the hub."""
        secret = self.kube.find("v1", "Secret", f"{name}-admin-kubeconfig", self.namespace)
        content = base64.b64encode(self.proxy.kubeconfig.read_bytes()).decode()
        if secret and secret["data"]["kubeconfig"] != content:
            with contextlib.suppress(NotFound, Conflict):  # the stand-in is at work on it, too
                self.kube.patch(secret, {"data": {"kubeconfig": content}})

    def fail(self, name: str) -> str:
        self.kube.patch(self._cluster(name), {"metadata": {"annotations": {FAULT: "degraded"}}}, checked=False)
        return "Degraded is True (UnavailableReplicas)"

    def hold(self, name: str) -> contextlib.AbstractContextManager[None]:
        return held(self.kube, lambda: self._cluster(name))

    def parts_of(self, identity_provider: str, name: str) -> list[str]:
        oauth = self._cluster(name)["spec"].get("configuration", {}).get("oauth", {})
        entries = [item["name"] for item in oauth.get("identityProviders", []) if item["name"] == identity_provider]
        secret = self.kube.find("v1", "Secret", f"{name}-idp-{identity_provider}", self.namespace)
        return [*entries, *(secret["data"] if secret else [])]

    def _cluster(self, name: str) -> Object:
        return self.kube.get(API_VERSION, "HostedCluster", name, self.namespace)


class TestHyperShift(ProviderConformance):
    BACKEND = HyperShift
    HUB = "quick_hub"

    def test_kubeconfig_that_is_rotated_is_noticed(self, backend: Backend) -> None:
        spec = backend.ready()
        first = backend.provider().kubeconfig(spec)
        rotated = base64.b64encode(yaml.safe_dump(kubeconfig_for("https://127.0.0.1:1", token="the-next-one")).encode())  # noqa: S106 - made up
        secret = backend.kube.get("v1", "Secret", "demo-admin-kubeconfig", backend.namespace)
        backend.kube.patch(secret, {"data": {"kubeconfig": rotated.decode()}})
        second = backend.provider().kubeconfig(spec)
        assert second.version != first.version
        assert second.content["users"][0]["user"] == {"token": "the-next-one"}
        assert backend.provider().connect(spec).target.token == "the-next-one"  # noqa: S105 - made up
