"""Our status under another controller's CRD: what it accepts of it, and what is still known afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import osac as order_foreign
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.next_action import next_action
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.osac import RECORD, for_foreign_crd, restored
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.status import derive_status
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import (
    HEALTHY,
    Object,
    at,
    changed,
    hosted_cluster,
    node_pool,
    observed_from,
    observed_with,
    order,
    order_object,
    provisioned,
    stored,
)

GROUPS = ("cloudkit.openshift.io", "osac.openshift.io")
KNOWN_TO_THEM = {"phase", "conditions", "clusterReference", "nodeRequests"}
THEIR_PHASES = {"Progressing", "Failed", "Ready", "Deleting"}
THEIR_NODE_SETS = [{"name": "workers", "fabricInterface": "eth0"}]
UNREACHABLE = Failure("Unreachable", "no answer", "Apply")


def after_their_api_server(of: ClusterOrder, status: Object) -> ClusterOrder:
    """The order after our write under a CRD that drops what it does not know."""
    reduced = for_foreign_crd(status, of.raw.get("status", {}))
    assert reduced["phase"] in THEIR_PHASES
    assert not set(reduced) - KNOWN_TO_THEM - set(of.raw.get("status", {}))
    return stored(of, reduced)


def with_status(of: ClusterOrder, observed: ObservedState, minutes: float = 0, outcome: Outcome | None = None) -> ClusterOrder:
    return after_their_api_server(of, derive_status(of, observed, at(minutes), outcome))


def failed(of: ClusterOrder, failure: Failure) -> Outcome:
    return Outcome("provision", config_version(of), failure=failure)


def lifecycle() -> list[ClusterOrder]:
    new = order()
    ready = with_status(new, HEALTHY, 0, provisioned(new))
    huge = Failure("X", "\x01é" * 20_000, "\x02" * 2000)
    many = order(nodes={f"{number:03}" + "c" * 60: 10**9 for number in range(100)})
    return [
        with_status(new, ObservedState()),
        ready,
        with_status(ready, observed_with(node_pool(1))),
        with_status(new, ObservedState(), 0, failed(new, Failure("NoTask", "no location", retryable=False))),
        with_status(many, ObservedState(), 0, failed(many, huge)),
    ]


@pytest.mark.osac_crds
@pytest.mark.parametrize("group", GROUPS)
def test_their_schema_accepts_every_reduced_status(group: str, osac_crd: Callable[[str], Object]) -> None:
    schema = osac_crd(group)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    for item in lifecycle():
        jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(item.raw["status"])
        assert not set(item.raw["status"]) - set(schema["properties"])


def test_the_record_fits_a_conditions_message() -> None:
    for item in lifecycle():
        record = item.raw["status"]["conditions"][-1]
        assert record["type"] == RECORD
        assert len(record["message"]) <= 32768


def test_a_degraded_cluster_is_failed_for_them_and_still_degraded_for_us() -> None:
    new = order()
    lost = with_status(with_status(new, HEALTHY, 0, provisioned(new)), observed_with(node_pool(1)), 1)
    assert lost.raw["status"]["phase"] == "Failed"
    assert lost.phase == "Degraded"
    assert with_status(lost, HEALTHY, 2).phase == "Ready"


def test_a_phase_they_wrote_meanwhile_is_not_taken_for_ours() -> None:
    new = order()
    lost = with_status(with_status(new, HEALTHY, 0, provisioned(new)), observed_with(node_pool(1)), 1)
    theirs = stored(lost, lost.raw["status"] | {"phase": "Progressing"})
    assert theirs.phase == "Progressing"


def test_what_decides_the_next_action_survives() -> None:
    new = order()
    ready = with_status(new, HEALTHY, 0, provisioned(new))
    assert ready.is_applied
    assert next_action(ready, HEALTHY, at(1)) is None
    assert next_action(changed(ready, templateParameters="{}"), HEALTHY, at(1)) == "provision"
    broken = with_status(with_status(new, ObservedState(), 0, failed(new, UNREACHABLE)), ObservedState(), 1, failed(new, UNREACHABLE))
    assert broken.failure == Failure("Unreachable", "no answer", "Apply", True, 2, at(2))
    assert next_action(broken, ObservedState(), at(1.5)) is None
    assert next_action(broken, ObservedState(), at(2)) == "provision"
    assert changed(broken).failure is None


def test_defaults_of_the_template_survive() -> None:
    new = order(nodes={})
    ready = with_status(new, HEALTHY, 0, provisioned(new, node_requests=order().node_requests))
    assert ready.phase == "Ready"
    assert next_action(ready, observed_from(hosted_cluster()), at(1)) == "provision"


def test_a_second_observation_needs_no_write() -> None:
    *usual, huge = lifecycle()
    settled = with_status(huge, ObservedState(), 1)  # a failure's text that the record can't hold is cut in the conditions too, once
    for item, observed in zip(
        [*usual, settled], (ObservedState(), HEALTHY, observed_with(node_pool(1)), ObservedState(), ObservedState()), strict=True
    ):
        again = for_foreign_crd(derive_status(item, observed, at(60)), item.raw["status"])
        assert again == item.raw["status"]


def test_their_own_fields_and_conditions_stay() -> None:
    theirs: Object = {
        "apiEndpoint": "10.0.0.1",
        "nodeSets": THEIR_NODE_SETS,
        "conditions": [
            {"type": "Progressing", "status": "True", "reason": "X", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}
        ],
    }
    item = with_status(order(theirs, nodes={}), HEALTHY)
    assert item.raw["status"]["apiEndpoint"] == "10.0.0.1"
    assert item.raw["status"]["nodeSets"] == THEIR_NODE_SETS
    assert item.raw["status"]["conditions"][0] == theirs["conditions"][0]
    assert "nodeSets" not in item.status


@pytest.mark.parametrize("message", ["", "{", "[]", "null", '{"requested": 1}', '{"failure": {}}', '{"phase": "Deleting", "phase2": 1}'])
def test_a_record_edited_by_hand_breaks_nothing(message: str) -> None:
    record: dict[str, Any] = {
        "type": RECORD,
        "status": "True",
        "reason": "X",
        "message": message,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    item = ClusterOrder.from_object(order_object({"phase": "Progressing", "conditions": [record]}))
    assert item.phase == "Progressing"
    assert item.condition(RECORD) is None
    assert next_action(item, ObservedState(), at(0)) == "provision"
    derive_status(item, HEALTHY, at(0))


def test_a_status_without_a_record_is_taken_as_it_is() -> None:
    status = {"phase": "Ready", "configVersion": "x", "nodeSets": [{"resourceClass": "a", "requested": 1, "ready": 1}]}
    assert restored(status) == status


def test_the_record_goes_once_our_crd_is_installed() -> None:
    new = order()
    ready = with_status(new, HEALTHY, 0, provisioned(new))
    status = derive_status(ready, HEALTHY, at(1))
    assert RECORD not in {item["type"] for item in status["conditions"]}
    assert status["configVersion"] == config_version(new)


def test_beside_another_controller_its_fields_stay_and_ours_come_back() -> None:
    theirs = {"type": "Accepted", "status": "True", "reason": "Osac", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ours = theirs | {"status": "False", "reason": "InvalidOrder", "message": "no such class", "observedGeneration": 3}
    stored = {"phase": "Progressing", "conditions": [theirs], "clusterReference": {"namespace": "n"}}
    failure = {"reason": "InvalidOrder", "message": "no such class", "retryable": False, "attempts": 1}
    status = {
        "phase": "Failed",
        "conditions": [ours],
        "observedGeneration": 3,
        "failure": failure,
        "clusterReference": {"namespace": "other"},
    }
    written = order_foreign.beside_controller(status, stored)
    assert {name: written[name] for name in ("phase", "clusterReference")} == {
        "phase": "Progressing",
        "clusterReference": {"namespace": "n"},
    }
    assert written["conditions"][0] == theirs
    assert [item["type"] for item in written["conditions"]] == ["Accepted", "openfleet.clusters/Accepted", order_foreign.RECORD]
    back = order_foreign.restored(written)
    assert (back["phase"], back["conditions"], back["failure"]) == ("Failed", [ours], failure)
    assert order_foreign.is_beside_controller(written) and not order_foreign.is_beside_controller(stored)

    changed_by_them = written | {"phase": "Ready", "conditions": [theirs | {"reason": "Later"}, *written["conditions"][1:]]}
    again = order_foreign.restored(changed_by_them)
    assert again["conditions"] == [ours] and again["phase"] == "Failed"
    assert order_foreign.beside_controller(again, changed_by_them) == changed_by_them, "nothing to write"
