# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Exports the records of deleted clusters to a bucket and deletes those that are too old or too many, again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..fleet.observe import server_time
from ..fleet.record_archive import RecordArchive, Retention, delete_surplus
from ..kube.client import Kube
from ..s3.store import connect
from .fleet_settings import RecordSettings
from .informer import in_thread
from .work_queue import sentence

log = logging.getLogger(__name__)


class RecordPruner:
    """`exported` gets the number of records that were exported. With a bucket, only exported records are deleted."""

    def __init__(self, home: Kube, settings: RecordSettings, exported: Callable[[int], None]) -> None:
        self._home = home
        self._settings = settings
        self._exported = exported

    async def run(self) -> None:
        """Until cancelled. No error ends it: the bucket may be unreachable for a while."""
        if not self._settings.store and self._settings.retention == Retention():
            return
        while True:
            try:
                self._exported(await in_thread(self.export_and_prune))
            except Exception as error:  # noqa: BLE001 - of any kind: the next round may succeed
                log.warning("the records of deleted clusters were not exported: %s", sentence(error))
            await asyncio.sleep(self._settings.interval)

    def export_and_prune(self) -> int:
        """Export and delete once. Returns how many were exported."""
        settings, now, count = self._settings, server_time(self._home), 0
        if settings.store:
            count = RecordArchive(self._home, connect(settings.store), settings.prefix).export(now)
        delete_surplus(self._home, settings.retention, now, only_exported=bool(settings.store))
        return count
