# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Follows the Secrets that clusters of a fleet refer to, by reading each again and again, and reports clusters whose Secrets changed.

They are not watched: that needs the permission to list all Secrets of a tenant, and reading by name does not. Values are not kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from ..fleet.secret_copies import ObservedSecret, SecretName, Secrets, observe_secrets
from ..kube.client import Kube
from .informer import in_thread
from .work_queue import Key, sentence

log = logging.getLogger(__name__)


class SecretWatch:
    """Changed in the event loop's thread only. `changed` gets the key of each cluster whose Secrets changed."""

    def __init__(self, home: Kube, interval: float, changed: Callable[[Key], None]) -> None:
        self._home = home
        self._interval = interval
        self._changed = changed
        self._users: dict[SecretName, set[Key]] = {}
        self._names: dict[Key, frozenset[SecretName]] = {}
        self._known: dict[SecretName, ObservedSecret | None] = {}

    def use(self, key: Key, names: Iterable[SecretName]) -> None:
        """The cluster refers to these Secrets, and to no others."""
        wanted = frozenset(names)
        if wanted == self._names.get(key, frozenset()):
            return
        self.forget(key)
        if wanted:
            self._names[key] = wanted
        for name in wanted:
            self._users.setdefault(name, set()).add(key)

    def forget(self, key: Key) -> None:
        for name in self._names.pop(key, frozenset()):
            self._users[name].discard(key)
            if not self._users[name]:
                del self._users[name]
                self._known.pop(name, None)

    async def secrets(self, keys: Iterable[Key]) -> Secrets:
        """The Secrets of these clusters; those that were not read before are read now."""
        names = {name for key in keys for name in self._names.get(key, frozenset())}
        if unread := names - self._known.keys():
            self._store(unread, await in_thread(lambda: observe_secrets(self._home, unread)))
        return {name: found for name in names if (found := self._known.get(name))}

    async def run(self) -> None:
        """Until cancelled. No error ends it."""
        while True:
            await asyncio.sleep(self._interval)
            names = set(self._users)
            try:
                found = await in_thread(partial(observe_secrets, self._home, names))
            except Exception as error:  # noqa: BLE001 - of any kind: the next round may succeed
                log.warning("the Secrets of clusters were not read: %s", sentence(error))
                continue
            for name in sorted(names):
                if name in self._known and self._known[name] != found.get(name):
                    for key in sorted(self._users.get(name, ())):
                        self._changed(key)
            self._store(names, found)

    def _store(self, names: Iterable[SecretName], found: Secrets) -> None:
        self._known |= {name: found.get(name) for name in names if name in self._users}
