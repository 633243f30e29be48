"""Which hosts a cluster gets, keeps and releases: a table of cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.host_choice import (
    Host,
    HostShortage,
    Plan,
    UnknownClass,
    plan,
)

HOSTS = {name: Host(name, frozenset(["small"]), domain) for name, domain in {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}.items()}


def hosts(changes: Mapping[str, Mapping[str, Any]] | None = None, more: Iterable[Host] = ()) -> dict[str, Host]:
    changed = {name: replace(host, **(changes or {}).get(name, {})) for name, host in HOSTS.items()}
    return changed | {host.name: host for host in more}


DIRTY, USED, BROKEN = {"is_clean": False}, {"in_use": True, "is_free": False}, {"problem": "is not connected"}


@pytest.mark.parametrize(
    ("wanted", "claimed", "changes", "others", "expected"),
    [
        pytest.param(2, (), {}, (), ("a1", "b1"), id="spread-over-failure-domains-from-the-emptiest"),
        pytest.param(3, (), {}, (), ("a1", "b1", "c1"), id="all-domains-before-a-second-host-of-one"),
        pytest.param(4, (), {}, (), ("a1", "b1", "c1", "a2"), id="the-last-host-too"),
        pytest.param(2, ("a1",), {}, (), ("a1", "b1"), id="those-that-it-has-count"),
        pytest.param(2, ("b1",), {}, (), ("b1", "a1"), id="it-keeps-those-that-it-has"),
        pytest.param(1, (), {"a1": DIRTY}, (), ("a2",), id="clean-before-dirty"),
        pytest.param(2, (), {"b1": DIRTY, "c1": DIRTY}, (), ("a1", "a2"), id="clean-before-spread"),
        pytest.param(3, (), {"b1": DIRTY, "c1": DIRTY}, (), ("a1", "a2", "b1"), id="dirty-where-nothing-else-is-left"),
        pytest.param(2, (), {}, ("a1", "b1"), ("a2", "c1"), id="none-that-another-cluster-has"),
        pytest.param(2, (), {"a1": USED, "b1": USED}, (), ("a2", "c1"), id="none-that-is-in-use"),
        pytest.param(2, ("a1", "b1"), {"a1": USED, "b1": BROKEN}, (), ("a1", "b1"), id="a-host-with-a-problem-stays-claimed"),
    ],
)
def test_chosen_hosts(
    wanted: int, claimed: tuple[str, ...], changes: Mapping[str, Mapping[str, Any]], others: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert plan({"small": wanted}, {"small": claimed}, hosts(changes), [{"small": others}]) == Plan({"small": expected})


@pytest.mark.parametrize(
    ("wanted", "changes", "kept", "released", "leaving"),
    [
        pytest.param(1, {"a1": USED, "b1": USED}, ("a1", "b1"), (), 1, id="none-is-released-while-all-are-in-use"),
        pytest.param(1, {"a1": USED}, ("a1",), ("b1",), 0, id="the-one-that-the-cluster-gave-up"),
        pytest.param(1, {"b1": USED}, ("b1",), ("a1",), 0, id="whichever-that-is"),
        pytest.param(0, {"b1": USED}, ("b1",), ("a1",), 1, id="a-class-that-is-no-longer-wanted"),
        pytest.param(1, {"b1": BROKEN}, ("a1",), ("b1",), 0, id="one-with-a-problem-first"),
        pytest.param(2, {}, ("a1", "b1"), (), 0, id="none-that-is-needed-though-not-in-use"),
    ],
)
def test_released_hosts(
    wanted: int, changes: Mapping[str, Mapping[str, Any]], kept: tuple[str, ...], released: tuple[str, ...], leaving: int
) -> None:
    planned = plan({"small": wanted} if wanted else {}, {"small": ("a1", "b1")}, hosts(changes))
    assert planned.hosts == {"small": kept}
    assert planned.released == ({"small": released} if released else {})
    assert planned.leaving == ({"small": leaving} if leaving else {})
    assert planned.recorded == {"small": (*kept, *released)}, "recorded until it is released"


def test_a_host_that_is_gone_is_replaced() -> None:
    assert plan({"small": 2}, {"small": ("a1", "x9")}, hosts()) == Plan({"small": ("a1", "b1")}, gone=("x9",))


@pytest.mark.parametrize(
    ("wanted", "missing", "said"),
    [
        ({"small": 6}, {"small": 2}, "2 of 6 hosts of the class small are missing"),
        (
            {"large": 2, "small": 5},
            {"large": 1, "small": 1},
            "1 of 2 hosts of the class large, 1 of 5 hosts of the class small are missing",
        ),
        ({"small": 1, "large": 3}, {"large": 2}, "2 of 3 hosts of the class large are missing"),
    ],
)
def test_a_shortage_says_how_many_are_missing_of_which_class(wanted: dict[str, int], missing: dict[str, int], said: str) -> None:
    with pytest.raises(HostShortage, match=said) as raised:
        plan(wanted, {}, hosts(more=[Host("big", frozenset(["large"]))]))
    assert raised.value.missing == missing and raised.value.retryable


def test_a_class_without_hosts_is_no_shortage() -> None:
    with pytest.raises(UnknownClass, match="no bare-metal hosts of the class huge"):
        plan({"small": 1, "huge": 1}, {}, hosts())
    with pytest.raises(HostShortage):
        plan({"large": 1}, {}, hosts(), [{"large": ("of-another",)}])


def test_of_classes_that_share_hosts_the_one_with_the_fewest_chooses_first() -> None:
    any_of_both = Host("z9", frozenset(["small", "large"]))
    planned = plan({"small": 4, "large": 1}, {}, hosts(more=[any_of_both]))
    assert planned.hosts["large"] == ("z9",) and len(planned.hosts["small"]) == 4
