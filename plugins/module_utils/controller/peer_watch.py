# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Follows the DRPlacementControls and VolumeReplicationGroups of other clusters: a request may be made on any of them.

Only names are kept. A reconcile reads the objects again, under its own rules for clusters that do not answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..common.types import Object
from ..dr.kinds import DRPC, RAMEN, VRG
from ..kube.client import Kube
from ..kube.errors import KubeError
from .informer import Informer, in_thread
from .work_queue import Key, sentence

REFRESH_SECONDS = 30.0
# After a network that dropped packets, a watch may wait for events that never come: it is begun again soon.
WATCH_SECONDS = 30

log = logging.getLogger(__name__)


@dataclass
class _Followed:
    kube: Kube
    tasks: list[asyncio.Task[None]]

    def end(self) -> None:
        for task in self.tasks:
            task.cancel()


class PeerWatch:
    """`connect` returns the connections to the other clusters by name; `changed` gets the key of each object that changes there."""

    def __init__(self, connect: Callable[[], Mapping[str, Kube]], changed: Callable[[Key], None]) -> None:
        self._connect = connect
        self._changed = changed
        self._followed: dict[str, _Followed] = {}

    async def run(self) -> None:
        """Until cancelled. Clusters that are registered later, or with other credentials, are followed too."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    self._follow(tasks, await in_thread(self._connect))
                except KubeError as error:
                    log.warning("watch of peers: %s; retry in %.0f s", sentence(error), REFRESH_SECONDS)
                await asyncio.sleep(REFRESH_SECONDS)

    def _follow(self, tasks: asyncio.TaskGroup, peers: Mapping[str, Kube]) -> None:
        for name in [name for name, followed in self._followed.items() if peers.get(name) is not followed.kube]:
            self._followed.pop(name).end()
        for name in peers.keys() - self._followed.keys():
            informers = [
                Informer(peers[name], RAMEN, kind, self._notify, transform=_bare, watch_seconds=WATCH_SECONDS) for kind in (DRPC, VRG)
            ]
            self._followed[name] = _Followed(peers[name], [tasks.create_task(informer.follow()) for informer in informers])

    def _notify(self, before: Object | None, after: Object | None) -> None:
        metadata = (after or before or {})["metadata"]
        self._changed(Key(metadata["namespace"], metadata["name"]))


def _bare(item: Object) -> Object:
    """What an informer needs to know an object again."""
    return {"metadata": {name: item["metadata"][name] for name in ("namespace", "name", "uid", "resourceVersion")}}
