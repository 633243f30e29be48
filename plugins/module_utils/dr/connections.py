# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Connections by the settings of disaster recovery: to the registered clusters, and to the ACM hub."""

from __future__ import annotations

from ..common.third_party import urllib3
from ..kube.client import Kube
from ..kube.untrusted import kubeconfig_of, target_of
from ..registry.clients import ClusterClients
from ..registry.model import REGISTRY
from ..registry.store import RegistryStore
from .direct.peers import Peers
from .direct.response_timeouts import ResponseTimeouts
from .settings import DrSettings


class Connections:
    """Connections from one cluster. Those to peers are kept. With `read_only` they send no write."""

    def __init__(self, kube: Kube, namespace: str, *, read_only: bool = False) -> None:
        self._kube = kube
        self._namespace = namespace
        self._read_only = read_only
        self._clients: dict[float, ClusterClients] = {}
        self._timeouts = ResponseTimeouts()

    def peers(self, settings: DrSettings) -> Peers:
        registry = RegistryStore(self._kube, REGISTRY).get(self._namespace, settings.registry)
        if settings.timeout not in self._clients:
            self._clients = {settings.timeout: ClusterClients(self._kube, self._namespace, settings.timeout, read_only=self._read_only)}
        return Peers(registry, self._clients[settings.timeout], settings.timeout, self._timeouts)

    def hub(self, settings: DrSettings) -> Kube:
        target = self._kube.target
        if settings.acm_hub_secret:
            target = target_of(kubeconfig_of(self._kube.get("v1", "Secret", settings.acm_hub_secret, self._namespace)))
        return Kube(target, urllib3.Timeout(total=settings.timeout), tries=2, read_only=self._read_only)
