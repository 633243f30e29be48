"""Clusters that wait: which of them a change requeues, and that one during a reconcile is not lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.waiting import GROWTH, HUB, QUOTA, Wait, Waiting
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key

DEMO, OTHER = Key("team", "demo"), Key("others", "demo")
WAITS = [Wait(QUOTA), Wait(HUB), Wait(GROWTH, "east")]
CHANGES: list[tuple[str, Callable[[Waiting], set[Key]], list[Wait]]] = [
    ("quota", lambda waiting: waiting.quota_freed("team"), [Wait(QUOTA)]),
    ("quota of another tenant", lambda waiting: waiting.quota_freed("others"), []),
    ("hub", lambda waiting: waiting.hub_may_fit("east", {DEMO}), [Wait(HUB), Wait(GROWTH, "east")]),
    ("other hub", lambda waiting: waiting.hub_may_fit("west", set()), [Wait(HUB)]),
    ("labels of the tenant", lambda waiting: waiting.tenant_changed("team"), [Wait(HUB)]),
    ("labels of another tenant", lambda waiting: waiting.tenant_changed("others"), []),
]


@pytest.mark.parametrize("wait", WAITS, ids=str)
@pytest.mark.parametrize(("change", "helped"), [each[1:] for each in CHANGES], ids=[each[0] for each in CHANGES])
def test_change_requeues_those_that_wait_for_it_before_and_during_a_reconcile(
    change: Callable[[Waiting], set[Key]], helped: list[Wait], wait: Wait
) -> None:
    waiting = Waiting()
    observed = waiting.moment()
    assert not change(waiting), "it does not wait yet"
    assert waiting.note(DEMO, wait, observed) is (wait in helped)
    assert waiting.note(DEMO, wait, waiting.moment()) is False, "it was observed after the change"
    assert change(waiting) == ({DEMO} if wait in helped else set())


def test_cluster_waits_for_one_thing_at_a_time_until_it_is_forgotten() -> None:
    waiting = Waiting()
    for wait in WAITS:
        waiting.note(DEMO, wait, 0)
        waiting.note(OTHER, wait, 0)
        assert waiting.counts() == {QUOTA: 0, HUB: 0, GROWTH: 0} | {wait.reason: 2}
    waiting.note(DEMO, None, 0)
    assert list(waiting) == [OTHER]
    waiting.forget(OTHER)
    assert list(waiting) == []
