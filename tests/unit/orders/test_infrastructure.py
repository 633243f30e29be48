"""Parts of the infrastructure that roles report: what the order shows, when the step runs again, and what a deletion waits for."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.infrastructure import parts_of, reports_from
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.next_action import action_reason, next_action
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.osac import for_foreign_crd, restored
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Action, Outcome, PartReport
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import (
    HEALTHY,
    START,
    at,
    deleted,
    message_of,
    observed_from,
    order,
    provisioned,
    state_of,
    stored,
    with_status,
)

HOSTS = PartReport(ready=True, reason="HostsBound")
NO_DNS = PartReport(ready=False, reason="RecordsNotVisible", message="api.demo.example.com does not resolve")
DNS = PartReport(ready=True, reason="RecordsVisible")
WAITS = PartReport(ready=False, reason="HostsLeaving", message="2 hosts have not left the cluster")


def step(of: ClusterOrder, action: Action = "post_install", minutes: float = 0, **parts: PartReport) -> ClusterOrder:
    report = Outcome(action, config_version(of), finished=True, template_applied=True, infrastructure=parts)
    return with_status(of, HEALTHY, at(minutes), report)


def installed(**parts: PartReport) -> ClusterOrder:
    new = order()
    return with_status(new, HEALTHY, START, provisioned(new, template_applied=False, infrastructure=parts))


def action(of: ClusterOrder, seconds: float = 0) -> str | None:
    return next_action(of, HEALTHY, at(seconds / 60))


def states(of: ClusterOrder) -> dict[str, bool]:
    return {part.name: part.report.ready for part in parts_of(of)}


def test_a_missing_part_keeps_the_order_from_ready_and_is_named() -> None:
    waiting = step(installed(hosts=HOSTS), dns=NO_DNS)
    assert states(waiting) == {"hosts": True, "dns": False} and waiting.phase == "Progressing"
    assert state_of(waiting.status, "InfrastructureReady") == ("False", "RecordsNotVisible")
    assert message_of(waiting.status, "InfrastructureReady") == "dns: api.demo.example.com does not resolve"
    assert state_of(waiting.status, "ClusterAvailable") == ("False", "InfrastructureNotReady")
    ready = step(waiting, dns=DNS)
    assert ready.phase == "Ready" and state_of(ready.status, "InfrastructureReady")[0] == "True"


def test_several_missing_parts_are_all_named() -> None:
    waiting = step(installed(hosts=WAITS), dns=NO_DNS)
    assert state_of(waiting.status, "InfrastructureReady") == ("False", "PartsNotReady")
    assert message_of(waiting.status, "InfrastructureReady") == f"dns: {NO_DNS.message}; hosts: {WAITS.message}"


def test_a_part_that_is_lost_degrades_a_ready_order() -> None:
    assert step(step(installed(), dns=DNS), dns=NO_DNS).phase == "Degraded"


def test_the_step_that_reported_it_runs_again_with_backoff() -> None:
    waiting = step(installed(), dns=NO_DNS)
    assert [action(waiting, seconds) for seconds in (0, 9, 10)] == [None, None, "post_install"]
    assert action_reason(waiting, HEALTHY.cluster, "post_install") == "InfrastructureNotReady"
    again = step(waiting, minutes=1, dns=NO_DNS)
    assert [action(again, 60 + seconds) for seconds in (19, 20)] == [None, "post_install"]
    for _attempt in range(20):
        again = step(again, minutes=1, dns=NO_DNS)
    assert [action(again, 60 + seconds) for seconds in (299, 300)] == [None, "post_install"]
    assert step(again, dns=DNS).status["infrastructure"] == [
        {"part": "dns", "step": "post_install", "ready": True, "reason": "RecordsVisible"}
    ]


def test_install_runs_again_before_post_install_which_needs_a_control_plane() -> None:
    waiting = step(installed(hosts=WAITS), dns=NO_DNS)
    assert action(waiting, 60) == "provision"
    no_plane = observed_from(None)
    assert next_action(step(installed(), dns=NO_DNS), no_plane, at(1)) == "provision", "the cluster is missing"


def test_what_a_complete_step_no_longer_reports_is_dropped_and_a_failed_step_drops_nothing() -> None:
    before = step(installed(hosts=HOSTS), dns=DNS, storage=DNS)
    assert states(step(before, dns=DNS)) == {"hosts": True, "dns": True}
    failed = Outcome("post_install", config_version(before), failure=Failure("TaskFailed", "broken"), infrastructure={"dns": NO_DNS})
    assert states(with_status(before, HEALTHY, START, failed)) == {"hosts": True, "dns": False, "storage": True}
    assert states(with_status(before, HEALTHY, START)) == states(before), "an observation changes no part"


def test_a_deletion_waits_for_its_own_parts_only() -> None:
    deleting = deleted(step(installed(hosts=WAITS), dns=NO_DNS))
    assert action(deleting) == "delete"
    assert states(with_status(deleting, HEALTHY, START)) == {}
    waiting = step(deleting, "delete", hosts=WAITS)
    assert states(waiting) == {"hosts": False}
    gone = observed_from(None)
    assert [next_action(waiting, gone, at(minutes)) for minutes in (0, 1)] == [None, "delete"]


def test_parts_survive_the_schema_of_another_controller() -> None:
    waiting = step(installed(hosts=HOSTS), dns=NO_DNS)
    kept = stored(waiting, for_foreign_crd(waiting.status, {}))
    assert parts_of(stored(kept, restored(kept.status))) == parts_of(waiting)


@pytest.mark.parametrize("part", ["ready", {}, {"ready": "yes", "reason": "Words"}, {"ready": True}, {"ready": True, "reason": ""}])
def test_a_report_of_another_form_names_the_part(part: Any) -> None:
    with pytest.raises(Invalid, match=r"cluster_infrastructure\.dns must have ready"):
        reports_from({"dns": part})


@pytest.mark.parametrize("junk", [{}, {"part": 3, "attempts": 0}, {"part": "dns", "step": "dance", "ready": "no", "nextAttempt": "soon"}])
def test_junk_in_a_status_is_read_as_a_part_that_is_due(junk: dict[str, Any]) -> None:
    ready = step(installed())
    assert action(stored(ready, ready.status | {"infrastructure": [junk]})) == "provision"
