# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Connections to registered clusters from the kubeconfigs in Secrets of the hub, and health checks over them.

Each use reads the Secret first, unless its caller has a connection already. A changed Secret, or one 401 of the
cluster, replaces the connection. An error of the hub is a HubError and never the health of a cluster: the health is
then unknown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from ..common.third_party import urllib3
from ..common.types import Object
from ..kube.client import Kube
from ..kube.errors import KubeError, NotFound, Unauthorized, Unreachable, Untrusted
from ..kube.untrusted import Expiry, expiry_of, kubeconfig_of, target_of
from .health import HEALTHY, ClusterHealth, SecretNotFound
from .model import RegisteredCluster

Result = TypeVar("Result")

# Waiting threads cost little. Up to this many silent clusters delay no other one.
MAX_THREADS = 64
# Each cluster has this namespace, and an account without permission to read it has few others.
PROBED_NAMESPACE = "kube-system"


class HubError(KubeError):
    """The hub did not return a Secret."""

    def __init__(self, cause: KubeError) -> None:
        super().__init__(f"The hub: {cause}")
        self.retryable = cause.retryable


@dataclass(frozen=True)
class Client:
    """A connection, the version of its Secret, and when its credentials expire."""

    kube: Kube
    version: tuple[str, str, str]
    expiry: Expiry | None


class ClusterClients:
    """The connections to the clusters of the registries in one namespace. Safe for concurrent use.

    `seconds` is the time that a health check may take for one cluster. With `read_only` no connection sends a write.
    """

    def __init__(self, hub: Kube, namespace: str, seconds: float, *, read_only: bool = False) -> None:
        self._hub = hub
        self._namespace = namespace
        self._seconds = seconds
        self._read_only = read_only
        self._clients: dict[str, Client] = {}
        self._mutex = threading.Lock()

    def client(self, cluster: RegisteredCluster) -> Client:
        """The connection to a cluster. This sends no request to the cluster."""
        with self._mutex:
            known = self._clients.pop(cluster.name, None)
        secret = self._secret(cluster)
        metadata = secret["metadata"]
        version = (metadata["uid"], metadata["resourceVersion"], cluster.endpoint)
        if known is not None and known.version == version:
            with self._mutex:
                return self._clients.setdefault(cluster.name, known)
        # The old connection is already dropped: it must not be used if the new kubeconfig is invalid.
        credentials = target_of(kubeconfig_of(secret, cluster.endpoint))
        # A check has two requests, so each gets half of the time. `_probe` retries, because it knows how much time is
        # left.
        timeout = urllib3.Timeout(total=self._seconds / 2)
        client = Client(Kube(credentials, timeout, tries=1, read_only=self._read_only), version, expiry_of(credentials))
        with self._mutex:
            self._clients[cluster.name] = client
        return client

    def call(self, cluster: RegisteredCluster, work: Callable[[Kube], Result], connected: Client | None = None) -> Result:
        """Call `work` with the connection to a cluster, or with a given one. After a 401, retry once with a new connection."""
        used = connected or self.client(cluster)
        try:
            return work(used.kube)
        except Unauthorized:
            with self._mutex:
                if self._clients.get(cluster.name) is used:
                    del self._clients[cluster.name]
        return work(self.client(cluster).kube)

    def check(self, clusters: Sequence[RegisteredCluster]) -> dict[str, ClusterHealth]:
        """Check the health of all clusters concurrently. HubError if the hub does not return a Secret."""
        now = self._hub.server_time() or datetime.now(UTC)
        with self._mutex:
            names = {cluster.name for cluster in clusters}
            self._clients = {name: client for name, client in self._clients.items() if name in names}
        if not clusters:
            return {}
        with ThreadPoolExecutor(min(len(clusters), MAX_THREADS)) as threads:
            checked = threads.map(lambda cluster: self._check_cluster(cluster, now), clusters)
            return {cluster.name: health for cluster, health in zip(clusters, checked, strict=True)}

    def _check_cluster(self, cluster: RegisteredCluster, now: datetime) -> ClusterHealth:
        try:
            version = self.call(cluster, self._probe)
            health = ClusterHealth(HEALTHY, reachable=True, authenticated=True, version=version)
        except HubError:
            raise
        except KubeError as error:
            health = ClusterHealth.of_error(error)
        with self._mutex:
            client = self._clients.get(cluster.name)
        return health.with_expiry(client.expiry if client else None, now)

    def _probe(self, kube: Kube) -> str:
        """The version of an authenticated cluster. A connection that broke early may have been stale, so retry once."""
        began = time.monotonic()
        try:
            return _version(kube)
        except Untrusted:
            raise
        except Unreachable:
            if time.monotonic() - began > self._seconds / 2:
                raise
            return _version(kube)

    def _secret(self, cluster: RegisteredCluster) -> Object:
        try:
            return self._hub.get("v1", "Secret", cluster.kubeconfig_secret, self._namespace)
        except NotFound:
            raise SecretNotFound(
                f"The Secret {self._namespace}/{cluster.kubeconfig_secret} does not exist: create it with the kubeconfig of {cluster.name}."
            ) from None
        except KubeError as error:
            raise HubError(error) from error


def _version(kube: Kube) -> str:
    # Anonymous clients may read the version, so it says nothing about the credentials.
    version = kube.version()
    kube.find("v1", "Namespace", PROBED_NAMESPACE)
    return version
