"""The provider `ocm` in the conformance suite, against the stand-in that the service's own description judges."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.api_proxy import ApiProxy, Request
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_backend import NONE, Backend
from ansible_collections.openfleet.clusters.extensions.sandbox.provider_conformance import ProviderConformance
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import rest_session
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.model import cluster_name, owner_of

from ..support.ocm_site import standing_in
from ..support.ocm_standin import ADDONS, OFFLINE_TOKEN, TOKEN_PATH, Object


class Ocm(Backend):
    TYPE = "ocm"
    ADDON = ADDONS[0]

    def __init__(self, hub: Access, namespace: str, proxy: ApiProxy) -> None:
        super().__init__(hub, namespace, proxy)
        self.service = self.undo.enter_context(standing_in())
        self.undo.enter_context(mock.patch.object(rest_session, "FIRST_WAIT", 0.001))
        self.undo.callback(self._let_go)

    def request(self, nodes: int = 2, url: str = "", token: str = OFFLINE_TOKEN) -> ClusterRequest:
        settings = {"url": url or self.service.url, "token_url": f"{self.service.url}{TOKEN_PATH}"}
        return ClusterRequest(
            version="4.18.1",
            node_requests=[NodeRequest("m5.xlarge", nodes)],
            cloud_provider="aws",
            region="us-east-1",
            settings=settings,
            secrets={"token": token},
        )

    def changed_request(self) -> ClusterRequest:
        return self.request(nodes=4)

    def has_changed(self, name: str) -> bool:
        return bool(self.service.shelf(self._cluster(name)["id"], "machine_pools")["worker"]["replicas"] == 4)

    def fail(self, name: str) -> str:
        self.service.fail_installation("OCM5003", "the keys are wrong")
        return "OCM5003: the keys are wrong"

    def hold(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # it changes only by `advance`

    def advance(self, name: str) -> None:
        self.service.advance()

    def unreachable(self) -> tuple[Provider, ClusterRequest]:
        return self.provider(), self.request(url=f"http://127.0.0.1:{free_port()}")

    def refused(self) -> tuple[Provider, ClusterRequest]:
        return self.provider(), self.request(token="unknown")  # noqa: S106 - made up

    @contextlib.contextmanager
    def cut(self, at: int, after: bool = False) -> Iterator[list[Request]]:
        """Hub and service are unreachable together, from a request to the one or the other on."""
        with super().cut(at, after) as lost:
            self.service.before, self.service.after = self.proxy.before, self.proxy.after
            try:
                yield lost
            finally:
                self.service.before = self.service.after = lambda _request: None

    def found(self, item: Object, name: str) -> Object | None:
        """The service hands resources on to the cluster, which the stand-in doesn't have."""
        sets = self.service.shelf(self._cluster(name)["id"], "syncsets").values()
        handed: list[Object] = [resource for syncset in sets for resource in syncset["resources"]]
        return next((resource for resource in handed if resource["metadata"].items() >= item["metadata"].items()), None)

    def parts_of(self, identity_provider: str, name: str) -> list[str]:
        shelves = self.service.shelves[self._cluster(name)["id"]]
        found = [item for item in shelves["identity_providers"].items.values() if item["name"] == identity_provider]
        kept = [shelves[key] for item in found if (key := f"users of {item['id']}") in shelves]
        users = [user["username"] for shelf in kept for user in shelf.items.values()]
        return [*(item["name"] for item in found), *users]

    def _cluster(self, name: str) -> Object:
        called = cluster_name(owner_of(self.kube.cluster_id(), self.namespace, name))
        return next(item for item in self.service.clusters.values() if item["name"] == called)

    def _let_go(self) -> None:
        """Without a service that answers the Secrets would wait for their clusters for ever."""
        self.service.clusters.clear()
        for name in list(self._locks):
            self.provider(name).delete(NONE)


class TestOcm(ProviderConformance):
    BACKEND = Ocm
