# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Claims hosts of an inventory for a cluster, all or none, and releases them. What a host is, and how it is marked, an inventory knows.

All claims of an inventory are in one ConfigMap in the site's namespace, where no tenant has a permission: a key for each cluster, by the
uid of its order. A claim is one compare-and-swap on that object, right after the lock of the order was verified, with the lock's token.
So it is made for all hosts at once or not at all, no two clusters get the same host, and a killed run leaves nothing locked.

A host is marked after it was recorded, and recorded until its mark is removed: the next run completes what a killed one began. Marks
also protect hosts whose record was lost, for example with a backup: their cluster records them again.
"""

from __future__ import annotations

import functools
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..kube.errors import Conflict, KubeError
from ..lock.fenced_writer import FencedWriter
from ..lock.lease import LockLost
from .claim_record import Claim, ClaimRecord
from .cluster_owner import ClusterOwner
from .host_choice import Host, HostShortage, Names, Plan, merged, plan, without
from .part_state import PartState

SWAP_SECONDS = 60.0  # for as long a compare-and-swap is repeated: many orders may claim at once
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.6
ROUNDS = 3


class HostTaken(KubeError):
    """A host changed between its choice and its mark: it no longer exists, or has the mark of another cluster."""

    retryable = True


class Inventory(ABC):
    """The hosts that clusters can claim. `name` is unique to it; `changes` counts the marks that it wrote, or in check mode would write."""

    name: str
    changes: int = 0

    @abstractmethod
    def marked(self) -> list[Host]:
        """The hosts with the mark of the cluster."""

    @abstractmethod
    def unmarked(self) -> list[Host]:
        """The hosts without a mark."""

    @abstractmethod
    def is_settled(self, host: Host) -> bool:
        """Whether a marked host is as `mark` would leave it."""

    @abstractmethod
    def mark(self, hosts: Names) -> list[str]:
        """Mark the claimed hosts, and return those that could not be because they changed meanwhile."""

    @abstractmethod
    def unmark(self, names: Iterable[str]) -> list[str]:
        """Remove the marks of these hosts that are not in use, so that others can claim them. Returns those that are in use."""


@dataclass(frozen=True)
class ClaimResult:
    """What a cluster had and has, and in `part` whether that is all that it needs. `released` are the hosts that it has no longer."""

    before: Names
    after: Names
    part: PartState
    released: tuple[str, ...] = ()


@dataclass
class HostClaims:
    """The claim of one cluster on hosts of one inventory."""

    record: ClaimRecord
    inventory: Inventory
    owner: ClusterOwner
    writer: FencedWriter
    check_mode: bool = False
    sleep: Callable[[float], None] = time.sleep
    _hosts: dict[str, Host] = field(default_factory=dict)

    def present(self, wanted: Mapping[str, int]) -> ClaimResult:
        """Claim so many hosts of each class, and release what is too much of a class once the cluster has given it up."""
        wanted = {name: count for name, count in wanted.items() if count}
        marked = self.inventory.marked()
        if self._is_settled(marked, wanted):
            had = _by_class(marked)
            return _result(had, Plan(had), {host.name: host for host in marked})
        added: set[str] = set()
        try:
            for _round in range(ROUNDS):
                self._list(marked)
                before, planned = self._claim(wanted)
                added |= _names(planned.hosts) - _names(before)
                lost = self.inventory.mark(planned.hosts)
                if not lost:
                    return _result(before, planned, self._hosts, self._release(planned.released))
                added -= {*lost}
                self._update(functools.partial(self._reduced, names=lost))
                marked = self.inventory.marked()
            raise HostTaken("Hosts that were chosen for this cluster changed again and again. The order is right; it is retried.")
        except (HostShortage, HostTaken):
            self._release({"": tuple(sorted(added))})  # all or none, also if a host was lost on the way
            raise

    def absent(self) -> ClaimResult:
        """Release all hosts of the cluster that it has given up."""
        marked = self.inventory.marked()
        mine = self.record.read().get(self.owner.key)
        before = merged(mine.hosts if mine else {}, _by_class(marked))
        names = {each for hosts in before.values() for each in hosts}
        self._hosts = {host.name: host for host in marked}
        if names - {*self._hosts}:
            self._list(marked)
        in_use = {name for name in names if name in self._hosts and self._hosts[name].in_use}
        in_use |= {*self._release(without(before, in_use))}
        after = without(before, names - in_use)
        return _result(before, Plan(after, without(before, in_use), _counts(after)), self._hosts, is_deleting=True)

    def _is_settled(self, marked: Iterable[Host], wanted: Mapping[str, int]) -> bool:
        """Whether nothing is to do. The free hosts of the inventory, which may be thousands, are listed only otherwise."""
        mine = self.record.read().get(self.owner.key)
        hosts = _by_class(marked)
        is_recorded = {name: sorted(names) for name, names in (mine.hosts if mine else {}).items()} == {
            name: list(names) for name, names in hosts.items()
        }
        return is_recorded and _counts(hosts) == wanted and all(map(self.inventory.is_settled, marked))

    def _list(self, marked: Iterable[Host]) -> None:
        self._hosts = {host.name: host for host in (*self.inventory.unmarked(), *marked)}

    def _claim(self, wanted: Mapping[str, int]) -> tuple[Names, Plan]:
        """Record what the cluster needs: all of it, or HostShortage and nothing."""
        plans: list[tuple[Names, Plan]] = []
        marked = [host for host in self._hosts.values() if host.claimed_class]

        def needed(claims: Mapping[str, Claim]) -> Names:
            mine = claims.get(self.owner.key)
            before = merged(mine.hosts if mine else {}, _by_class(marked))
            others = [claim.hosts for key, claim in claims.items() if key != self.owner.key]
            try:
                planned = plan(wanted, before, self._hosts, others)
            except HostShortage:
                if not plans:
                    raise
                # Hosts may have been released since they were listed.
                self._list(marked)
                planned = plan(wanted, before, self._hosts, others)
            plans.append((before, planned))
            return planned.recorded

        self._update(needed)
        return plans[-1]

    def _release(self, released: Names) -> list[str]:
        """Remove the marks, then the record. Returns the hosts that are in use after all."""
        names = {each for hosts in released.values() for each in hosts}
        if not names or self.check_mode:
            return []
        self.writer.ensure_held()
        in_use = self.inventory.unmark(sorted(names))
        self._update(functools.partial(self._reduced, names=names - {*in_use}))
        return in_use

    def _reduced(self, claims: Mapping[str, Claim], names: Iterable[str]) -> Names:
        mine = claims.get(self.owner.key)
        return without(mine.hosts, {*names}) if mine else {}

    def _update(self, change: Callable[[Mapping[str, Claim]], Names]) -> None:
        """Write what `change` computes from all claims, again after a conflict, which is mostly one with another order."""
        deadline, pause = time.monotonic() + SWAP_SECONDS, FIRST_PAUSE
        while True:
            claims = self.record.read()
            mine = claims.get(self.owner.key)
            if mine and mine.token > self.writer.token:
                raise LockLost(
                    f"The hosts of {self.owner.namespace}/{self.owner.name} were claimed by a later run. Nothing was written; that run "
                    "continues."
                )
            hosts = change(claims)
            if hosts == (mine.hosts if mine else {}) or self.check_mode:
                return
            self.writer.ensure_held()
            try:
                self.record.write({self.owner.key: Claim(self.owner, hosts, self.writer.token) if hosts else None})
                return
            except Conflict:
                if time.monotonic() > deadline:
                    raise
            self.sleep(random.uniform(0, pause))  # noqa: S311 - spreads contenders, keeps no secret
            pause = min(2 * pause, LONGEST_PAUSE)


def _by_class(hosts: Iterable[Host]) -> Names:
    names: dict[str, list[str]] = {}
    for host in hosts:
        names.setdefault(host.claimed_class, []).append(host.name)
    return {name: tuple(sorted(each)) for name, each in sorted(names.items())}


def _names(hosts: Names) -> set[str]:
    return {each for names in hosts.values() for each in names}


def _counts(hosts: Names) -> dict[str, int]:
    return {name: len(names) for name, names in hosts.items()}


def _result(
    before: Names,
    planned: Plan,
    hosts: Mapping[str, Host],
    in_use: Iterable[str] = (),
    *,
    is_deleting: bool = False,
) -> ClaimResult:
    """The result of an applied plan, except for hosts that are `in_use` after all."""
    leaving = dict(planned.leaving)
    for name, names in planned.released.items():
        if count := len({*names} & {*in_use}):
            leaving[name] = leaving.get(name, 0) + count
    released = {each for names in planned.released.values() for each in names} - {*in_use}
    after = without(merged(planned.hosts, planned.released), released)
    faults = [f"{each} of the class {name} {hosts[each].problem}" for name, names in after.items() for each in names if hosts[each].problem]
    if leaving:
        counted = ", ".join(f"{count} of the class {name}" for name, count in sorted(leaving.items()))
        part = PartState(False, "HostsLeaving", f"Hosts that have to leave the cluster first: {counted}")
    elif is_deleting:
        part = PartState(True, "HostsReleased", "All hosts are released")
    elif faults:
        part = PartState(False, "HostMissing", described(faults))
    else:
        counted = ", ".join(f"{len(names)} of the class {name}" for name, names in after.items())
        gone = f"; no longer in the inventory: {', '.join(planned.gone)}" if planned.gone else ""
        part = PartState(True, "HostsClaimed", f"Hosts: {counted or 'none'}{gone}")
    return ClaimResult(before, after, part, tuple(sorted(released)))


def described(faults: Iterable[str]) -> str:
    """Hosts that do not work, each with its class and why."""
    return f"Host {'; host '.join(faults)}"


def shown(result: ClaimResult) -> dict[str, Any]:
    """For a task's result."""
    return {
        "hosts": {name: list(names) for name, names in result.after.items()},
        "released": list(result.released),
        "part": result.part.as_dict(),
        "diff": {"before": f"{_text(result.before)}\n", "after": f"{_text(result.after)}\n"},
    }


def _text(hosts: Names) -> str:
    return json.dumps({name: list(names) for name, names in hosts.items()}, indent=2)
