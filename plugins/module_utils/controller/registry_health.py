# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the health of registered clusters current: checks them again and again, and writes what has changed."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from ..kube.client import Kube
from ..registry.clients import ClusterClients
from ..registry.model import REGISTRY, ClusterRegistry
from ..registry.store import RegistryStore
from .informer import in_thread
from .work_queue import sentence

log = logging.getLogger(__name__)

CHECK_SECONDS = 10.0  # for one cluster
# A status that differs only in lastSeen. A watch of registries is not woken for each check.
LAST_SEEN_INTERVAL = timedelta(minutes=10)


class RegistryHealth:
    """Checks the registries of one namespace, one after the other. Connections are kept from one check to the next."""

    def __init__(self, kube: Kube, namespace: str, interval: float, check_seconds: float = CHECK_SECONDS) -> None:
        self._kube = kube
        self._store = RegistryStore(kube, REGISTRY)
        self._namespace = namespace
        self._interval = interval
        self._check_seconds = check_seconds
        self._clients: dict[str, ClusterClients] = {}
        self._problems: dict[str, str] = {}

    async def run(self) -> None:
        """Check until cancelled. No error ends it."""
        while True:
            await in_thread(self.check)
            await asyncio.sleep(self._interval)

    def check(self) -> None:
        """Check all registries once."""
        try:
            registries = self._store.list_valid(self._namespace, log.warning)
        except Exception as error:  # noqa: BLE001 - of any kind: the next check may succeed
            self._report(f"registries of {self._namespace}", error)
            return
        self._clients = {registry.name: self._clients_of(registry) for registry in registries}
        for registry in registries:
            try:
                self._check(registry)
                self._problems.pop(str(registry), None)
            except Exception as error:  # noqa: BLE001 - of any kind: it ends on this registry
                self._report(str(registry), error)

    def _check(self, registry: ClusterRegistry) -> None:
        checked = self._clients[registry.name].check(registry.clusters)
        now = self._kube.server_time() or datetime.now(UTC)
        change = self._store.write_status(registry.namespace, registry.name, checked, now, LAST_SEEN_INTERVAL)
        if change.changed and change.after:
            log.info("%s: %s", registry, change.after.status["conditions"][0]["message"])

    def _clients_of(self, registry: ClusterRegistry) -> ClusterClients:
        return self._clients.get(registry.name) or ClusterClients(self._kube, self._namespace, self._check_seconds)

    def _report(self, subject: str, error: Exception) -> None:
        """Log a problem once, not with each check."""
        if self._problems.get(subject) != type(error).__name__:
            self._problems[subject] = type(error).__name__
            log.warning("the health of %s was not checked: %s", subject, sentence(error))
