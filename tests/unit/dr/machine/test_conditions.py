"""The conditions of a DRPlacementControl: Available by phase, their order, and those that only some have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.machine.step import step
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import ConditionState, Intent, Policy
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.ramen_api import Phase

from .. import samples
from ..samples import DEAD, in_progress, observed, secondary, settled, vrg


def shown(intent: Intent, policy: Policy | None = None, **state: str) -> dict[str, ConditionState]:
    return dict(step(intent, replace(settled(), **state), observed(vrg(), secondary()), policy or samples.policy()).conditions)


def test_available_is_true_where_the_workload_runs_and_its_reason_is_the_phase() -> None:
    expected = {
        Phase.DEPLOYED: "True",
        Phase.FAILED_OVER: "True",
        Phase.RELOCATED: "True",
        Phase.INITIATING: "False",
        Phase.DEPLOYING: "False",
        Phase.FAILING_OVER: "False",
        Phase.RELOCATING: "False",
        Phase.DELETING: "Unknown",
    }
    for phase, status in expected.items():
        available = shown(samples.intent(), phase=phase)["Available"]
        assert (available.status, available.reason) == (status, phase)


@pytest.mark.parametrize(
    ("stage", "reason"),
    [("Check", "Success"), ("Prepare", "NotStarted"), ("Promote", "NotStarted"), ("Clean", "Cleaning"), ("Release", "Cleaning")],
)
def test_peer_ready_follows_the_stages_of_a_failover(stage: str, reason: str) -> None:
    result = step(samples.intent("Failover", "west"), in_progress("Failover", stage), observed(DEAD, DEAD), samples.policy())
    ready = result.conditions["PeerReady"]
    assert (ready.status, ready.reason) == ("True" if reason == "Success" else "False", reason)


@pytest.mark.parametrize(
    ("intent", "policy"),
    [(samples.intent(network_mapping="addresses"), None), (samples.intent(), samples.policy(network_mapping="addresses"))],
    ids=["of the DRPlacementControl", "of the DRPolicy"],
)
def test_addresses_that_are_not_translated_are_reported(intent: Intent, policy: Policy | None) -> None:
    found = shown(intent, policy)
    assert list(found) == ["Available", "PeerReady", "Protected", "NetworkMappingLoaded", "Waiting"]
    condition = found["NetworkMappingLoaded"]
    assert (condition.status, condition.reason) == ("False", "NotSupported")
    assert "ConfigMap addresses is not used" in condition.message


def test_the_conditions_of_a_group_come_before_ours() -> None:
    assert list(shown(samples.intent(group="global-1"))) == ["Available", "PeerReady", "Protected", "GlobalAction", "Waiting"]
