# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Follows the claimed Agents of the site, so that an order reports at once that a host went missing. It writes nothing.

It reads nothing until an order has hosts, and follows nothing where the site has no Agents. What it sees is a suspicion only, because two
watches never lag equally: whether a host is missing, the hub says when the order is reconciled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..common.types import Object
from ..infrastructure.agent_hosts import API_VERSION, KIND, AgentLabels, problem, record_name
from ..infrastructure.claim_record import Claim, ClaimRecord
from ..kube.client import Kube
from ..kube.errors import KubeError
from ..orders.lost_hosts import has_ready_hosts, inventory_namespace, reports_hosts
from ..orders.model import ClusterOrder, Names
from .informer import Informer, in_thread
from .work_queue import Key, sentence

log = logging.getLogger(__name__)

SETTINGS_SECONDS = 300.0  # between two reads of the site's settings, which name the namespace


class HostWatch:
    """One for a hub. `enqueue` is called for each order that may have lost a host."""

    def __init__(self, watching: Kube, kube: Kube, names: Names, enqueue: Callable[[Key], None]) -> None:
        self.informer: Informer | None = None
        self._watching = watching
        self._kube = kube
        self._names = names
        self._enqueue = enqueue
        self._labels = AgentLabels(names.group)
        self._needed = asyncio.Event()
        self._keys: dict[str, Key] = {}  # of the orders with hosts, by uid
        self._uids: dict[Key, str] = {}
        self._suspected: set[str] = set()  # uids of orders; also of those that have yet to report their hosts

    def order_changed(self, key: Key, item: Object) -> None:
        uid = item["metadata"]["uid"]
        if reports_hosts(item) and uid not in self._keys:
            self._keys[uid], self._uids[key] = key, uid
            self._needed.set()

    def forget(self, key: Key) -> None:
        uid = self._uids.pop(key, "")
        self._keys.pop(uid, None)
        self._suspected.discard(uid)

    def take(self, order: ClusterOrder) -> bool:
        """Whether the order may have lost a host. That is asked once; `suspect` asks again."""
        if order.uid not in self._suspected or not (has_ready_hosts(order) or order.is_deleting):
            return False
        self._suspected.discard(order.uid)
        return not order.is_deleting

    def suspect(self, uid: str) -> None:
        self._suspected.add(uid)
        if uid in self._keys:
            self._enqueue(self._keys[uid])

    async def run(self) -> None:
        """Follow the Agents until cancelled; those of another namespace once the settings of the site name it."""
        await self._needed.wait()
        namespace, following = "", None
        try:
            while True:
                wanted = await self._namespace(namespace)
                if wanted != namespace:
                    if following:
                        following.cancel()
                    following = asyncio.create_task(self._follow(wanted)) if wanted else None
                    namespace = wanted
                await asyncio.sleep(SETTINGS_SECONDS)
        finally:
            if following:
                following.cancel()

    async def _namespace(self, known: str) -> str:
        try:
            return await in_thread(lambda: inventory_namespace(self._kube, self._names))
        except KubeError as error:  # every run reports it
            log.warning("the settings of the site: %s", sentence(error))
            return known

    async def _follow(self, namespace: str) -> None:
        informer = Informer(self._watching, API_VERSION, KIND, self._changed, self._labels.claim, namespace, transform=_trimmed)
        self.informer = informer
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(informer.follow())
            await informer.listed.wait()
            await self._suspect_deleted(namespace, informer)

    async def _suspect_deleted(self, namespace: str, informer: Informer) -> None:
        """Of Agents that were deleted before the watch began, only the claims tell."""
        record = ClaimRecord(self._kube, self._names.site_namespace, record_name(namespace))
        try:
            claims: dict[str, Claim] = await in_thread(record.read)
        except KubeError as error:
            log.warning("the claims of hosts: %s", sentence(error))
            return
        for uid, claim in claims.items():
            if any(informer.get(Key(namespace, host)) is None for hosts in claim.hosts.values() for host in hosts):
                self.suspect(uid)

    def _changed(self, before: Object | None, after: Object | None) -> None:
        uid = ((after or before or {})["metadata"].get("labels") or {}).get(self._labels.claim, "")
        if after is None or (problem(after) and (before is None or problem(before) != problem(after))):
            self.suspect(uid)


def _trimmed(agent: Object) -> Object:
    """What `problem` reads. The inventory of a host is large, and nothing reads it here."""
    metadata = {name: value for name, value in agent["metadata"].items() if name != "annotations"}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": (agent.get("status") or {}).get("conditions") or []}}
