"""The provider `capi` in the conformance suite, with Cluster API's own managers behind it."""

from __future__ import annotations

import contextlib
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy
from ansible_collections.openfleet.clusters.extensions.sandbox.capi_manifests import CLASS_NAME, WORKER_CLASS, cluster_class
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import Backend
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance import ProviderConformance
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest

from ..support.lock_holder import held

API_VERSION = "cluster.x-k8s.io/v1beta2"


class ClusterApi(Backend):
    TYPE = "capi"
    UNSUPPORTED = frozenset({"dns", "cloud_providers", "regions", "add_identity_provider", "remove_identity_provider", "install_addon"})
    TIMEOUT_SECONDS = 900

    def __init__(self, hub: Access, namespace: str, proxy: ApiProxy) -> None:
        super().__init__(hub, namespace, proxy)
        hub.apply(*cluster_class(namespace))

    def provider(self, name: str = "demo", **how: Any) -> Provider:
        """The in-memory API servers know no server-side apply, so that resources go to the hub instead."""
        made = super().provider(name, **how)
        made.connect = lambda _spec: Kube.connect({"kubeconfig": str(self.proxy.kubeconfig)})  # type: ignore[method-assign]
        return made

    def request(self, nodes: int = 1) -> ClusterRequest:
        settings = {"cluster_class": CLASS_NAME, "worker_classes": {"fc430": WORKER_CLASS}}
        return ClusterRequest("v1.36.3", [NodeRequest("fc430", nodes)], settings=settings)

    def changed_request(self) -> ClusterRequest:
        return self.request(2)

    def has_changed(self, name: str) -> bool:
        return bool(self._cluster(name)["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] == 2)

    def advance(self, name: str) -> None:
        """Its managers work by themselves."""

    def fail(self, name: str) -> str:
        template = self.kube.get("infrastructure.cluster.x-k8s.io/v1beta2", "DevMachineTemplate", CLASS_NAME, self.namespace)
        self.kube.delete(template)
        return "DevMachineTemplate"

    def hold(self, name: str) -> contextlib.AbstractContextManager[None]:
        return held(self.kube, lambda: self._cluster(name))

    def _cluster(self, name: str) -> Object:
        return self.kube.get(API_VERSION, "Cluster", name, self.namespace)


class TestClusterApi(ProviderConformance):
    BACKEND = ClusterApi
    HUB = "capi_hub"
