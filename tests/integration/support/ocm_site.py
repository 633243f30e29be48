"""Runs for one cluster of the OpenShift Cluster Manager stand-in, on a real hub. Each run has a new provider."""

from __future__ import annotations

import base64
import contextlib
import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.lock import lease
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import FencedWriter
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import ClusterRef
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import checked
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ClusterRequest, NodeRequest, ObservedCluster
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.ocm.provider import ClusterProvider

from .ocm_standin import OFFLINE_TOKEN, TOKEN_PATH, OcmStandIn

LABELS = {"example.com/order": "demo"}
_numbers = itertools.count(1)


@dataclass
class Runs:
    """Runs for one cluster: `provider()` is what the next one has. All hold the same lock, as one after the other would."""

    kube: Kube
    namespace: str
    service: OcmStandIn
    name: str = field(default_factory=lambda: f"demo-{next(_numbers)}")

    def __post_init__(self) -> None:
        self.lock = lease.acquire(self.kube, self.namespace, self.name, "the tests", duration=3600)

    def provider(self, *, check_mode: bool = False, read_only: bool = False) -> ClusterProvider:
        writer = None if read_only else FencedWriter(self.kube, self.lock, "example.com/lock-token", check_mode)
        return ClusterProvider(ClusterRef(self.kube, self.name, self.namespace, LABELS, writer=writer, check_mode=check_mode))

    def request(self, *nodes: tuple[str, int], **changes: Any) -> ClusterRequest:
        settings = {"url": self.service.url, "token_url": f"{self.service.url}{TOKEN_PATH}", **changes.pop("settings", {})}
        secrets = {"token": OFFLINE_TOKEN, **changes.pop("secrets", {})}
        given: dict[str, Any] = {"version": "4.18.1", "cloud_provider": "aws", "region": "us-east-1"} | changes
        requested = [NodeRequest(*entry) for entry in nodes or [("m5.xlarge", 2)]]
        return checked(ClusterProvider, ClusterRequest(node_requests=requested, settings=settings, secrets=secrets, **given))

    def ready(self, **changes: Any) -> ObservedCluster:
        """A cluster that is made completely."""
        spec = self.provider().create(self.request(**changes))
        self.service.advance()
        self.service.advance()
        return self.provider().status(spec)

    def secret(self) -> dict[str, str] | None:
        """What the Secret holds; None where there is none."""
        found = self.kube.find("v1", "Secret", f"{self.name}-ocm", self.namespace)
        return {key: base64.b64decode(value).decode() for key, value in found["data"].items()} if found else None

    def clean_up(self) -> None:
        """Delete the Secret, which otherwise waits for the cluster for ever."""
        self.service.clusters.clear()
        self.service.faults.clear()
        if self.secret() is not None:
            self.provider().delete(ObservedCluster())


@contextlib.contextmanager
def standing_in(*, hurried: bool = False) -> Iterator[OcmStandIn]:
    """The service. At the end its description has allowed every request and every response."""
    with OcmStandIn(hurried) as service:
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield service
        finally:
            service.over.set()
            service.shutdown()
            thread.join()
    assert service.violations == []
