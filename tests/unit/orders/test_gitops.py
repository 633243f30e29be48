"""The conditions of GitOps on an order: who reports them, when they change the phase, and when they are dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.gitops import used_by
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.infrastructure import reports_from
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.next_action import next_action
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome, PartReport
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ConditionState
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import (
    HEALTHY,
    at,
    deleted,
    message_of,
    order,
    provisioned,
    scaled,
    state_of,
    with_status,
)

INSTALLED, SOURCE = ConditionState("True", "ControllersAvailable", "source-controller"), ConditionState("True", "Succeeded", "stored")
BROKEN = ConditionState("False", "AuthFailed", "GitRepository flux-system: no access")
WORKING = ConditionState("Unknown", "Progressing", "GitRepository flux-system: working")
APPLIED = PartReport(True, "Applied")


def states(source: ConditionState = SOURCE) -> dict[str, ConditionState]:
    return {"GitOpsInstalled": INSTALLED, "GitOpsSourceReady": source}


def step(of: ClusterOrder, source: ConditionState = SOURCE, minutes: float = 1, **changes: Any) -> ClusterOrder:
    """The order after a post_install that reported this."""
    part = {"gitops": replace(APPLIED, conditions=states(source))}
    report = Outcome("post_install", config_version(of), **({"finished": True, "template_applied": True, "infrastructure": part} | changes))
    return with_status(of, HEALTHY, at(minutes), report)


def installed() -> ClusterOrder:
    return with_status(order(), HEALTHY, at(0), provisioned(order(), template_applied=False))


def seen(**gitops: ConditionState) -> ObservedState:
    """A healthy cluster with what the engine observed inside of it."""
    return replace(HEALTHY, gitops=gitops)


def test_an_order_without_gitops_has_no_condition_of_it() -> None:
    assert used_by(installed()) == ()
    assert used_by(with_status(installed(), seen(GitOpsInstalled=INSTALLED), at(1))) == ()


def test_the_run_says_which_conditions_there_are_and_all_of_them_make_it_ready() -> None:
    made = step(installed())
    assert used_by(made) == ("GitOpsInstalled", "GitOpsSourceReady") and made.phase == "Ready"
    assert state_of(made.status, "GitOpsSourceReady") == ("True", "Succeeded")


@pytest.mark.parametrize(("source", "available", "phase"), [(BROKEN, "False", "Degraded"), (WORKING, "Unknown", "Progressing")])
def test_an_order_is_not_ready_before_flux_is_and_no_job_runs_for_it(source: ConditionState, available: str, phase: str) -> None:
    waiting = step(installed(), source)
    assert waiting.phase == phase
    assert state_of(waiting.status, "ClusterAvailable") == (available, "GitOpsNotReady")
    assert source.message in message_of(waiting.status, "ClusterAvailable")
    assert state_of(waiting.status, "InfrastructureReady")[0] == "True"
    assert next_action(waiting, HEALTHY, at(60)) is None
    ready = with_status(waiting, seen(**states()), at(2))
    assert ready.phase == "Ready" and state_of(ready.status, "ClusterAvailable")[0] == "True"


def test_a_step_that_has_to_be_continued_runs_again() -> None:
    part = {"gitops": PartReport(False, "NotReadyYet", "no kubeconfig", states(WORKING))}
    waiting = step(installed(), infrastructure=part)
    assert next_action(waiting, HEALTHY, at(60)) == "post_install"


def test_a_commit_that_breaks_degrades_and_the_next_one_repairs() -> None:
    ready = step(installed())
    degraded = with_status(ready, seen(**states(BROKEN)), at(2))
    assert degraded.phase == "Degraded" and message_of(degraded.status, "GitOpsSourceReady") == BROKEN.message
    assert with_status(degraded, seen(**states()), at(3)).phase == "Ready"


def test_what_fails_before_it_is_missing_is_applied_again_no_sooner() -> None:
    missing = ConditionState("False", "Missing", "GitRepository flux-system: it does not exist")
    broken = with_status(step(installed()), seen(**states(BROKEN)), at(2))
    deleted_then = with_status(broken, seen(**states(missing)), at(10))
    still = with_status(deleted_then, seen(**states(missing)), at(12))
    assert [next_action(still, HEALTHY, at(minutes)) for minutes in (12, 14.9, 15)] == [None, None, "post_install"]
    # The run finds it failing once more, and it is deleted at once.
    again = with_status(step(still, BROKEN, 15), seen(**states(missing)), at(16))
    assert [next_action(again, HEALTHY, at(minutes)) for minutes in (16, 20.9, 21)] == [None, None, "post_install"]


def test_what_is_missing_again_when_a_run_ends_is_applied_again_no_sooner() -> None:
    missing = ConditionState("False", "Missing", "GitRepository flux-system: it does not exist")
    once = with_status(step(installed()), seen(**states(missing)), at(2))
    assert next_action(once, HEALTHY, at(7)) == "post_install"
    # It is deleted before the run observes it.
    again = with_status(step(once, missing, 8), seen(**states(missing)), at(9))
    assert [next_action(again, HEALTHY, at(minutes)) for minutes in (9, 12.9, 13)] == [None, None, "post_install"]


def test_what_flux_works_on_changes_no_phase() -> None:
    ready = step(installed())
    working = with_status(ready, seen(**states(WORKING)), at(2))
    assert working.phase == "Ready" and state_of(working.status, "GitOpsSourceReady")[0] == "Unknown"
    degraded = with_status(ready, seen(**states(BROKEN)), at(2))
    assert with_status(degraded, seen(**states(WORKING)), at(3)).phase == "Degraded"


def test_conditions_stay_while_nothing_is_observed() -> None:
    broken = with_status(step(installed()), seen(**states(BROKEN)), at(2))
    again = with_status(broken, HEALTHY, at(9))
    assert again.status == broken.status
    failed = Outcome("post_install", config_version(broken), failure=Failure("TaskFailed", "no"))
    assert state_of(with_status(broken, HEALTHY, at(9), failed).status, "GitOpsSourceReady") == ("False", "AuthFailed")
    assert used_by(with_status(deleted(broken), HEALTHY, at(9))) == used_by(broken)
    assert used_by(with_status(scaled(broken, large=4), HEALTHY, at(9))) == used_by(broken)


def test_conditions_are_dropped_with_what_they_were_about() -> None:
    ready = step(installed())
    less = step(ready, infrastructure={"gitops": replace(APPLIED, conditions={"GitOpsInstalled": INSTALLED})})
    assert used_by(less) == ("GitOpsInstalled",)
    assert used_by(step(less, infrastructure={})) == ()


@pytest.mark.parametrize(
    "conditions",
    ["x", {"Ready": {"status": "True", "reason": "A"}}, {"GitOpsSynced": {"status": "yes", "reason": "A"}}, {"GitOpsSynced": "True"}],
)
def test_a_role_that_reports_anything_else_is_refused(conditions: Any) -> None:
    with pytest.raises(Invalid, match=r"cluster_infrastructure\.gitops\.conditions"):
        reports_from({"gitops": {"ready": True, "reason": "Applied", "conditions": conditions}})
