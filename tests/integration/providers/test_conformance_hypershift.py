"""The provider `hypershift` in the conformance suite, with the sandbox's stand-in behind it. No processes are behind a HostedCluster."""

from __future__ import annotations

import base64
import contextlib
from dataclasses import replace

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.status import FAULT
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import Backend, kubeconfig_for
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance import ProviderConformance
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Conflict, Invalid, NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest, ObservedCluster

from ..support.lock_holder import held
from ..support.orders import PULL_SECRET, RELEASE

API_VERSION = "hypershift.openshift.io/v1beta1"


class HyperShift(Backend):
    TYPE = "hypershift"
    UNSUPPORTED = frozenset({"cloud_providers", "regions", "install_addon"})

    def request(self, nodes: int = 2) -> ClusterRequest:
        settings = {"platform": {"type": "KubeVirt"}, "base_domain": "example.com"}
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

    def test_console_is_what_the_cluster_publishes(self, backend: Backend) -> None:
        spec = backend.ready()
        assert backend.provider().observe_inside(spec).console_url == ""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-config-managed"}}
        backend.kube.apply(namespace, force=True)
        backend.undo.callback(backend.kube.delete, namespace)
        published = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "console-public", "namespace": "openshift-config-managed"},
        }
        for url, found in {
            "https://console.example.com/": "https://console.example.com",
            "http://console.example.com": "",
            "https://console.example.com/<script>": "",
            "https://": "",
        }.items():
            backend.kube.apply(published | {"data": {"consoleURL": url}}, force=True)
            assert backend.provider().observe_inside(spec).console_url == found
        backend.kube.apply(published | {"data": {"consoleURL": "https://console.example.com"}}, force=True)
        observed = backend.provider().observe_inside(spec)
        later = backend.provider().status(ObservedCluster.from_stored(observed.to_stored()))
        assert later.console_url == "https://console.example.com"

    def test_key_of_the_encryption_is_never_replaced(self, backend: Backend) -> None:
        def key() -> str:
            return str(backend.kube.get("v1", "Secret", "demo-etcd-encryption-key", backend.namespace)["data"]["key"])

        def asked(nodes: int) -> ClusterRequest:
            nodes_asked = [NodeRequest("fc430", nodes)]
            return backend.asked(replace(backend.request(), node_requests=nodes_asked, settings={"platform": {"type": "None"}}))

        observed = backend.provider().create(asked(1))
        first = key()
        backend.provider().update(observed, asked(2))
        assert key() == first
        again = backend.provider()
        again.update(observed, asked(2))
        assert not [change for change in again.changes if change.changed]

    @pytest.mark.parametrize(("namespace", "name"), [("n" * 40, "c" * 23), ("clusters", "a.b")])
    def test_name_that_cannot_work_is_refused_before_anything_is_created(self, backend: Backend, namespace: str, name: str) -> None:
        provider = backend.provider()
        provider.ref = replace(provider.ref, namespace=namespace, name=name)
        with pytest.raises(Invalid, match=f"{namespace}-{name}"):
            provider.create(backend.asked(backend.request()))
        assert provider.changes == []

    def test_refused_update_is_never_done(self, backend: Backend) -> None:
        spec = backend.ready()
        older = RELEASE.replace("4.17.0", "4.16.9")
        backend.provider().update(spec, backend.asked(replace(backend.request(), version=older)))

        def refused() -> bool:
            nonlocal spec
            spec = backend.provider().status(spec)
            assert spec.updating
            return spec.status == "failed"

        until(refused, "the release is refused")
        assert (spec.change_refused, spec.retryable, spec.installed) == (True, False, True)
        assert (spec.running_version, spec.desired_version) == ("4.17.0", older)
        assert "is not supported" in spec.status_details
        backend.provider().update(spec, backend.asked(backend.request()))
        until(lambda: backend.provider().status(spec).status == "ready", "the release that runs is wanted again")
