# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a tenant's clusters count for, and which of them fit into the quota. Pure arithmetic; `quota_store` writes it down.

A reservation never shrinks here while it is admitted: nodes that a tenant gives up count until the hub reports that they are deleted, or
until it is certain that no assignment has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from .model import (
    Amounts,
    ClusterAssignment,
    Denied,
    FleetCluster,
    FleetQuota,
    NodeSet,
    QuotaReservation,
    nodes_by_class,
    short_template,
)

CLUSTERS, NODES = "clusters", "nodes"
QUOTA_EXCEEDED, TENANT_DENIED, NO_QUOTA = "QuotaExceeded", "TenantDenied", "NoQuota"

Reservations = Mapping[str, QuotaReservation]  # by the uid of the cluster


@dataclass(frozen=True)
class Limits:
    """What holds for a tenant. `hard` is None where neither the tenant nor the site has a quota."""

    hard: Amounts | None = None
    max_lifetime: timedelta | None = None
    denied: Denied | None = None


@dataclass(frozen=True)
class Claim:
    """What one cluster needs in all."""

    uid: str
    name: str
    amounts: Amounts


@dataclass(frozen=True)
class Refusal:
    """Why a claim was not admitted: `reason` in one word, `message` with the numbers."""

    reason: str
    message: str


@dataclass(frozen=True)
class Admission:
    """The reservations after some claims, and the claims that were refused, by uid."""

    reservations: Reservations
    refused: Mapping[str, Refusal] = field(default_factory=dict)


def limits_of(quota: FleetQuota | None, default: FleetQuota | None) -> Limits:
    """The limits of a tenant: its own, and for each that it has not, that of the site's default."""
    own, site = quota or FleetQuota(""), default or FleetQuota("")
    return Limits(
        own.hard if own.hard is not None else site.hard,
        own.max_lifetime or site.max_lifetime,
        own.denied,
    )


def amounts_of(template: str, *node_sets: Mapping[str, NodeSet]) -> dict[str, int]:
    """What a cluster counts for. Of several node sets, for example wanted and reported ones, the larger number of a class counts."""
    nodes: dict[str, int] = {}
    for each in node_sets:
        nodes = dict(largest(nodes, nodes_by_class(each)))
    by_class = {f"{NODES}.{name}": count for name, count in nodes.items()}
    return {CLUSTERS: 1, f"{CLUSTERS}.{short_template(template)}": 1, NODES: sum(nodes.values()), **by_class}


def claim_of(cluster: FleetCluster, assignment: ClusterAssignment | None = None) -> Claim:
    """What the cluster needs: what is wanted, and what its hub still has.

    The assignment says the latter, not the status of the cluster, which follows it: a run that was killed before it wrote that status would
    have reserved again what is released.
    """
    return Claim(cluster.uid, cluster.name, amounts_of(cluster.template, cluster.node_sets, assignment.reported if assignment else {}))


def settled_amounts(cluster: FleetCluster, assignment: ClusterAssignment | None) -> Amounts | None:
    """What the cluster still needs after its hub reported; None while the hub has not reported on the present assignment."""
    if assignment is None:
        return amounts_of(cluster.template, cluster.node_sets)
    if not assignment.is_observed:
        return None
    return amounts_of(cluster.template, cluster.node_sets, assignment.node_sets, assignment.reported)


def largest(first: Amounts, second: Amounts) -> Amounts:
    """The larger amount of each key."""
    return {key: max(first.get(key, 0), second.get(key, 0)) for key in sorted({*first, *second})}


def smallest(first: Amounts, second: Amounts) -> Amounts:
    """The smaller amount of each key that both have."""
    return {key: min(amount, second[key]) for key, amount in first.items() if key in second}


def used(reservations: Reservations) -> dict[str, int]:
    """The sum of all reservations."""
    total: dict[str, int] = {}
    for each in reservations.values():
        for key, amount in each.amounts.items():
            total[key] = total.get(key, 0) + amount
    return dict(sorted(total.items()))


def admit(limits: Limits, reservations: Reservations, claims: Sequence[Claim]) -> Admission:
    """Reserve what fits, in the order of the claims. One that does not fit does not block a later, smaller one."""
    kept, refused, total = dict(reservations), {}, used(reservations)
    for claim in claims:
        present = kept[claim.uid].amounts if claim.uid in kept else {}
        amounts = largest(present, claim.amounts)
        grown = {key: amount - present.get(key, 0) for key, amount in amounts.items() if amount > present.get(key, 0)}
        if grown and (refusal := _refusal(limits, total, grown)):
            refused[claim.uid] = refusal
        elif grown:
            kept[claim.uid] = QuotaReservation(claim.name, amounts)
            total |= {key: total.get(key, 0) + amount for key, amount in grown.items()}
    return Admission(kept, refused)


def in_queue_order(clusters: Iterable[FleetCluster]) -> list[FleetCluster]:
    """Clusters that wait: the oldest first. The priority exchanges clusters of one tenant only, so no tenant overtakes another by it."""
    by_age = sorted(clusters, key=lambda cluster: (cluster.created, cluster.uid))
    own: dict[str, list[FleetCluster]] = {}
    for cluster in by_age:
        own.setdefault(cluster.namespace, []).append(cluster)
    turns = {namespace: iter(sorted(each, key=lambda cluster: -cluster.priority)) for namespace, each in own.items()}
    return [next(turns[cluster.namespace]) for cluster in by_age]


def _refusal(limits: Limits, present: Amounts, grown: Amounts) -> Refusal | None:
    if limits.denied:
        return Refusal(TENANT_DENIED, f"The tenant gets no further clusters and nodes: {limits.denied.reason}")
    if limits.hard is None:
        return Refusal(NO_QUOTA, "Neither the tenant nor the site has a FleetQuota with limits: ask the operator of the fleet for one.")
    missing = [
        f"{key} needs {amount}, {max(0, limit - present.get(key, 0))} of {limit} free"
        for key, amount in sorted(grown.items())
        if (limit := limits.hard.get(key)) is not None and present.get(key, 0) + amount > limit
    ]
    return Refusal(QUOTA_EXCEEDED, f"The quota is exceeded: {'; '.join(missing)}") if missing else None
