"""The requests of a user as changes of a spec, and when they are done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.copies import AcceptedRequest, ObservedCopy, RequestSpec
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.drpc_requests import (
    BadRequest,
    check_effect,
    is_done,
    new_drpc,
    spec_change,
    unread,
    with_change,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Intent
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.readers import read_intent
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


FAILED_OVER, RELOCATED = RequestSpec("Failover", "east", "west"), RequestSpec("Relocate", "east")
NUMBER_3 = AcceptedRequest(
    3,
    "east",
    RELOCATED,
    observed_copies={"east": ObservedCopy("uid-east", 2, 3, RELOCATED), "west": ObservedCopy("uid-west", 2, 3, FAILED_OVER)},
)
ON_WEST = {"action": "Failover", "failoverCluster": "west"}


def on_west(generation: int = 2, **spec: Any) -> dict[str, Any]:
    found = drpc(**spec)
    return found | {"metadata": found["metadata"] | {"uid": "uid-west", "generation": generation}}


def test_request_that_a_superseded_copy_shows_already_fails_and_says_what_to_do() -> None:
    with pytest.raises(BadRequest) as error:
        check_effect("failover", on_west(**ON_WEST), {}, NUMBER_3, MOVED)
    assert str(error.value) == (
        "The request was not made: the DRPlacementControl of this cluster shows Failover to west already, but request 3, Relocate to east,"
        " was accepted from east since. Run this on east. If east is lost: set this copy to the request in effect by kubectl patch"
        ' drplacementcontrol db -n shop --type merge -p \'{"spec":{"action":"Relocate","preferredCluster":"east","failoverCluster":null,'
        '"dryRun":null}}\', wait until its condition RequestAccepted is True, and run this again.'
    )
    testing = replace(NUMBER_3, spec=RequestSpec("Failover", "east", "west", dry_run=True))
    with pytest.raises(
        BadRequest, match=r"shows no action .* request 3, test Failover to west, was accepted from east since. Run this on east"
    ):
        check_effect("end_test", on_west(), {}, testing, MOVED)
    with pytest.raises(BadRequest, match=r"accepted from west since. Do this: set"):
        check_effect("failover", on_west(**ON_WEST), {}, replace(NUMBER_3, cluster="west"), MOVED)


@pytest.mark.parametrize(
    ("request_", "copy", "change", "accepted"),
    [
        ("failover", on_west(), ON_WEST, NUMBER_3),  # a change
        ("failover", on_west(**ON_WEST), {}, replace(NUMBER_3, spec=FAILED_OVER)),  # in effect
        ("failover", on_west(3, action="Failover", failoverCluster="east"), {}, NUMBER_3),  # the leader will read it
        ("failover", on_west(**ON_WEST), {}, AcceptedRequest()),  # no leader has begun
        ("protect", on_west(**ON_WEST), {}, NUMBER_3),  # the protection is there
    ],
)
def test_request_that_is_or_will_be_in_effect_can_be_repeated(
    request_: str, copy: dict[str, Any], change: dict[str, Any], accepted: AcceptedRequest
) -> None:
    check_effect(request_, copy, change, accepted, MOVED)


def test_failover_that_a_disputed_copy_shows_already_is_requested_by_a_change() -> None:
    copies = {"east": ObservedCopy("uid-east", 2, 1, RELOCATED), "west": ObservedCopy("uid-west", 2, 1, FAILED_OVER)}
    disputed = AcceptedRequest(1, "west", FAILED_OVER, observed_copies=copies)
    check_effect("failover", on_west(**ON_WEST), {}, disputed, MOVED)
    message = r"\(east Relocate to east, west Failover to west\): .* Remove the action .*'{\"spec\":{\"action\":null}}', wait"
    with pytest.raises(BadRequest, match=message):
        check_effect("failover", on_west(**ON_WEST), {}, disputed, State(progression="Paused"))


def test_plan_is_made_for_the_changed_spec() -> None:
    intent = Intent("shop", "db", "uid", 4, action="Failover", preferred="east", failover="west", dry_run=True)
    assert with_change(intent, intent, {"action": None, "dryRun": None}) == replace(intent, generation=5, action="", dry_run=False)
    assert with_change(intent, intent, {"dryRun": None}).failover == "west"


def test_plan_is_made_for_what_the_changed_copy_shows_and_not_for_the_request_in_effect() -> None:
    copy = read_intent(on_west(**ON_WEST))
    in_effect = replace(NUMBER_3.apply_to(copy), disputed=True)
    change = spec_change("test_failover", on_west(**ON_WEST), MOVED, {"cluster": "west"})
    planned = with_change(in_effect, copy, change)
    assert change == {"dryRun": True}
    assert (planned.action, planned.target, planned.dry_run) == ("Failover", "west", True)
    assert planned.generation > in_effect.generation and not planned.disputed
    assert with_change(in_effect, copy, {}) == in_effect, "without a change the copy requests nothing"


def test_change_of_a_copy_that_no_leader_has_read_under_the_request_in_effect_is_an_obstacle() -> None:
    copy = read_intent(on_west(**ON_WEST))
    assert not unread(NUMBER_3, copy) and not unread(AcceptedRequest(), copy)
    before = replace(NUMBER_3, observed_copies=NUMBER_3.observed_copies | {"west": ObservedCopy("uid-west", 2, 2, FAILED_OVER)})
    assert "under request 3, Relocate to east: a change that it reads first is ignored" in unread(before, copy)[0]


ASK = RequestSpec("Failover", "east", "west")


@pytest.mark.parametrize(
    ("request_", "effective", "state", "expected"),
    [
        ("failover", ASK, MOVED, True),
        ("failover", RequestSpec(), MOVED, False),  # not accepted yet
        ("failover", ASK, replace(MOVED, phase="FailingOver", home="east"), False),
        ("failover", ASK, replace(MOVED, home="east"), False),
        ("test_failover", ASK, replace(MOVED, progression="TestingFailover"), True),
        ("end_test", ASK, replace(MOVED, request=Request(TEST, "east", "Testing")), False),
        ("end_test", ASK, MOVED, True),
        ("protect", ASK, replace(MOVED, phase="Deploying"), False),
    ],
)
def test_request_is_done_when_the_workload_runs_where_it_was_asked_for(
    request_: str, effective: RequestSpec, state: State, expected: bool
) -> None:
    assert is_done(request_, ASK, AcceptedRequest(1, "east", effective), state) is expected
