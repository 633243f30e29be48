# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The requests of the facade in the namespace of a hub, for kubeconfigs and workloads, while its agent leads.

Each is answered once, and old ones are deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from ..common.types import Object
from ..fleet.kubeconfig_answers import answer
from ..fleet.kubeconfig_request import LABEL, KubeconfigAnswer, is_request, is_too_old
from ..fleet.workloads_answers import answer_workloads
from ..fleet.workloads_request import WorkloadsAnswer, wants_workloads
from ..kube.client import Kube
from ..kube.errors import Conflict, NotFound
from ..orders.model import Names
from .informer import Informer, in_thread
from .work_queue import Key, WorkQueue

WORKERS = 16


class KubeconfigRequests:
    """Requests for one cluster are answered one after the other: a cluster that hangs delays no other one."""

    def __init__(self, home: Kube, hub: Kube, names: Names, secrets: Informer, order_of: Callable[[Key], Object | None]) -> None:
        self._home = home
        self._hub = hub
        self._names = names
        self._secrets = secrets
        self._order_of = order_of
        self._queue = WorkQueue(self._answer)

    def secret_changed(self, secret: Object) -> None:
        if _is_open(secret):
            metadata = secret["metadata"]
            self._queue.add(Key(metadata["namespace"], (metadata.get("labels") or {}).get(LABEL, "")))

    def start(self, tasks: asyncio.TaskGroup) -> None:
        for _worker in range(WORKERS):
            tasks.create_task(self._queue.work())

    async def _answer(self, key: Key) -> None:
        for request in [each for each in self._secrets.below(key.namespace) if _is_open(each) and _cluster_of(each) == key.name]:
            found = await in_thread(partial(self._answer_to, request, self._order_of(key)))
            try:
                self._secrets.remember(await in_thread(partial(self._home.replace, found.apply_to(request))))
            except (Conflict, NotFound):
                continue  # answered or withdrawn meanwhile; the watch reports it

    def _answer_to(self, request: Object, order: Object | None) -> KubeconfigAnswer | WorkloadsAnswer:
        if wants_workloads(request):
            return answer_workloads(self._hub, self._names, order)
        return answer(self._hub, self._names, request, order)

    async def delete_old(self, namespace: str) -> None:
        now = await in_thread(self._home.server_time) or datetime.now(UTC)
        for secret in self._secrets.below(namespace):
            if is_request(secret) and is_too_old(secret, now):
                await in_thread(partial(self._home.delete, secret, checked=True))


def _is_open(secret: Object) -> bool:
    answered = WorkloadsAnswer.from_secret(secret) if wants_workloads(secret) else KubeconfigAnswer.from_secret(secret)
    return is_request(secret) and answered is None


def _cluster_of(secret: Object) -> str:
    return str((secret["metadata"].get("labels") or {}).get(LABEL, ""))
