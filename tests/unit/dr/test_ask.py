"""What a person asks for, as a change of a spec, and when it is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.ask import BadRequest, is_done, new_drpc, spec_change, with_change
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.copies import Ask, Asked
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Intent
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import TEST, Request, State

MOVED = State(phase="FailedOver", progression="Cleaning Up", home="west", last_action="Failover")


def drpc(**spec: Any) -> dict[str, Any]:
    given = {"drPolicyRef": {"name": "pair"}, "placementRef": {"name": "db"}, "pvcSelector": {}, "preferredCluster": "east"}
    return {"metadata": {"namespace": "shop", "name": "db"}, "spec": given | spec}


@pytest.mark.parametrize(
    ("request_", "before", "state", "options", "expected"),
    [
        ("failover", {}, State(), {"cluster": "west"}, {"action": "Failover", "failoverCluster": "west"}),
        ("failover", {"action": "Failover", "failoverCluster": "west"}, State(), {"cluster": "west"}, {}),
        ("failover", {"action": "Failover", "failoverCluster": "west", "dryRun": True}, State(), {"cluster": "west"}, {"dryRun": None}),
        ("relocate", {"action": "Failover"}, State(), {"cluster": "east"}, {"action": "Relocate"}),
        ("test_failover", {}, State(), {"cluster": "west"}, {"action": "Failover", "failoverCluster": "west", "dryRun": True}),
        ("end_test", {"action": "Failover", "dryRun": True}, State(), {}, {"action": None, "dryRun": None}),
        (
            "end_test",
            {"action": "Failover", "failoverCluster": "east", "dryRun": True},
            MOVED,
            {},
            {"failoverCluster": "west", "dryRun": None},
        ),
        ("protect", {}, State(), {"cluster": "east", "policy": "pair"}, {}),
        ("protect", {}, State(), {"cluster": "west"}, {"preferredCluster": "west"}),
    ],
)
def test_request_changes_only_what_differs(
    request_: str, before: dict[str, Any], state: State, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert spec_change(request_, drpc(**before), state, options) == expected


def test_protection_with_other_immutable_fields_is_refused() -> None:
    with pytest.raises(BadRequest, match="has another drPolicyRef and pvcSelector, which cannot be changed: unprotect it first"):
        spec_change("protect", drpc(), State(), {"policy": "other", "pvc_selector": {"matchLabels": {"app": "db"}}})
    with pytest.raises(BadRequest, match="set policy"):
        new_drpc("shop", "db", {})
    with pytest.raises(BadRequest, match="failover needs cluster"):
        spec_change("failover", drpc(), State(), {})


def test_plan_is_made_for_the_changed_spec() -> None:
    intent = Intent("shop", "db", "uid", 4, action="Failover", preferred="east", failover="west", dry_run=True)
    assert with_change(intent, {"action": None, "dryRun": None}) == replace(intent, generation=5, action="", dry_run=False)
    assert with_change(intent, {"dryRun": None}).failover == "west"


ASK = Ask("Failover", "east", "west")


@pytest.mark.parametrize(
    ("request_", "asked", "state", "expected"),
    [
        ("failover", ASK, MOVED, True),
        ("failover", Ask(), MOVED, False),  # not accepted yet
        ("failover", ASK, replace(MOVED, phase="FailingOver", home="east"), False),
        ("failover", ASK, replace(MOVED, home="east"), False),
        ("test_failover", ASK, replace(MOVED, progression="TestingFailover"), True),
        ("end_test", ASK, replace(MOVED, request=Request(TEST, "east", "Testing")), False),
        ("end_test", ASK, MOVED, True),
        ("protect", ASK, replace(MOVED, phase="Deploying"), False),
    ],
)
def test_request_is_done_when_the_workload_runs_where_it_was_asked_for(request_: str, asked: Ask, state: State, expected: bool) -> None:
    assert is_done(request_, ASK, Asked(1, "east", asked), state) is expected
