"""The condition Protected: the first report that is missing or bad, in Ramen's order."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.context import Context
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.protected import protected

from .. import samples
from ..samples import ALL_TRUE, DEAD, condition, observed, settled, vrg


def without(*kinds: str) -> tuple[str, ...]:
    return tuple(kind for kind in ALL_TRUE if kind not in kinds)


def bad(kind: str, reason: str = "Progressing") -> dict[str, Any]:
    return {"true": without(kind), "conditions": [condition(kind, "False", reason=reason)]}


@pytest.mark.parametrize(
    ("given", "home", "reason", "named"),
    [
        ("everything is reported", vrg(), "Protected", "is protected"),
        ("the home is dead", DEAD, "Unknown", "does not answer"),
        ("hooks failed, and the rest is missing", vrg(true=(), conditions=[condition("HooksReady", "False")]), "Error", "HooksReady"),
        ("ClusterDataReady is missing", vrg(true=()), "Unknown", "ClusterDataReady"),
        ("DataReady is missing", vrg(true=("ClusterDataReady",)), "Unknown", "DataReady"),
        ("DataReady has an error", vrg(**bad("DataReady", "Error")), "Error", "DataReady"),
        ("DataProtected is False", vrg(**bad("DataProtected")), "Progressing", "DataProtected"),
        ("a primary is replicating", vrg(**bad("DataProtected", "Replicating")), "Protected", "is protected"),
        (
            "DestinationInfoAvailable is False",
            vrg(conditions=[condition("DestinationInfoAvailable", "False")]),
            "Progressing",
            "Destination",
        ),
        ("there is a conflict", vrg(**bad("NoClusterDataConflict", "ClusterDataConflictPrimary")), "Error", "NoClusterDataConflict"),
        ("the status is of an old generation", vrg(observed=0), "Unknown", "generation 0"),
        ("the state does not match", vrg(state="Secondary"), "Progressing", "Secondary"),
        ("no sync yet", vrg(lastGroupSyncTime=None), "Progressing", "first sync"),
        ("the upload failed", vrg(**bad("ClusterDataProtected", "UploadError")), "Error", "ClusterDataProtected"),
        ("the last one is missing", vrg(true=without("ClusterDataProtected")), "Unknown", "ClusterDataProtected"),
        (
            "a condition is of an old generation",
            vrg(generation=2, true=(), conditions=[condition("ClusterDataReady")]),
            "Unknown",
            "ClusterDataReady",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_that_is_not_met(given: str, home: Any, reason: str, named: str) -> None:
    found = protected(Context(samples.intent(), settled(), observed(home, None), samples.policy()))
    assert (found.reason, named in found.message) == (reason, True), (given, found)


def test_a_synchronous_workload_needs_no_sync_time() -> None:
    context = Context(samples.intent(), settled(), observed(vrg(lastGroupSyncTime=None), None), samples.policy(""))
    assert protected(context).status == "True"
