"""Statuses that another version of the collection wrote: an older one is brought up to date, a newer one is not harmed."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.next_action import next_action
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status import derive_status

from .order_samples import at, order
from .test_status import HEALTHY, ready_order

# What a run recorded, and what no later observation brings back. Without `configVersion` or the condition
# TemplateApplied the next run applies the spec again.
RECORDED = {"provider", "configVersion", "job", "conditions"}


def ready() -> Object:
    return ready_order().status


def observed_again(status: Object) -> Object:
    return derive_status(order(status), HEALTHY, at(0))


def test_a_ready_order_needs_nothing() -> None:
    assert ready()["phase"] == "Ready" and observed_again(ready()) == ready()


@pytest.mark.parametrize("field", sorted(set(ready()) - RECORDED))
def test_a_field_that_an_older_version_did_not_write_is_added(field: str) -> None:
    older = {name: value for name, value in ready().items() if name != field}
    brought, wanted = observed_again(older), ready()
    for status in (brought, wanted):
        for condition in status["conditions"]:
            condition.pop("lastTransitionTime")
    assert brought == wanted


@pytest.mark.parametrize("kind", [item["type"] for item in ready()["conditions"]])
def test_a_condition_that_an_older_version_did_not_have_is_added(kind: str) -> None:
    older = ready() | {"conditions": [item for item in ready()["conditions"] if item["type"] != kind]}
    assert sorted(item["type"] for item in observed_again(older)["conditions"]) == sorted(item["type"] for item in ready()["conditions"])


def test_what_a_newer_version_wrote_stays_and_starts_no_run() -> None:
    """So a downgrade does no harm, and two versions beside each other do not overwrite each other in turn."""
    condition = {"type": "Backup", "status": "Unknown", "reason": "New", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    newer = ready() | {"backup": {"at": "2026-01-01T00:00:00Z"}, "conditions": [condition, *ready()["conditions"]]}
    assert observed_again(newer) == newer
    assert next_action(order(newer), HEALTHY, at(0)) is None


@pytest.mark.parametrize("failure", [{}, {"reason": "Later", "since": "2026"}, {"reason": "Later", "attempts": 3, "retryable": True}])
def test_a_failure_in_another_form_is_read(failure: Object) -> None:
    failed: ClusterOrder = order(ready() | {"failure": failure})
    assert observed_again(failed.status)["phase"] in ("Ready", "Degraded", "Failed")
