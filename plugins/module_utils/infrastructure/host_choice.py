# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which hosts a cluster gets, and which it no longer needs. Pure: `host_claims` claims and releases them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..kube.errors import KubeError

Names = Mapping[str, tuple[str, ...]]  # of hosts, by resource class


class HostShortage(KubeError):
    """The inventory has too few free hosts. `missing` has the number by class."""

    retryable = True

    def __init__(self, missing: Mapping[str, int], wanted: Mapping[str, int]) -> None:
        lacks = ", ".join(f"{count} of {wanted[name]} hosts of the class {name}" for name, count in missing.items())
        super().__init__(
            f"The site has too few free hosts: {lacks} are missing. Nothing was claimed. Request fewer nodes, or ask the site's operator "
            "for more hosts."
        )
        self.missing = dict(missing)


class UnknownClass(KubeError):
    """The inventory has no hosts of the class, free or not."""

    retryable = True

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(
            f"The site has no bare-metal hosts of the class {', '.join(names)}. Nothing was claimed. Request another class, or ask the "
            "site's operator for such hosts."
        )


@dataclass(frozen=True)
class Host:
    """A host of an inventory.

    It may belong to several `classes`. `is_free` says whether a cluster without it can claim it, `in_use` whether it is part of a
    cluster. `problem` is why a claimed host does not work. `claimed_class` is that of its mark; empty where it has none.
    """

    name: str
    classes: frozenset[str] = frozenset()
    failure_domain: str = ""
    is_free: bool = True
    is_clean: bool = True
    in_use: bool = False
    problem: str = ""
    claimed_class: str = ""


@dataclass(frozen=True)
class Plan:
    """The hosts that a cluster keeps or gets, and those to release. `leaving` counts those to release later, by class: they are in use.

    `gone` are claimed hosts that the inventory no longer has.
    """

    hosts: Names
    released: Names = field(default_factory=dict)
    leaving: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[str, ...] = ()

    @property
    def recorded(self) -> Names:
        """What is claimed until the released hosts are."""
        return merged(self.hosts, self.released)


def plan(wanted: Mapping[str, int], claimed: Names, hosts: Mapping[str, Host], others: Iterable[Names] = ()) -> Plan:
    """What changes for a cluster with the hosts `claimed` that needs the number `wanted` of each class.

    `hosts` are all that it has or could have, `others` what other clusters have. HostShortage, UnknownClass where it cannot have as many.
    """
    present = {name: tuple(each for each in names if each in hosts) for name, names in claimed.items()}
    kept: dict[str, tuple[str, ...]] = {}
    released: dict[str, tuple[str, ...]] = {}
    leaving: dict[str, int] = {}
    for name in sorted({*present, *wanted}):
        mine = present.get(name, ())
        surplus = max(0, len(mine) - wanted.get(name, 0))
        # Which hosts leave a cluster is up to the cluster: one that is in use stays claimed.
        given_up = [each for each in _least_useful_first(mine, hosts) if not hosts[each].in_use][:surplus]
        kept[name] = tuple(each for each in mine if each not in given_up)
        released[name] = tuple(given_up)
        leaving[name] = surplus - len(given_up)
    others = list(others)
    known = {name for names in (claimed, *others) for name in names}.union(*(host.classes for host in hosts.values()))
    if unknown := [name for name in wanted if name not in known]:
        raise UnknownClass(unknown)
    taken = {each for names in others for group in names.values() for each in group}
    chosen = _choose(wanted, kept, hosts, taken)
    gone = tuple(sorted({each for names in claimed.values() for each in names} - {*hosts}))
    return Plan(without_empty(chosen), without_empty(released), {name: count for name, count in leaving.items() if count}, gone)


def _choose(wanted: Mapping[str, int], kept: Names, hosts: Mapping[str, Host], taken: Collection[str]) -> Names:
    """The kept hosts, and as many free ones as are missing: clean ones first, and spread over failure domains."""
    own = {each for names in kept.values() for each in names}
    free = [host for host in hosts.values() if host.is_free and host.name not in taken and host.name not in own]
    chosen: dict[str, tuple[str, ...]] = dict(kept)
    missing: dict[str, int] = {}
    # A host may belong to several classes: the class with the fewest hosts to spare has the first choice.
    for name in sorted(wanted, key=lambda each: sum(each in host.classes for host in free) - wanted[each]):
        mine = kept.get(name, ())
        needed = wanted[name] - len(mine)
        picked = _spread(needed, [host for host in free if name in host.classes], [hosts[each] for each in mine])
        names = [host.name for host in picked]
        free = [host for host in free if host.name not in names]
        chosen[name] = (*mine, *names)
        if len(picked) < needed:
            missing[name] = needed - len(picked)
    if missing:
        raise HostShortage({name: missing[name] for name in wanted if name in missing}, wanted)
    return chosen


def _spread(count: int, free: Sequence[Host], present: Sequence[Host]) -> list[Host]:
    """So many of the free hosts, each from the failure domain that the cluster has the fewest hosts in; then from the emptiest."""
    used, left = (Counter(host.failure_domain for host in group) for group in (present, free))
    groups: dict[tuple[bool, str], list[Host]] = {}
    for host in sorted(free, key=lambda each: each.name, reverse=True):
        groups.setdefault((not host.is_clean, host.failure_domain), []).append(host)
    picked: list[Host] = []
    while groups and len(picked) < count:
        best = min(groups, key=lambda group: (group[0], used[group[1]], -left[group[1]], groups[group][-1].name))
        picked.append(groups[best].pop())
        used[best[1]] += 1
        left[best[1]] -= 1
        if not groups[best]:
            del groups[best]
    return picked


def _least_useful_first(names: Iterable[str], hosts: Mapping[str, Host]) -> list[str]:
    return sorted(names, key=lambda name: (not hosts[name].problem, name))


def merged(first: Names, second: Names) -> Names:
    both = {name: tuple(dict.fromkeys((*first.get(name, ()), *second.get(name, ())))) for name in sorted({*first, *second})}
    return without_empty(both)


def without(names: Names, removed: Collection[str]) -> Names:
    return without_empty({name: tuple(each for each in hosts if each not in removed) for name, hosts in names.items()})


def without_empty(names: Names) -> Names:
    return {name: hosts for name, hosts in sorted(names.items()) if hosts}
