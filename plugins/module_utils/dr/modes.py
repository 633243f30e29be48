# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Chooses the implementation of the interfaces by `dr_mode`, for each reconcile."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from ..kube.client import Kube
from ..s3.store import ObjectStore
from .acm.deployer import AcmDeployer
from .acm.directory import AcmDirectory
from .acm.placement import AcmPlacement
from .acm.reader import AcmReader
from .compare import ComparingDirectory, ComparingPlacement, ComparingReader, Comparison, Readers
from .connections import Connections
from .direct.deployer import DirectDeployer
from .direct.directory import DirectDirectory
from .direct.peers import Peers
from .direct.placement import DirectPlacement
from .direct.reader import DirectReader
from .interfaces import ClusterDirectory, Placement, ResourceDeployer, ResourceReader
from .read_cache import ReadCache
from .settings import ACM, DIRECT, DrSettings, read_settings


@dataclass(frozen=True)
class Access:
    """The implementations for one reconcile. `differences` grows while they are used, if the settings ask to compare.

    `read_cache` has what is read from this cluster and is the same for many workloads.
    """

    settings: DrSettings
    directory: ClusterDirectory
    reader: ResourceReader
    deployer: ResourceDeployer
    placement: Placement
    differences: list[str] = field(default_factory=list)
    read_cache: ReadCache = field(default_factory=ReadCache)

    @property
    def mode(self) -> str:
        return self.settings.mode


class Modes:
    """Access to clusters as the settings in `namespace` say. Connections to peers are kept between reconciles.

    `writer` names the process in the history of the state. `longest` limits the timeout of the settings.
    """

    def __init__(self, kube: Kube, namespace: str, store: ObjectStore, writer: str = "", longest: float = math.inf) -> None:
        self._kube = kube
        self._namespace = namespace
        self._store = store
        self._writer = writer
        self._longest = longest
        self._connections = Connections(kube, namespace)
        self._reading = Connections(kube, namespace, read_only=True)
        self._read_cache = ReadCache()

    def access(self) -> Access:
        """Read the settings, and connect as they say."""
        settings = self._settings()
        direct = settings.mode == DIRECT
        active = self._direct(settings) if direct else self._acm(settings)
        if not settings.compare:
            return active
        readers = Readers(active.mode, active.directory, active.reader, active.placement)

        def other() -> Readers:
            if direct:
                return self._acm_readers(self._reading.hub(settings), create_views=False)
            return self._direct_readers(self._reading.peers(settings), recorded=True)

        comparison = Comparison(readers, ACM if direct else DIRECT, other, settings.timeout)
        return Access(
            settings,
            ComparingDirectory(comparison),
            ComparingReader(comparison),
            active.deployer,
            ComparingPlacement(comparison),
            comparison.differences,
        )

    def shared_access(self) -> Access:
        """The same for all reconciles that begin within a moment. To compare, each has its own: it reports the differences."""
        access = self._read_cache.get("access", self.access)
        return self.access() if access.settings.compare else access

    def peers(self, own: str) -> dict[str, Kube]:
        """The connections to the registered clusters but `own`, those with a usable Secret. With ACM there are none: it reads for us."""
        settings = self._settings()
        return self._connections.peers(settings).connections(own) if settings.mode == DIRECT else {}

    def _settings(self) -> DrSettings:
        settings = read_settings(self._kube, self._namespace)
        return replace(settings, timeout=min(settings.timeout, self._longest))

    def _direct(self, settings: DrSettings) -> Access:
        peers = self._connections.peers(settings)
        readers = self._direct_readers(peers)
        return Access(settings, readers.directory, readers.reader, DirectDeployer(peers), readers.placement)

    def _acm(self, settings: DrSettings) -> Access:
        hub = self._connections.hub(settings)
        readers = self._acm_readers(hub)
        return Access(settings, readers.directory, readers.reader, AcmDeployer(hub), readers.placement)

    def _direct_readers(self, peers: Peers, *, recorded: bool = False) -> Readers:
        directory, placement = DirectDirectory(self._kube, peers.registry), DirectPlacement(self._store, self._writer, recorded=recorded)
        return Readers(DIRECT, directory, DirectReader(peers), placement)

    def _acm_readers(self, hub: Kube, *, create_views: bool = True) -> Readers:
        return Readers(ACM, AcmDirectory(hub), AcmReader(hub, create_views=create_views), AcmPlacement(hub))
