"""The timeline of `make demo-dr` and the times of the benchmark, from histories as a leader writes them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.dr_timeline import Mark, leaders, steps, table, until_stage

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def entry(second: float, stage: str = "", *gates: str) -> dict[str, Any]:
    request = {"kind": "Failover", "target": "west", "stage": stage} if stage else None
    intent = {"request": request, "phase": "FailingOver", "waiting": [[gate, "2026-01-01T00:00:00Z"] for gate in gates]}
    at = (BEGIN + datetime.timedelta(seconds=second)).isoformat(timespec="milliseconds")
    return {"epoch": 1, "leader": "east-1f", "intent": intent, "written_at": at}


HISTORY = [
    entry(0),
    entry(1, "Check"),
    entry(1.5, "Promote"),
    entry(2, "Promote", "Restored"),
    *(
        item | {"epoch": 2, "leader": "west-2e"}
        for item in (
            entry(4, "Promote", "Restored", "Other"),
            entry(5, "Promote"),
            entry(5.25, "Clean", "PeersAnswer"),
            entry(9),
            entry(20),
        )
    ),
]


def test_closed_gates_are_waits_and_the_rest_of_a_stage_is_own_time() -> None:
    check, promote, clean = steps(HISTORY)
    assert (check.stage, check.seconds, check.waits) == ("Check", 0.5, {})
    assert (promote.seconds, promote.waits, promote.own_seconds) == (3.75, {"Restored": 3.0}, 0.75)
    assert (clean.seconds, clean.own_seconds) == (3.75, 0.0), "time without a request is in no stage"


def test_stages_before_another_are_those_until_the_workload_is_started() -> None:
    assert [step.stage for step in until_stage(steps(HISTORY), "Failover to west", "Clean")] == ["Check", "Promote"]
    with pytest.raises(ValueError, match="Nowhere"):
        until_stage(steps(HISTORY), "Failover to west", "Nowhere")


def test_table_has_leaders_and_marks_between_the_stages_in_order() -> None:
    assert [mark.what for mark in leaders(HISTORY)] == [
        "east leads under epoch 1",
        "west leads under epoch 2: the lease of east has ended",
    ]
    lines = table(HISTORY, [Mark(BEGIN + datetime.timedelta(seconds=0.5), "failover is requested")])
    assert [" ".join(line.split()) for line in lines] == [
        "at took step gate",
        "0.0 s east leads under epoch 1",
        "0.5 s failover is requested",
        "1.0 s 0.5 s Failover to west: Check -",
        "1.5 s 3.8 s Failover to west: Promote Restored 3.0 s",
        "4.0 s west leads under epoch 2: the lease of east has ended",
        "5.2 s 3.8 s Failover to west: Clean PeersAnswer 3.8 s",
    ]
    assert table([], []) == ["      at      took  step  gate"]
