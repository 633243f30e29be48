# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which clusters wait, and what for; and what changed while a reconcile decided that they wait. It decides nothing about quota and hubs.

A reconcile decides by what it observed at its start, and may take long. A change meanwhile requeues only clusters that are known to wait,
so each change has a number: a cluster is tried again if what it waits for changed after the observation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from .work_queue import Key

QUOTA, HUB, GROWTH = "quota", "hub", "growth"  # what clusters wait for


@dataclass(frozen=True)
class Wait:
    """What a cluster waits for: quota, any hub, or capacity to grow on the hub that it is bound to."""

    reason: str
    hub: str = ""


class Waiting:
    """The clusters of one home cluster that wait. The methods about a change return those that it may help."""

    def __init__(self) -> None:
        self._keys: Mapping[str, set[Key]] = {QUOTA: set(), HUB: set(), GROWTH: set()}
        self._changes: dict[tuple[str, str], int] = {}  # the number of the last change, by the reason and the tenant or hub; "" is all
        self._number = 0

    def __iter__(self) -> Iterator[Key]:
        return (key for keys in self._keys.values() for key in keys)

    def counts(self) -> dict[str, int]:
        return {reason: len(keys) for reason, keys in self._keys.items()}

    def quota_freed(self, tenant: str) -> set[Key]:
        self._count(QUOTA, tenant)
        return _of_tenant(self._keys[QUOTA], tenant)

    def hub_may_fit(self, hub: str, bound: Set[Key]) -> set[Key]:
        """`bound` are the clusters on the hub."""
        self._count(HUB, "")
        self._count(GROWTH, hub)
        return self._keys[HUB] | (self._keys[GROWTH] & bound)

    def tenant_changed(self, tenant: str) -> set[Key]:
        """Its labels, by which hubs select tenants."""
        self._count(HUB, tenant)
        return _of_tenant(self._keys[HUB], tenant)

    def moment(self) -> int:
        """The number of the last change: for `note`, from when the fleet was observed."""
        return self._number

    def note(self, key: Key, wait: Wait | None, observed: int) -> bool:
        """Store what the cluster waits for, if anything. Returns whether that changed since the observation."""
        for reason, keys in self._keys.items():
            (keys.add if wait and reason == wait.reason else keys.discard)(key)
        if wait is None:
            return False
        subjects = {QUOTA: (key.namespace,), HUB: ("", key.namespace), GROWTH: (wait.hub,)}[wait.reason]
        return any(self._changes.get((wait.reason, each), 0) > observed for each in subjects)

    def forget(self, key: Key) -> None:
        for keys in self._keys.values():
            keys.discard(key)

    def _count(self, reason: str, subject: str) -> None:
        self._number += 1
        self._changes[reason, subject] = self._number


def _of_tenant(keys: Iterable[Key], tenant: str) -> set[Key]:
    return {key for key in keys if key.namespace == tenant}
