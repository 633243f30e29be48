# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The charts of a site: its repositories by name, opened when they are needed, and shared by all orders of a run."""

from __future__ import annotations

import threading

from ...infrastructure.profile_offer import ChartRepository, ProfileOffer
from .errors import RepositoryFailed
from .fetch import Fetcher
from .helm_repository import HelmRepository
from .oci_registry import OciRegistry
from .repository_charts import RepositoryCharts


class Charts:
    """Answers of repositories are kept as long as this object."""

    def __init__(self, offer: ProfileOffer) -> None:
        self._offer = offer
        self._lock = threading.Lock()
        self._opened: dict[str, RepositoryCharts] = {}

    def of(self, repository: str) -> RepositoryCharts:
        known = self._offer.repositories.get(repository)
        if known is None:
            raise RepositoryFailed(repository, "the site has no repository of that name")
        with self._lock:
            if repository not in self._opened:
                self._opened[repository] = _open(known)
            return self._opened[repository]


def _open(repository: ChartRepository) -> RepositoryCharts:
    fetcher = Fetcher(repository)
    return OciRegistry(fetcher) if repository.is_oci else HelmRepository(fetcher)
