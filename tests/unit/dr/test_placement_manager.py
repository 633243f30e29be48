"""Which cluster gets a workload first, and the reason for people."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Policy
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.placement_manager import choose_home

from . import samples
from .samples import DEAD, RUNNING, STOPPED, observed

POLICY = samples.policy()


def marked(name: str, **fields: bool) -> Policy:
    return replace(POLICY, members=tuple(replace(item, **fields) if item.name == name else item for item in POLICY.members))


NOTHING = {"east": STOPPED, "west": STOPPED}
BOTH = observed(None, None, workloads=NOTHING)


@pytest.mark.parametrize(
    ("given", "preferred", "policy", "observations", "cluster", "reason"),
    [
        ("a preferred cluster", "west", POLICY, BOTH, "west", "west is the preferred cluster"),
        ("one that is not in the policy", "north", POLICY, BOTH, "", "not in the policy policy, which has east, west"),
        ("one that is fenced", "west", marked("west", fencing=True), BOTH, "", "preferredCluster west is fenced"),
        ("one in deletion", "west", marked("west", deleting=True), BOTH, "", "preferredCluster west is being deleted"),
        ("one that is dead", "west", POLICY, observed(None, DEAD), "", "the workload and its data are on east"),
        (
            "one that is dead, no workload",
            "west",
            POLICY,
            observed(None, DEAD, workloads=NOTHING),
            "",
            "does not answer (no route to host)",
        ),
        ("one without the data", "west", POLICY, observed(None, None), "", "the workload and its data are on east"),
        ("none preferred: the first", "", POLICY, BOTH, "east", "east answers, is not fenced"),
        ("none preferred: the near one", "", POLICY, replace(BOTH, region="west"), "west", "is in the region west"),
        (
            "none preferred: the one with the workload",
            "",
            POLICY,
            replace(BOTH, region="east", workloads={"west": RUNNING}),
            "west",
            "has the workload",
        ),
        ("none preferred: the one not fenced", "", marked("east", fencing=True), BOTH, "west", "; east is fenced"),
        ("none preferred: the one that answers", "", POLICY, observed(DEAD, None, workloads=NOTHING), "west", "east does not answer"),
        (
            "none fits",
            "",
            marked("east", fencing=True),
            observed(None, DEAD, workloads=NOTHING),
            "",
            "No cluster of the policy policy fits: east is fenced; west does",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_home(given: str, preferred: str, policy: Policy, observations: object, cluster: str, reason: str) -> None:
    choice = choose_home(samples.intent(preferred=preferred), policy, observations)  # type: ignore[arg-type]
    assert choice.cluster == cluster, given
    assert reason in choice.reason
