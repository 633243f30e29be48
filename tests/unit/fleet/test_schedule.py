"""The choice of a hub: a case for each filter, each score and each tie, and an explanation that never flaps."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import (
    FleetCluster,
    Hub,
    HubReservation,
    NodeSet,
    Placement,
    Taint,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.schedule import (
    FILTERS,
    SCORES,
    FilterResults,
    Request,
    Weights,
    choose,
    lacks_capacity,
    most_of_tenant,
    score,
)

NOW = datetime(2026, 1, 2, 12, 10, tzinfo=UTC)
GPU = {"matchLabels": {"gpu": "yes"}}
OTHER = HubReservation("other", "x", {"fc430": 3})
OWN = HubReservation("team", "demo", {"fc430": 5})


def hub(name: str = "east", **fields: Any) -> Hub:
    known: dict[str, Any] = {"ready": True, "heartbeat": NOW, "templates": frozenset({"small"}), "region": "eu"}
    return Hub(name, **({"clusters": 10, "nodes": {"fc430": 10}} | known | fields))


def request(nodes: int = 5, tenant: Mapping[str, str] | None = None, **placement: Any) -> Request:
    sets = {"workers": NodeSet("fc430", nodes)}
    cluster = FleetCluster("team", "demo", "uid-1", "openfleet.clusters.small", sets, Placement(**placement))
    return Request(cluster, tenant or {}, NOW)


# For each filter: the hub, the request, and what the explanation says; none where the hub fits.
FILTER_CASES: list[tuple[str, str, Hub, Request, str]] = [
    ("_requested_hub", "other", hub(), request(hub="west"), "1 not the requested hub west"),
    ("_requested_hub", "same", hub(), request(hub="east"), ""),
    ("_schedulable", "cordoned", hub(schedulable=False), request(), "1 not schedulable"),
    ("_schedulable", "deleting", hub(is_deleting=True), request(), "1 not schedulable"),
    ("_ready", "not", hub(ready=False), request(), "1 not ready"),
    ("_heartbeat", "never", hub(heartbeat=None), request(), "1 never reported"),
    ("_heartbeat", "not-reporting", hub(heartbeat=NOW - timedelta(minutes=7)), request(), "1 not reporting since 2026-01-02 12:03"),
    ("_heartbeat", "late", hub(heartbeat=NOW - timedelta(minutes=3)), request(), ""),
    ("_template", "none", hub(templates=frozenset()), request(), "1 without the template small"),
    ("_tenant", "other", hub(tenant_selector={"matchLabels": {"tier": "gold"}}), request(), "1 not for this tenant"),
    ("_tenant", "own", hub(tenant_selector={"matchLabels": {"tier": "gold"}}), request(tenant={"tier": "gold"}), ""),
    ("_selector", "no-label", hub(), request(selector=GPU), "1 not matched by the selector"),
    ("_selector", "label", hub(labels={"gpu": "yes"}), request(selector=GPU), ""),
    ("_taints", "none-tolerated", hub(taints=(Taint("edge", "1"),)), request(), "1 with the taint edge=1"),
    ("_taints", "other-value", hub(taints=(Taint("edge", "1"),)), request(tolerations=(Taint("edge", "2"),)), "1 with the taint edge=1"),
    ("_taints", "value", hub(taints=(Taint("edge", "1"),)), request(tolerations=(Taint("edge", "1"),)), ""),
    ("_taints", "any-value", hub(taints=(Taint("edge", "1"),)), request(tolerations=(Taint("edge", None),)), ""),
    ("_region", "other", hub(), request(region="us"), "1 outside of the region us"),
    ("_region", "same", hub(), request(region="eu"), ""),
    ("_lacks_nodes", "none-of-class", hub(nodes={}), request(), "1 with too few fc430 (best 0 of 5)"),
    ("_lacks_nodes", "taken", hub(reservations={"a": OTHER, "b": OTHER}), request(), "1 with too few fc430 (best 4 of 5)"),
    ("_lacks_nodes", "lowered", hub(nodes={"fc430": 1}, reservations={"a": OTHER}), request(), "1 with too few fc430 (best 0 of 5)"),
    ("_lacks_nodes", "exactly", hub(nodes={"fc430": 5}), request(), ""),
    ("_lacks_nodes", "own-capacity", hub(nodes={"fc430": 5}, reservations={"uid-1": OWN}), request(), ""),
    ("_is_full", "full", hub(clusters=1, reservations={"a": OTHER}), request(), "1 full"),
    ("_is_full", "own-capacity", hub(clusters=1, reservations={"uid-1": OWN}), request(), ""),
]


@pytest.mark.parametrize("case", FILTER_CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_filter_names_the_reason(case: tuple[str, str, Hub, Request, str]) -> None:
    _filter, _name, candidate, wanted, reason = case
    choice = choose(wanted, [candidate])
    assert choice.hub == ("" if reason else "east")
    if reason:
        assert choice.explanation == f"0 of 1 hub fit: {reason}"


def test_each_filter_has_a_case() -> None:
    filters = {each.__name__ for each in FILTERS} | {"_lacks_nodes", "_is_full"}
    assert filters == {each[0] for each in FILTER_CASES if each[4]}


def test_shared_filter_results_change_no_choice() -> None:
    hubs = [replace(case[2], name=f"hub-{number}") for number, case in enumerate(FILTER_CASES)]
    requests = [replace(case[3], cluster=replace(case[3].cluster, namespace=f"team-{case[1]}")) for case in FILTER_CASES]
    shared = FilterResults()
    for wanted in requests * 2:
        assert choose(wanted, hubs, shared=shared) == choose(wanted, hubs)


def test_capacity_that_an_earlier_choice_took_is_not_shared() -> None:
    shared, free = FilterResults(), hub(clusters=1)
    assert choose(request(), [free], shared=shared).hub == "east"
    full = replace(free, reservations={"a": HubReservation("other", "x", {})})
    assert choose(request(), [full], shared=shared).explanation == "0 of 1 hub fit: 1 full"


TENANT = HubReservation("team", "other", {})
DEDICATED = {"matchLabels": {"tier": "gold"}}
# For each score: two hubs, the request, and the score of each, alone.
SCORE_CASES: list[tuple[str, Hub, Hub, Request, tuple[int, int]]] = [
    ("headroom", hub("a", nodes={"fc430": 20}), hub("b"), request(5), (75, 50)),
    ("headroom", hub("a", clusters=2), hub("b", clusters=1), request(0), (50, 0)),
    ("spread", hub("a", reservations={"1": OTHER, "2": TENANT}), hub("b", reservations={"3": OTHER}), request(0), (0, 100)),
    ("spread", hub("a", reservations={"1": TENANT}), hub("b", reservations={"2": TENANT, "3": TENANT}), request(0), (50, 0)),
    ("spread", hub("a"), hub("b"), request(0), (100, 100)),
    ("affinity", hub("a", tenant_selector=DEDICATED), hub("b"), request(0, {"tier": "gold"}), (100, 0)),
    ("affinity", hub("a", taints=(Taint("team", ""),)), hub("b"), request(0, tolerations=(Taint("team", None),)), (100, 0)),
    ("region", hub("a"), hub("b", region="us"), request(0, {"topology.kubernetes.io/region": "us"}), (0, 100)),
    ("region", hub("a"), hub("b", region=""), request(0), (0, 0)),
]


@pytest.mark.parametrize(("name", "first", "second", "wanted", "scores"), SCORE_CASES)
def test_score_compares_hubs_and_decides_alone(name: str, first: Hub, second: Hub, wanted: Request, scores: tuple[int, int]) -> None:
    alone = Weights(**{each: int(each == name) for each in SCORES})
    most = most_of_tenant(wanted, [first, second])
    assert tuple(score(wanted, each, most, alone) for each in (first, second)) == scores
    choice = choose(wanted, [first, second], alone)
    assert choice.scores == {"a": scores[0], "b": scores[1]}
    if scores[0] != scores[1]:
        assert choice.hub == ("a" if scores[0] > scores[1] else "b")


def test_each_score_has_a_case() -> None:
    assert {*SCORES} == {each[0] for each in SCORE_CASES}


def test_weights_decide_between_scores() -> None:
    tenant = {"topology.kubernetes.io/region": "us"}
    roomy, near = hub("roomy", nodes={"fc430": 100}), hub("near", region="us")
    assert choose(request(5, tenant), [roomy, near]).hub == "near"
    assert choose(request(5, tenant), [roomy, near], Weights(headroom=9, region=1)).hub == "roomy"


def test_ties_spread_clusters_and_are_the_same_for_each_process() -> None:
    hubs, wanted = [hub(name) for name in "abcd"], request(0)
    requests = [replace(wanted, cluster=replace(wanted.cluster, uid=f"uid-{number}")) for number in range(200)]
    chosen = [choose(each, hubs).hub for each in requests]
    assert all(chosen.count(name) > 25 for name in "abcd")
    assert chosen == [choose(each, hubs[::-1]).hub for each in requests]


def test_hub_with_capacity_for_the_cluster_comes_first() -> None:
    own = HubReservation("team", "demo", {"fc430": 5})
    first, second = hub("a", reservations={"uid-1": own}), hub("b", nodes={"fc430": 1000}, clusters=1000)
    assert choose(request(), [first, second]).hub == "a"
    assert lacks_capacity(request(5).cluster, first) is None
    assert lacks_capacity(request(11).cluster, first)


def test_explanation_counts_and_sorts_the_reasons() -> None:
    early, late = NOW - timedelta(minutes=20), NOW - timedelta(minutes=7)
    hubs = [
        hub("h1", nodes={"fc430": 2}),
        hub("h2", nodes={"fc430": 1}),
        hub("h3", nodes={}),
        hub("h4", schedulable=False),
        hub("h5", schedulable=False),
        hub("h6", heartbeat=early),
        hub("h7", heartbeat=late),
    ]
    reasons = "3 with too few fc430 (best 2 of 5), 2 not reporting since 2026-01-02 12:03, 2 not schedulable"
    assert choose(request(), hubs).explanation == f"0 of 7 hubs fit: {reasons}"
    assert choose(request(), [*hubs, hub("h8")]).explanation == f"h8 has the best score, 150; 1 of 8 hubs fit; the others: {reasons}"
    assert choose(request(), []).explanation == "0 of 0 hubs fit"


def test_choice_and_text_are_the_same_for_any_order_of_hubs_reservations_and_taints() -> None:
    chance = random.Random(20260102)  # noqa: S311 - the same cases each time
    for _fleet in range(60):
        hubs = [_random_hub(chance, f"hub-{number}") for number in range(chance.randrange(1, 9))]
        wanted = request(chance.randrange(6), {"tier": chance.choice(["gold", "tin"])}, tolerations=(Taint("a", None),))
        expected = choose(wanted, hubs)
        assert not expected.hub or expected.hub in {each.name for each in hubs}
        for _order in range(6):
            shuffled = [_shuffled(chance, each) for each in hubs]
            chance.shuffle(shuffled)
            assert choose(wanted, shuffled) == expected
        # A later moment changes nothing, unless a hub stops reporting by it.
        later = replace(wanted, now=NOW + timedelta(seconds=30))
        assert choose(later, hubs) == expected


def _random_hub(chance: random.Random, name: str) -> Hub:
    reservations = {f"{name}-{n}": HubReservation(chance.choice(["team", "other"]), "x", {"fc430": chance.randrange(3)}) for n in range(4)}
    return hub(
        name,
        clusters=chance.randrange(3, 8),
        nodes={"fc430": chance.randrange(12)},
        schedulable=chance.random() < 0.8,
        ready=chance.random() < 0.8,
        heartbeat=chance.choice([NOW, None, NOW - timedelta(minutes=chance.randrange(4, 60))]),
        taints=tuple(Taint(key) for key in chance.sample("abc", chance.randrange(3))),
        tenant_selector=chance.choice([{}, DEDICATED]),
        region=chance.choice(["eu", "us"]),
        reservations=reservations,
    )


def _shuffled(chance: random.Random, each: Hub) -> Hub:
    reservations, taints = list(each.reservations.items()), list(each.taints)
    chance.shuffle(reservations)
    chance.shuffle(taints)
    return replace(each, reservations=dict(reservations), taints=tuple(taints))
