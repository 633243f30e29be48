# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Chooses the implementation of the interfaces by `dr_mode`, anew for each reconcile."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..common.third_party import urllib3
from ..kube.client import Kube
from ..kube.untrusted import kubeconfig_of, target_of
from ..registry.clients import ClusterClients
from ..registry.model import REGISTRY
from ..registry.store import RegistryStore
from ..s3.store import ObjectStore
from .acm.deployer import AcmDeployer
from .acm.directory import AcmDirectory
from .acm.placement import AcmPlacement
from .acm.reader import AcmReader
from .compare import ComparingDirectory, ComparingPlacement, ComparingReader, Comparison, Readers
from .direct.deployer import DirectDeployer
from .direct.directory import DirectDirectory
from .direct.peers import Peers
from .direct.placement import DirectPlacement
from .direct.reader import DirectReader
from .interfaces import ClusterDirectory, Placement, ResourceDeployer, ResourceReader
from .settings import ACM, DIRECT, DrSettings, read_settings


@dataclass(frozen=True)
class Access:
    """The implementations for one reconcile. `differences` grows while they are used, if the settings ask to compare."""

    mode: str
    directory: ClusterDirectory
    reader: ResourceReader
    deployer: ResourceDeployer
    placement: Placement
    differences: list[str] = field(default_factory=list)


class Modes:
    """Access to clusters as the settings in `namespace` say. Connections to peers are kept between reconciles.

    `writer` names the process in the history of the state.
    """

    def __init__(self, kube: Kube, namespace: str, store: ObjectStore, writer: str = "") -> None:
        self._kube = kube
        self._namespace = namespace
        self._store = store
        self._writer = writer
        self._clients: dict[tuple[float, bool], ClusterClients] = {}

    def access(self) -> Access:
        """Read the settings, and connect as they say."""
        settings = read_settings(self._kube, self._namespace)
        direct = settings.mode == DIRECT
        active = self._direct(settings) if direct else self._acm(settings)
        if not settings.compare:
            return active
        other = self._direct_readers if settings.mode == ACM else self._acm_readers
        readers = Readers(active.mode, active.directory, active.reader, active.placement)
        comparison = Comparison(readers, ACM if direct else DIRECT, lambda: other(settings, read_only=True), settings.timeout)
        return Access(
            active.mode,
            ComparingDirectory(comparison),
            ComparingReader(comparison),
            active.deployer,
            ComparingPlacement(comparison),
            comparison.differences,
        )

    def _direct(self, settings: DrSettings) -> Access:
        peers = self._peers(settings)
        readers = self._direct_readers(settings, peers=peers)
        return Access(DIRECT, readers.directory, readers.reader, DirectDeployer(peers), readers.placement)

    def _acm(self, settings: DrSettings) -> Access:
        hub = self._hub(settings)
        readers = self._acm_readers(settings, hub=hub)
        return Access(ACM, readers.directory, readers.reader, AcmDeployer(hub), readers.placement)

    def _direct_readers(self, settings: DrSettings, *, read_only: bool = False, peers: Peers | None = None) -> Readers:
        peers = peers or self._peers(settings, read_only=read_only)
        placement = DirectPlacement(self._store, self._writer)
        return Readers(DIRECT, DirectDirectory(self._kube, peers.registry), DirectReader(peers), placement)

    def _acm_readers(self, settings: DrSettings, *, read_only: bool = False, hub: Kube | None = None) -> Readers:
        hub = hub or self._hub(settings, read_only=read_only)
        return Readers(ACM, AcmDirectory(hub), AcmReader(hub, create_views=not read_only), AcmPlacement(hub))

    def _peers(self, settings: DrSettings, *, read_only: bool = False) -> Peers:
        registry = RegistryStore(self._kube, REGISTRY).get(self._namespace, settings.registry)
        key = (settings.timeout, read_only)
        if key not in self._clients:
            self._clients[key] = ClusterClients(self._kube, self._namespace, settings.timeout, read_only=read_only)
        return Peers(registry, self._clients[key], settings.timeout)

    def _hub(self, settings: DrSettings, *, read_only: bool = False) -> Kube:
        target = self._kube.target
        if settings.acm_hub_secret:
            target = target_of(kubeconfig_of(self._kube.get("v1", "Secret", settings.acm_hub_secret, self._namespace)))
        return Kube(target, urllib3.Timeout(total=settings.timeout), tries=2, read_only=read_only)
