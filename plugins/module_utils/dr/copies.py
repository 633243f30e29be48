# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which request counts: each cluster has its own copy of a DRPlacementControl, and a person may change any of them. Pure.

The state records what each copy asked for when it was last read, and the number of the request that was current then. A change counts if
the copy was read under the current request before it was changed: so it is newer, and no clocks are compared.

- A copy that changed while its cluster did not answer, and another request was accepted meanwhile, asks for nothing: which of the two is
  newer is unknown. The same holds for a copy that appears later, or that was restored from a backup.
- Two copies that changed at once: a Failover wins, then the order of the clusters. The others are reported by their condition.
- A copy in deletion ends the protection, on whichever cluster. That cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..common.types import Object
from .model import ConditionState, Intent
from .vocabulary import FAILOVER, FALSE, TRUE

CONDITION = "RequestAccepted"


@dataclass(frozen=True)
class Ask:
    """The fields of a spec that a person changes to ask for something."""

    action: str = ""
    preferred: str = ""
    failover: str = ""
    dry_run: bool = False

    @classmethod
    def of(cls, intent: Intent) -> Ask:
        return cls(intent.action, intent.preferred, intent.failover, intent.dry_run)

    def __str__(self) -> str:
        if not self.action:
            return f"no action (preferredCluster {self.preferred or 'not set'})"
        target = self.failover if self.action == FAILOVER else self.preferred
        return f"{'test ' if self.dry_run else ''}{self.action} to {target or 'no cluster'}"


@dataclass(frozen=True)
class Seen:
    """A copy as it was last read, and the number of the request that was current then."""

    uid: str
    generation: int
    number: int
    ask: Ask


@dataclass(frozen=True)
class Asked:
    """The request that counts, its number, and the cluster whose copy asked for it. Number 0: none yet."""

    number: int = 0
    cluster: str = ""
    ask: Ask = field(default_factory=Ask)
    deleting: bool = False
    seen: Mapping[str, Seen] = field(default_factory=dict)
    retired: tuple[str, ...] = ()  # uids of copies of earlier protections, which may still be on clusters that did not answer

    @property
    def uids(self) -> set[str]:
        return {seen.uid for seen in self.seen.values()}

    def cluster_of(self, uid: str) -> str:
        """The cluster whose copy has this uid, as last read; empty if none is known."""
        return next((name for name, seen in self.seen.items() if name and seen.uid == uid), "")

    @property
    def disputed(self) -> bool:
        """Whether the copies ask for different things, and nothing says which is newer: they were read first under the first request."""
        return self.number == 1 and len({seen.ask for seen in self.seen.values()}) > 1

    def apply_to(self, intent: Intent) -> Intent:
        """What the state machine gets. The number takes the place of the generation, which each copy counts for itself."""
        ask = self.ask
        return replace(
            intent,
            generation=self.number,
            action=ask.action,
            preferred=ask.preferred,
            failover=ask.failover,
            dry_run=ask.dry_run,
            deleting=self.deleting,
            disputed=self.disputed,
        )

    def to_content(self) -> Object:
        return asdict(self) | {"retired": list(self.retired)}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Asked:
        if not content:
            return cls()
        seen = {name: Seen(**(item | {"ask": Ask(**item["ask"])})) for name, item in content["seen"].items()}
        return cls(**(dict(content) | {"ask": Ask(**content["ask"]), "seen": seen, "retired": tuple(content["retired"])}))


def accept(asked: Asked, copies: Mapping[str, Intent], *, ended: bool) -> Asked:
    """The request that counts after these copies were read, the own cluster's first. `ended`: the protection has ended."""
    found = {name: copy for name, copy in copies.items() if copy.uid not in asked.retired}
    if ended:
        found = {name: copy for name, copy in found.items() if copy.uid not in asked.uids and not copy.deleting}
        if found:
            asked = Asked(asked.number, retired=tuple(sorted({*asked.retired, *asked.uids})))
    if not found:
        return asked
    accepted = _request(asked, found)
    return replace(accepted, seen={**asked.seen, **{name: _seen(accepted, name, copy) for name, copy in found.items()}})


def standing(asked: Asked, copy: Intent, leader: str) -> ConditionState:
    """The condition that tells a copy whether it shows the request that counts. `leader` is the one that recorded this request."""
    if not _is_read(asked, copy):
        return ConditionState(
            FALSE,
            "NotReadYet",
            f"{leader or 'The leader'} leads and has not read {Ask.of(copy)}; request {asked.number}, {asked.ask}, is in effect."
            " If it cannot reach this cluster, stop its engine: another one leads then.",
        )
    if Ask.of(copy) == asked.ask:
        return ConditionState(TRUE, "Accepted", f"Request {asked.number}: {asked.ask}")
    return ConditionState(
        FALSE,
        "Superseded",
        f"{Ask.of(copy)} is not in effect: request {asked.number}, {asked.ask}, was accepted from {asked.cluster or 'this cluster'}."
        " To ask for something else, change the spec again.",
    )


def is_read_under(asked: Asked, copy: Intent) -> bool:
    """Whether the copy was read under the request in effect: only then does a change of it count."""
    return bool(_seen_under(asked, copy))


def asks_for_nothing(asked: Asked, copy: Intent) -> bool:
    """Whether the copy shows another request than the one in effect, and no leader will follow it before it changes again."""
    if not asked.number or asked.deleting or Ask.of(copy) == asked.ask:
        return False
    return not _is_newer(asked, asked.cluster_of(copy.uid), copy)


def _request(asked: Asked, copies: Mapping[str, Intent]) -> Asked:
    deleted = next((name for name, copy in copies.items() if copy.deleting), None)
    if deleted is not None:
        return asked if asked.deleting else replace(asked, number=asked.number + 1, cluster=deleted, deleting=True)
    if not asked.seen:
        first = next(iter(copies))
        return replace(asked, number=asked.number + 1, cluster=first, ask=Ask.of(copies[first]))
    newer = [name for name, copy in copies.items() if _is_newer(asked, name, copy)]
    winner = min(newer, key=lambda name: copies[name].action != FAILOVER, default=None)
    if winner is None or Ask.of(copies[winner]) == asked.ask:
        return asked
    return replace(asked, number=asked.number + 1, cluster=winner, ask=Ask.of(copies[winner]))


def _is_newer(asked: Asked, name: str, copy: Intent) -> bool:
    seen = asked.seen.get(name)
    if seen is None or seen.uid != copy.uid or seen.number != asked.number:
        return False
    return copy.generation > seen.generation and Ask.of(copy) != seen.ask


def _is_read(asked: Asked, copy: Intent) -> bool:
    """Whether the copy was read as it is, under the request in effect."""
    return any(seen.ask == Ask.of(copy) for seen in _seen_under(asked, copy))


def _seen_under(asked: Asked, copy: Intent) -> list[Seen]:
    """A copy can be known twice: also as that of no member, from before the name of its cluster was known."""
    return [seen for seen in asked.seen.values() if seen.uid == copy.uid and seen.number == asked.number]


def _seen(asked: Asked, name: str, copy: Intent) -> Seen:
    """Changes of other fields are not recorded: they are no reason for a revision."""
    known, seen = asked.seen.get(name), Seen(copy.uid, copy.generation, asked.number, Ask.of(copy))
    return known if known and replace(known, generation=seen.generation) == seen and known.generation <= seen.generation else seen
