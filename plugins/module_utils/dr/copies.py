# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which request counts: each cluster has its own copy of a DRPlacementControl, and a person may change any of them. Pure.

The state records what each copy requested when it was last read, and the number of the request that was current then. A change counts if
the copy was read under the current request before it was changed: so it is newer, and no clocks are compared.

- A copy that changed while its cluster did not answer, and another request was accepted meanwhile, is ignored: which of the two is newer is
  unknown. The same holds for a copy that appears later, or that was restored from a backup.
- Two copies that changed at once: a Failover wins, then the order of the clusters. The others are reported by their condition.
- A copy in deletion ends the protection, on whichever cluster. That cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..common.types import Object
from .model import ConditionState, Intent
from .ramen_api import FAILOVER, FALSE, TRUE

CONDITION = "RequestAccepted"


@dataclass(frozen=True)
class RequestSpec:
    """The fields of a spec that a person changes for a request."""

    action: str = ""
    preferred: str = ""
    failover: str = ""
    dry_run: bool = False

    @classmethod
    def of(cls, intent: Intent) -> RequestSpec:
        return cls(intent.action, intent.preferred, intent.failover, intent.dry_run)

    def __str__(self) -> str:
        if not self.action:
            return f"no action (preferredCluster {self.preferred or 'not set'})"
        target = self.failover if self.action == FAILOVER else self.preferred
        return f"{'test ' if self.dry_run else ''}{self.action} to {target or 'no cluster'}"


@dataclass(frozen=True)
class ObservedCopy:
    """A copy as it was last read, and the number of the request that was current then."""

    uid: str
    generation: int
    number: int
    spec: RequestSpec


@dataclass(frozen=True)
class AcceptedRequest:
    """The request that counts, its number, and the cluster whose copy made it. Number 0: none yet."""

    number: int = 0
    cluster: str = ""
    spec: RequestSpec = field(default_factory=RequestSpec)
    deleting: bool = False
    observed_copies: Mapping[str, ObservedCopy] = field(default_factory=dict)
    retired: tuple[str, ...] = ()  # uids of copies of earlier protections, which may still be on clusters that did not answer

    @property
    def uids(self) -> set[str]:
        return {copy.uid for copy in self.observed_copies.values()}

    def cluster_of(self, uid: str) -> str:
        """The cluster whose copy has this uid, as last read; empty if none is known."""
        return next((name for name, copy in self.observed_copies.items() if name and copy.uid == uid), "")

    @property
    def disputed(self) -> bool:
        """Whether the copies request different things, and nothing says which is newer: they were read first under the first request."""
        return self.number == 1 and len({copy.spec for copy in self.observed_copies.values()}) > 1

    def apply_to(self, intent: Intent) -> Intent:
        """What the state machine gets. The number takes the place of the generation, which each copy counts for itself."""
        spec = self.spec
        return replace(
            intent,
            generation=self.number,
            action=spec.action,
            preferred=spec.preferred,
            failover=spec.failover,
            dry_run=spec.dry_run,
            deleting=self.deleting,
            disputed=self.disputed,
        )

    def to_content(self) -> Object:
        return asdict(self) | {"retired": list(self.retired)}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> AcceptedRequest:
        """Without the copies as they were read, nothing says which request is newer: that is as if there were none yet."""
        if "observed_copies" not in content:
            return cls()
        copies = {name: ObservedCopy(**(item | {"spec": RequestSpec(**item["spec"])})) for name, item in content["observed_copies"].items()}
        typed = {"spec": RequestSpec(**content["spec"]), "observed_copies": copies, "retired": tuple(content["retired"])}
        return cls(**(dict(content) | typed))


