# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Connections to registered clusters, made from the kubeconfigs in Secrets of the hub, and how each cluster is found.

A connection is made anew when its Secret has changed, which is looked at before each use, and once when the cluster answers 401.
Trouble with the hub is never taken for trouble with a cluster: it is a HubFailure, and then nothing is known of the cluster.
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
from .model import HEALTHY, ClusterHealth, RegisteredCluster, SecretNotFound

Result = TypeVar("Result")

# Threads that wait for an answer cost little. This many dead clusters delay nobody; more of them delay the rest by their own time.
AT_ONCE = 64
# Every cluster has it, its uid tells clusters apart, and an account that may not read it can do little else.
EVERYWHERE = "kube-system"


class HubFailure(KubeError):
    """The hub did not give a Secret out, for a reason of its own."""

    def __init__(self, cause: KubeError) -> None:
        super().__init__(f"The hub: {cause}")
        self.retryable = cause.retryable


@dataclass(frozen=True)
class Client:
    """A connection, the version of the Secret that it was made from, and until when its credentials hold."""

    kube: Kube
    version: tuple[str, str, str]
    expiry: Expiry | None


class ClusterClients:
    """The connections to the clusters of one namespace's registries. Safe to use from several threads at once.

    `seconds` is how long a cluster may take for an answer in all.
    """

    def __init__(self, hub: Kube, namespace: str, seconds: float) -> None:
        self._hub = hub
        self._namespace = namespace
        self._seconds = seconds
        self._clients: dict[str, Client] = {}
        self._guard = threading.Lock()

    def client(self, cluster: RegisteredCluster) -> Client:
        """The connection to a cluster. Nothing is sent to the cluster yet."""
        with self._guard:
            known = self._clients.pop(cluster.name, None)
        secret = self._secret(cluster)
        metadata = secret["metadata"]
        version = (metadata["uid"], metadata["resourceVersion"], cluster.endpoint)
        if known is not None and known.version == version:
            with self._guard:
                return self._clients.setdefault(cluster.name, known)
        # What an old kubeconfig allowed is over, also where there is no new one or it is of no use.
        credentials = target_of(kubeconfig_of(secret, cluster.endpoint))
        # Half of the time for each request, of which a look has two. What fails is tried again here, where it is known whose time it takes.
        timeout = urllib3.Timeout(total=self._seconds / 2)
        made = Client(Kube(credentials, timeout, tries=1), version, expiry_of(credentials))
        with self._guard:
            self._clients[cluster.name] = made
        return made

    def call(self, cluster: RegisteredCluster, work: Callable[[Kube], Result]) -> Result:
        """Do `work` with the connection to a cluster. After a 401 once more, with a connection that is made anew."""
        used = self.client(cluster)
        try:
            return work(used.kube)
        except Unauthorized:
            with self._guard:
                if self._clients.get(cluster.name) is used:
                    del self._clients[cluster.name]
        return work(self.client(cluster).kube)

    def look(self, clusters: Sequence[RegisteredCluster]) -> dict[str, ClusterHealth]:
        """How the clusters are found now, all at once. HubFailure if the hub keeps us from looking."""
        now = self._hub.server_time() or datetime.now(UTC)
        with self._guard:
            names = {cluster.name for cluster in clusters}
            self._clients = {name: client for name, client in self._clients.items() if name in names}
        if not clusters:
            return {}
        with ThreadPoolExecutor(min(len(clusters), AT_ONCE)) as threads:
            found = threads.map(lambda cluster: self._look_at(cluster, now), clusters)
            return {cluster.name: health for cluster, health in zip(clusters, found, strict=True)}

    def _look_at(self, cluster: RegisteredCluster, now: datetime) -> ClusterHealth:
        try:
            version = self.call(cluster, self._ask)
            health = ClusterHealth(HEALTHY, reachable=True, authenticated=True, version=version)
        except HubFailure:
            raise
        except KubeError as error:
            health = ClusterHealth.of_error(error)
        with self._guard:
            client = self._clients.get(cluster.name)
        return health.with_expiry(client.expiry if client else None, now)

    def _ask(self, kube: Kube) -> str:
        """The cluster's version, if it knows who asks. A connection that broke at once may have been an old one: that is tried again."""
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
                f"There is no Secret {self._namespace}/{cluster.kubeconfig_secret}; put the kubeconfig of {cluster.name} into it."
            ) from None
        except KubeError as error:
            raise HubFailure(error) from error


def _version(kube: Kube) -> str:
    # Anybody may ask for the version, so that alone proves nothing about the credentials.
    version = kube.version()
    kube.find("v1", "Namespace", EVERYWHERE)
    return version
