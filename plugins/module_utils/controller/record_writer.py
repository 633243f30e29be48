# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes the records of clusters that were deleted at once, because they had no finalizer. Others are recorded while they are deleted."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from ..common.types import Object
from ..fleet.model import FleetCluster
from ..fleet.observe import server_time
from ..fleet.records import write_record
from ..kube.client import Kube
from ..kube.errors import KubeError
from .informer import in_thread
from .work_queue import sentence

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0


class RecordWriter:
    """A cluster gets its finalizer by its first reconcile, and may be deleted before that. It had neither quota nor a hub."""

    def __init__(self, home: Kube) -> None:
        self._home = home
        self._waiting: asyncio.Queue[Object] = asyncio.Queue()

    def deleted(self, item: Object) -> None:
        """A FleetCluster, as it was last known, does not exist any more. One whose deletion took its time was recorded."""
        if "deletionTimestamp" not in item["metadata"]:
            self._waiting.put_nowait(item)

    async def run(self) -> None:
        """Until cancelled. An error of the home cluster ends nothing."""
        while True:
            item = await self._waiting.get()
            try:
                await in_thread(partial(self._write, item))
            except Exception as error:  # noqa: BLE001 - of any kind: the records of other clusters can be written
                metadata = item["metadata"]
                log.warning("%s/%s has no record: %s", metadata["namespace"], metadata["name"], sentence(error))
                if isinstance(error, KubeError) and error.retryable:
                    self._waiting.put_nowait(item)
                    await asyncio.sleep(RETRY_SECONDS)

    def _write(self, item: Object) -> None:
        write_record(self._home, FleetCluster.from_object(item), None, None, server_time(self._home))