def accept(recorded: AcceptedRequest, copies: Mapping[str, Intent], *, ended: bool) -> AcceptedRequest:
    """The request that counts after these copies were read, the own cluster's first. `ended`: the protection has ended."""
    found = {name: copy for name, copy in copies.items() if copy.uid not in recorded.retired}
    if ended:
        found = {name: copy for name, copy in found.items() if copy.uid not in recorded.uids and not copy.deleting}
        if found:
            recorded = AcceptedRequest(recorded.number, retired=tuple(sorted({*recorded.retired, *recorded.uids})))
    if not found:
        return recorded
    accepted = _request(recorded, found)
    observed = {name: _observed(accepted, name, copy) for name, copy in found.items()}
    return replace(accepted, observed_copies={**recorded.observed_copies, **observed})


def standing(accepted: AcceptedRequest, copy: Intent, leader: str) -> ConditionState:
    """The condition that tells a copy whether it shows the request that counts. `leader` is the one that recorded this request."""
    shown = RequestSpec.of(copy)
    if not _is_read(accepted, copy):
        return ConditionState(
            FALSE,
            "NotReadYet",
            f"{leader or 'The leader'} leads and has not read {shown}; request {accepted.number}, {accepted.spec}, is in effect."
            " If it cannot reach this cluster, stop its engine: another one leads then.",
        )
    if shown == accepted.spec:
        return ConditionState(TRUE, "Accepted", f"Request {accepted.number}: {accepted.spec}")
    return ConditionState(
        FALSE,
        "Superseded",
        f"{shown} is not in effect: request {accepted.number}, {accepted.spec}, was accepted from {accepted.cluster or 'this cluster'}."
        " To request something else, change the spec again.",
    )


def is_read_under(accepted: AcceptedRequest, copy: Intent) -> bool:
    """Whether the copy was read under the request in effect: only then does a change of it count."""
    return bool(_observed_under(accepted, copy))


def is_noop(accepted: AcceptedRequest, copy: Intent) -> bool:
    """Whether the copy shows another request than the one in effect, and no leader will follow it before it changes again."""
    if not accepted.number or accepted.deleting or RequestSpec.of(copy) == accepted.spec:
        return False
    return not _is_newer(accepted, accepted.cluster_of(copy.uid), copy)


def _request(accepted: AcceptedRequest, copies: Mapping[str, Intent]) -> AcceptedRequest:
    deleted = next((name for name, copy in copies.items() if copy.deleting), None)
    if deleted is not None:
        return accepted if accepted.deleting else replace(accepted, number=accepted.number + 1, cluster=deleted, deleting=True)
    if not accepted.observed_copies:
        first = next(iter(copies))
        return replace(accepted, number=accepted.number + 1, cluster=first, spec=RequestSpec.of(copies[first]))
    newer = [name for name, copy in copies.items() if _is_newer(accepted, name, copy)]
    winner = min(newer, key=lambda name: copies[name].action != FAILOVER, default=None)
    if winner is None or RequestSpec.of(copies[winner]) == accepted.spec:
        return accepted
    return replace(accepted, number=accepted.number + 1, cluster=winner, spec=RequestSpec.of(copies[winner]))


def _is_newer(accepted: AcceptedRequest, name: str, copy: Intent) -> bool:
    observed = accepted.observed_copies.get(name)
    if observed is None or observed.uid != copy.uid or observed.number != accepted.number:
        return False
    return copy.generation > observed.generation and RequestSpec.of(copy) != observed.spec


def _is_read(accepted: AcceptedRequest, copy: Intent) -> bool:
    """Whether the copy was read as it is, under the request in effect."""
    return any(observed.spec == RequestSpec.of(copy) for observed in _observed_under(accepted, copy))


def _observed_under(accepted: AcceptedRequest, copy: Intent) -> list[ObservedCopy]:
    """A copy can be known twice: also as that of no member, from before the name of its cluster was known."""
    return [each for each in accepted.observed_copies.values() if each.uid == copy.uid and each.number == accepted.number]


def _observed(accepted: AcceptedRequest, name: str, copy: Intent) -> ObservedCopy:
    """Changes of other fields are not recorded: they are no reason for a revision."""
    known, read = accepted.observed_copies.get(name), ObservedCopy(copy.uid, copy.generation, accepted.number, RequestSpec.of(copy))
    return known if known and replace(known, generation=read.generation) == read and known.generation <= read.generation else read
