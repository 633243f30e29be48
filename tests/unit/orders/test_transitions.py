"""The Events of a change of an order's status: one for each run, phase, failure and condition that is new, and none without a change."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.event_recorder import NORMAL, WARNING
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Failure
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome, PartReport
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.transitions import events_of

STARTED = Outcome("provision", "1", accepted=True)
FAILURE = {"reason": "TaskFailed", "message": "no such host", "task": "install", "attempts": 1}


def status(phase: str, *conditions: Object, **more: Any) -> Object:
    return {"phase": phase, "conditions": list(conditions), **more}


def condition(kind: str, value: str, reason: str, message: str = "") -> Object:
    return {"type": kind, "status": value, "reason": reason, "message": message}


NODES, NO_NODES = condition("NodesReady", "True", "AllNodesReady", "2 of 2"), condition("NodesReady", "False", "NodesMissing", "1 of 2")
ACCEPTED, REFUSED = condition("Accepted", "True", "Valid", "valid"), condition("Accepted", "False", "TaskFailed", "no such host")
RAN, AGAIN = (NORMAL, "RunStarted", "A run started provision"), (NORMAL, "Retry", "A run repeats provision after the failure TaskFailed")
FAILED = (WARNING, "TaskFailed", "install: no such host")


@pytest.mark.parametrize(
    ("before", "after", "outcome", "events"),
    [
        ({}, status("Progressing", NO_NODES), None, [(NORMAL, "Progressing", "The phase is Progressing")]),
        (status("Ready", NODES), status("Ready", NODES, job={"id": "2"}), None, []),
        (status("Progressing"), status("Progressing", ACCEPTED), STARTED, [RAN, (NORMAL, "Accepted", "valid")]),
        (status("Failed", failure=FAILURE), status("Failed", failure=FAILURE), STARTED, [AGAIN]),
        (status("Progressing"), status("Progressing", failure=FAILURE), Outcome("provision", "1", failure=Failure("x", "y")), [FAILED]),
        (status("Failed", failure=FAILURE), status("Failed", failure=FAILURE | {"attempts": 2}), None, [FAILED]),
        (status("Failed", failure=FAILURE), status("Failed", failure=FAILURE), None, []),
        (status("Ready"), status("Ready"), Outcome("provision", "1", infrastructure={"hosts": PartReport(False, "HostMissing")}), []),
        (status("Failed", ACCEPTED), status("Failed", REFUSED, failure=FAILURE), None, [FAILED]),
        (status("Progressing", NO_NODES), status("Progressing", NODES), None, [(NORMAL, "NodesReady", "2 of 2")]),
        (status("Progressing", NODES), status("Progressing", NO_NODES), None, [(NORMAL, "NodesMissing", "1 of 2")]),
        (
            status("Ready", NODES),
            status("Degraded", NO_NODES),
            None,
            [(WARNING, "Degraded", "The phase changed from Ready to Degraded"), (WARNING, "NodesMissing", "1 of 2")],
        ),
        (
            status("Ready"),
            status("Deleting", condition("Deleting", "True", "Requested")),
            None,
            [(NORMAL, "Deleting", "The phase changed from Ready to Deleting")],
        ),
    ],
)
def test_a_change_of_the_status_has_these_events(before: Object, after: Object, outcome: Outcome | None, events: list[Any]) -> None:
    assert [(event.type, event.reason, event.message) for event in events_of(before, after, outcome)] == events
