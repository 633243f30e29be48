"""Quota as arithmetic: what clusters count for, what fits, what waits, and when clusters end."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.compare_and_swap import merge_patch
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.lifetime import expiry_of, is_expired, is_warned
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import (
    ClusterAssignment,
    Denied,
    FleetCluster,
    FleetQuota,
    NodeSet,
    QuotaReservation,
    parse_lifetime,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.quota import (
    Claim,
    Limits,
    admit,
    amounts_of,
    claim_of,
    in_queue_order,
    limits_of,
    settled_amounts,
    used,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WORKERS = {"workers": NodeSet("fc430", 3)}
DAY = timedelta(days=1)


def cluster(uid: str = "1", **fields: Any) -> FleetCluster:
    return FleetCluster("team", f"cluster-{uid}", uid, "openfleet.clusters.small", created=NOW, **fields)


def claim(uid: str, **amounts: int) -> Claim:
    return Claim(uid, f"cluster-{uid}", amounts)


def test_cluster_counts_for_itself_its_template_and_its_nodes_by_class() -> None:
    sets = {"a": NodeSet("fc430", 3), "b": NodeSet("fc430", 2), "c": NodeSet("h100", 1), "d": NodeSet("gone", 0)}
    counted = {"clusters": 1, "clusters.small": 1, "nodes": 6, "nodes.fc430": 5, "nodes.h100": 1}
    assert amounts_of("openfleet.clusters.small", sets) == counted
    assert amounts_of("small", sets) == counted
    assert amounts_of("acme.metal.small", {}) == {"clusters": 1, "clusters.acme.metal.small": 1, "nodes": 0}


@pytest.mark.parametrize(
    ("wanted", "reported", "nodes"),
    [(5, 3, 5), (1, 3, 3), (0, 0, 0), (2, 0, 2)],
    ids=["grow-counts-at-once", "shrink-counts-until-reported", "empty", "new"],
)
def test_the_larger_of_wanted_and_reported_nodes_counts(wanted: int, reported: int, nodes: int) -> None:
    assignment = ClusterAssignment("east", "1", "team", "a", reported={"w": NodeSet("fc430", reported)})
    needed = claim_of(cluster(node_sets={"w": NodeSet("fc430", wanted)}), assignment)
    assert needed.amounts["nodes"] == nodes


@pytest.mark.parametrize(
    ("assigned", "reported", "observed", "nodes"),
    [(1, 1, True, 1), (1, 3, True, 3), (3, 1, True, 3), (1, 1, False, None)],
    ids=["done", "hub-still-has-them", "not-assigned-yet", "hub-has-not-answered"],
)
def test_reservation_shrinks_only_to_what_the_hub_reported(assigned: int, reported: int, observed: bool, nodes: int | None) -> None:
    sets = ({"w": NodeSet("fc430", assigned)}, {"w": NodeSet("fc430", reported)})
    settled = settled_amounts(cluster(node_sets={"w": NodeSet("fc430", 1)}), ClusterAssignment("east", "1", "team", "a", *sets, observed))
    assert (settled["nodes"] if settled else None) == nodes


OPEN = {"1": QuotaReservation("cluster-1", {"clusters": 1, "nodes": 3})}
CASES: dict[str, tuple[Limits, Claim, str]] = {
    "fits": (Limits({"clusters": 2, "nodes": 5}), claim("2", clusters=1, nodes=2), ""),
    "no-limit-for-a-key": (Limits({"clusters": 2}), claim("2", clusters=1, nodes=99), ""),
    "unlimited": (Limits({}), claim("2", clusters=1), ""),
    "too-many-clusters": (
        Limits({"clusters": 1}),
        claim("2", clusters=1),
        "QuotaExceeded The quota is exceeded: clusters needs 1, 0 of 1 free",
    ),
    "all-that-is-missing": (
        Limits({"clusters": 1, "nodes": 4, "nodes.fc430": 9}),
        claim("2", clusters=1, nodes=2),
        "QuotaExceeded The quota is exceeded: clusters needs 1, 0 of 1 free; nodes needs 2, 1 of 4 free",
    ),
    "lowered-below-use": (
        Limits({"nodes": 1}),
        claim("2", nodes=1),
        "QuotaExceeded The quota is exceeded: nodes needs 1, 0 of 1 free",
    ),
    "unchanged-above-a-lowered-limit": (Limits({"clusters": 0, "nodes": 0}), claim("1", clusters=1, nodes=3), ""),
    "growth": (Limits({"clusters": 1, "nodes": 5}), claim("1", clusters=1, nodes=5), ""),
    "growth-too-large": (
        Limits({"nodes": 5}),
        claim("1", clusters=1, nodes=6),
        "QuotaExceeded The quota is exceeded: nodes needs 3, 2 of 5 free",
    ),
    "denied": (
        Limits({}, denied=Denied("unpaid")),
        claim("2", clusters=1),
        "TenantDenied The tenant gets no further clusters and nodes: unpaid",
    ),
    "denied-and-unchanged": (Limits({}, denied=Denied("unpaid")), claim("1", clusters=1, nodes=3), ""),
    "no-quota": (
        Limits(),
        claim("2", clusters=1),
        "NoQuota Neither the tenant nor the site has a FleetQuota with limits: ask the operator of the fleet for one.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_claim_is_admitted_or_refused_with_the_numbers(case: str) -> None:
    limits, wanted, refusal = CASES[case]
    admission = admit(limits, OPEN, [wanted])
    found = admission.refused.get(wanted.uid)
    assert (f"{found.reason} {found.message}" if found else "") == refusal
    assert dict(admission.reservations[wanted.uid].amounts if not refusal else wanted.amounts) == dict(wanted.amounts)
    assert admission.reservations["1"].amounts["nodes"] >= 3


def test_admitted_claim_never_shrinks() -> None:
    assert admit(Limits({}), OPEN, [claim("1", clusters=1, nodes=1)]).reservations == OPEN
    exchanged = admit(Limits({}), OPEN, [Claim("1", "cluster-1", {"clusters": 1, "nodes": 2, "nodes.h100": 2})]).reservations["1"]
    assert exchanged.amounts == {"clusters": 1, "nodes": 3, "nodes.h100": 2}


def test_claim_that_does_not_fit_does_not_block_a_smaller_one() -> None:
    admission = admit(Limits({"nodes": 5}), {}, [claim("1", nodes=3), claim("2", nodes=3), claim("3", nodes=2)])
    assert sorted(admission.reservations) == ["1", "3"]
    assert {uid: each.reason for uid, each in admission.refused.items()} == {"2": "QuotaExceeded"}


def test_any_sequence_of_claims_stays_within_the_limits() -> None:
    chance = random.Random(20260102)  # noqa: S311 - the same cases each time
    limits = Limits({"clusters": 7, "nodes": 40, "nodes.a": 15, "clusters.x": 3})
    reservations: Any = {}
    for _step in range(500):
        uid, template = str(chance.randrange(12)), chance.choice("xy")
        sets = {"s": NodeSet(chance.choice("ab"), chance.randrange(12))}
        reservations = admit(limits, reservations, [Claim(uid, uid, amounts_of(template, sets))]).reservations
        if chance.random() < 0.2:
            reservations = {key: each for key, each in reservations.items() if key != str(chance.randrange(12))}
        total = used(reservations)
        assert all(total.get(key, 0) <= limit for key, limit in limits.hard.items())  # type: ignore[union-attr]


def test_tenant_without_limits_has_those_of_the_site() -> None:
    site = FleetQuota("openfleet-system", {"clusters": 2}, DAY)
    assert limits_of(None, site) == limits_of(FleetQuota("team"), site) == Limits({"clusters": 2}, DAY)
    assert limits_of(FleetQuota("team", {}, 2 * DAY), site) == Limits({}, 2 * DAY)
    assert limits_of(None, FleetQuota("openfleet-system", {}, denied=Denied("closed"))) == Limits({})
    assert limits_of(None, None) == Limits()


def test_priority_orders_the_clusters_of_one_tenant_only() -> None:
    def waiting(namespace: str, uid: str, minute: int, priority: int = 0) -> FleetCluster:
        return FleetCluster(namespace, uid, uid, "t", priority=priority, created=NOW + timedelta(minutes=minute))

    clusters = [waiting("a", "a1", 1), waiting("b", "b2", 2), waiting("a", "a3", 3, 9), waiting("b", "b4", 4, 1000), waiting("b", "b5", 2)]
    expected = ["a3", "b4", "b2", "a1", "b5"]
    for _round in range(5):
        random.shuffle(clusters)
        assert [each.name for each in in_queue_order(clusters)] == expected


@pytest.mark.parametrize(
    ("expires", "limits", "ends", "reason"),
    [
        (None, Limits(), None, ""),
        (NOW + DAY, Limits(), DAY, "Expired"),
        (None, Limits(max_lifetime=2 * DAY), 2 * DAY, "Expired"),
        (NOW + 3 * DAY, Limits(max_lifetime=2 * DAY), 2 * DAY, "Expired"),
        (NOW + DAY, Limits(max_lifetime=2 * DAY), DAY, "Expired"),
        (NOW + 3 * DAY, Limits(denied=Denied("unpaid", NOW + DAY)), DAY, "Denied"),
        (None, Limits(denied=Denied("unpaid")), None, ""),
    ],
)
def test_earliest_end_of_a_cluster_counts(expires: datetime | None, limits: Limits, ends: timedelta | None, reason: str) -> None:
    expiry = expiry_of(cluster(expires_at=expires), limits)
    assert (expiry.at - NOW if expiry else None, expiry.reason if expiry else "") == (ends, reason)


@pytest.mark.parametrize(("life", "warned"), [(10 * DAY, 9 * DAY), (timedelta(hours=4), timedelta(hours=3))])
def test_tenant_is_warned_before_the_end(life: timedelta, warned: timedelta) -> None:
    ending, second = cluster(expires_at=NOW + life), timedelta(seconds=1)
    expiry = expiry_of(ending, Limits())
    assert not is_warned(expiry, ending, NOW + warned - second)
    assert is_warned(expiry, ending, NOW + warned)
    assert not is_expired(expiry, NOW + life - second)
    assert is_expired(expiry, NOW + life)
    assert not is_expired(None, NOW)
    assert not is_warned(None, ending, NOW)


@pytest.mark.parametrize(("text", "life"), [("30m", timedelta(minutes=30)), ("72h", 3 * DAY), ("14d", 14 * DAY), ("", None), ("1w", None)])
def test_lifetime_is_minutes_hours_or_days(text: str, life: timedelta | None) -> None:
    assert parse_lifetime(text) == life


def test_merge_patch_removes_what_is_gone_at_any_depth() -> None:
    before = {"a": {"x": {"nodes": 1, "nodes.b": 1}, "y": {}}, "b": 1}
    after = {"a": {"x": {"nodes": 1}, "z": {"c": 2}}, "b": 1}
    assert merge_patch(before, after) == {"a": {"x": {"nodes.b": None}, "y": None, "z": {"c": 2}}}
    assert merge_patch(after, after) == {}
