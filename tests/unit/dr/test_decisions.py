"""Changes of a placement decision."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.decisions import (
    cleared,
    from_content,
    placed,
    preferred_decision,
    retained,
    to_content,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import Decision

EAST, WEST = "east", "west"


@pytest.mark.parametrize(
    ("before", "change", "cluster", "after"),
    [
        (Decision(), placed, EAST, Decision(EAST)),
        (Decision(EAST), placed, EAST, Decision(EAST)),
        (Decision("", (EAST,)), placed, WEST, Decision(WEST, (EAST,))),
        (Decision("", (EAST,)), placed, EAST, Decision(EAST)),
        (Decision(EAST), retained, EAST, Decision("", (EAST,))),
        (Decision(WEST, (EAST,)), retained, EAST, Decision(WEST, (EAST,))),
        (Decision(WEST), retained, EAST, Decision(WEST, (EAST,))),
        (Decision(WEST, (EAST,)), cleared, EAST, Decision(WEST)),
        (Decision(EAST), cleared, EAST, Decision()),
        (Decision(EAST), cleared, WEST, Decision(EAST)),
    ],
)
def test_change(before: Decision, change: object, cluster: str, after: Decision) -> None:
    assert callable(change)
    assert change(before, cluster) == after
    assert change(after, cluster) == after


def test_decision_in_the_state_is_the_same_when_read() -> None:
    for decision in (Decision(), Decision(EAST), Decision(WEST, (EAST,))):
        assert from_content(to_content(decision)) == decision
    assert from_content({}) == Decision()


def test_status_shows_the_home_only() -> None:
    assert preferred_decision(Decision(WEST, (EAST,))) == {"clusterName": WEST, "clusterNamespace": WEST}
    assert preferred_decision(Decision("", (EAST,))) == {}
