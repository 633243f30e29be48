"""What --check says of a request: the phases it would pass, its first actions, and what blocks it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.coordination.documents import WorkloadRef
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.model import Intent, Observations, Policy
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.reconcile import _Run, plan_steps, would_do
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.state import State

from . import samples
from .samples import DEAD, in_progress, observed, secondary, settled, vrg

FAILOVER, RELOCATE = samples.intent("Failover", "west"), samples.intent("Relocate", "west")
BEGUN, PREPARED = "Initiating/no progression", "FailingOver/CheckingFailoverPrerequisites"


@pytest.mark.parametrize(
    ("intent", "state", "observations", "policy", "passed", "actions", "obstacle"),
    [
        (
            FAILOVER,
            settled(),
            observed(DEAD, secondary()),
            samples.policy(),
            [BEGUN, PREPARED, "FailingOver/FailingOverToCluster"],
            ["place the workload on no cluster, retained on east"],
            "",
        ),
        (
            FAILOVER,
            settled(),
            observed(DEAD, secondary(state="Unknown")),
            samples.policy(),
            [BEGUN],
            [],
            "west cannot take over: its VolumeReplicationGroup reports no state Secondary",
        ),
        (FAILOVER, settled(), observed(vrg(), DEAD), samples.policy(), [BEGUN], [], "west (no route to host) does not answer"),
        (
            FAILOVER,
            settled(),
            observed(DEAD, secondary()),
            samples.policy(""),
            [BEGUN, PREPARED, "FailingOver/WaitForFencing"],
            [],
            "Set clusterFence of the DRCluster east to Fenced",
        ),
        (samples.intent("Failover", "north"), settled(), observed(vrg(), secondary()), samples.policy(), None, [], "not in the policy"),
        (RELOCATE, settled(), observed(DEAD, secondary()), samples.policy(), [BEGUN], [], "a relocation needs all clusters"),
        (
            RELOCATE,
            in_progress("Failover", "Demote", decision=samples.Decision("", "east")),
            observed(DEAD, secondary(), placed=samples.Placed("", "east")),
            samples.policy(),
            None,
            None,
            "Relocate to west is refused: a demotion was written",
        ),
    ],
    ids=["possible", "no data", "target dead", "not fenced", "no such cluster", "relocate from a dead cluster", "another in progress"],
)
def test_check_says_what_would_happen_and_what_stands_in_its_way(
    intent: Intent,
    state: State,
    observations: Observations,
    policy: Policy,
    passed: list[str] | None,
    actions: list[str] | None,
    obstacle: str,
) -> None:
    given = would_do(plan_steps(intent, state, observations, policy))
    assert passed is None or given[0] == passed
    assert actions is None or given[1] == actions
    assert obstacle in " ".join(given[2]) if obstacle else given[2] == []


@pytest.mark.parametrize(
    ("write", "state", "recent"), [(False, settled(), False), (True, settled(), True), (True, in_progress("Failover", "Check"), False)]
)
def test_plan_reads_the_fences_that_a_request_would_wait_for(write: bool, state: State, recent: bool) -> None:
    class Policies:
        def registered(self) -> list[str]:
            return []

        def policy(self, _drpc: object, _validate: object, **given: bool) -> Policy:
            read.append(given)
            return samples.policy("")

    read: list[dict[str, bool]] = []
    unused: Any = None
    policies: Any = Policies()
    _Run(unused, unused, unused, policies, WorkloadRef("shop", "db"), write).policy({}, state)
    assert read == [{"recent": recent}]
