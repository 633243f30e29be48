# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Notifications of clusters: accepted if the cluster of the named order has signed them. Nothing of their bodies is used."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from ..gitops.notification_key import find_site_key, is_signed
from ..kube.client import Kube
from ..kube.errors import KubeError
from .informer import in_thread

log = logging.getLogger(__name__)

KEY_SECONDS = 60.0  # how long the key of the site is used, also where there is none: no sender causes a request each time


class GitOpsNotifications:
    """`notified` is called with the uid of the order. The key of the site is in `site_namespace`."""

    def __init__(self, kube: Kube, site_namespace: str, notified: Callable[[str], None]) -> None:
        self._kube = kube
        self._site_namespace = site_namespace
        self._notified = notified
        self._site_key = ""
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def accept(self, uid: str, body: bytes, signature: str) -> bool:
        """Whether the cluster of this order has signed the body; the order is then to be observed."""
        if not is_signed(await self._key(), uid, body, signature):
            return False
        self._notified(uid)
        return True

    async def _key(self) -> str:
        async with self._reading:
            if time.monotonic() - self._read_at > KEY_SECONDS:
                try:
                    self._site_key = await in_thread(lambda: find_site_key(self._kube, self._site_namespace))
                except KubeError as error:
                    log.warning("the key of notifications was not read, so the last one stays: %s", error)
                self._read_at = time.monotonic()
            return self._site_key
