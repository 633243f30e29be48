"""Our status under another controller's CRD: what it accepts of it, and what is still known afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonpatch
import jsonschema
import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import osac as order_foreign
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, Names, config_version
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
    condition,
    hosted_cluster,
    message_of,
    node_pool,
    observed_from,
    observed_with,
    order,
    order_object,
    provisioned,
    ready_order,
    scaled,
    state_of,
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


def test_nodes_that_the_provider_cannot_count_survive() -> None:
    status = ready_order().status
    uncounted = status | {"nodeSets": [{"resourceClass": "large", "requested": 3}], "version": {"running": "4.17.0"}}
    kept = restored(for_foreign_crd(uncounted, {}))
    assert (kept["nodeSets"], kept["version"]) == (uncounted["nodeSets"], uncounted["version"])


def test_nodes_that_an_earlier_version_recorded_are_read() -> None:
    record = {"type": RECORD, "status": "True", "message": '{"requested": {"large": 3}}'}
    assert restored({"conditions": [record]})["nodeSets"] == [{"resourceClass": "large", "requested": 3, "ready": 0}]


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


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{",
        "[]",
        "null",
        '{"nodes": 1}',
        '{"nodes": {"a": 1}}',
        '{"nodes": {"a": ["1", 1]}}',
        '{"failure": {}}',
        '{"phase": "Deleting"}',
    ],
)
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


# With another controller

BESIDE = Names(external_controller=True)
THEIR_CONDITIONS = [
    condition("Accepted", "True", "Osac"),
    condition("Progressing", "True", "Osac"),
    condition("ControlPlaneAvailable", "False", "Osac"),
]
THEIRS: Object = {"phase": "Progressing", "conditions": THEIR_CONDITIONS}


def beside(of: ClusterOrder, observed: ObservedState, minutes: float = 0, outcome: Outcome | None = None) -> ClusterOrder:
    """The order after our write with another controller."""
    status = derive_status(of, observed, at(minutes), outcome)
    return stored(of, order_foreign.beside_controller(status, of.raw.get("status", {})))


def new_beside(status: Object | None = None, **options: Any) -> ClusterOrder:
    return ClusterOrder.from_object(order_object(status or THEIRS, **options), BESIDE)


def test_nothing_that_another_controller_wrote_first_is_taken_for_ours() -> None:
    new = new_beside(THEIRS | {"clusterReference": {"namespace": "cluster-demo-x"}, "nodeRequests": []})
    assert new.status == {"clusterReference": {"namespace": "cluster-demo-x"}}
    assert new.working_namespace == "cluster-demo-x"
    types = [item["type"] for item in beside(new, HEALTHY).raw["status"]["conditions"]]
    assert types[:3] == ["Accepted", "Progressing", "ControlPlaneAvailable"]
    assert "openfleet.clusters/Progressing" not in types
    assert state_of(derive_status(new, ObservedState(), at(0)), "Accepted") == ("Unknown", "NotChecked")


def test_a_copy_of_the_other_controllers_condition_is_removed() -> None:
    written = beside(new_beside(), HEALTHY)
    copy = condition("openfleet.clusters/Progressing", "True", "Osac")
    status = written.raw["status"]
    copied = stored(written, status | {"conditions": [*status["conditions"], copy]})
    again = beside(copied, HEALTHY)
    assert again.raw["status"] == status
    assert order_foreign.conditions_patch(copied.raw, again.raw["status"]) is None, "that needs a write of the whole list"


def test_a_status_of_ours_from_before_the_other_controller_came_still_counts() -> None:
    alone = stored(order(), derive_status(order(), HEALTHY, at(0), provisioned(order())))
    assert ClusterOrder.from_object(alone.raw, BESIDE).phase == "Ready"


def test_ready_nodes_and_addresses_are_known_beside_another_controller() -> None:
    new = new_beside()
    ready = beside(new, HEALTHY, 0, provisioned(new))
    expected = {"phase": "Ready", "readyNodes": "3/3", "apiURL": "https://api.demo.example.com:6443"}
    assert {name: ready.status[name] for name in expected} == expected
    assert "https://api.demo.example.com:6443" in (ready.condition("ControlPlaneCreated") or {})["message"]


def test_the_last_known_nodes_stay_known_while_a_node_set_is_scaled() -> None:
    new = new_beside(nodes={"large": 2})
    ready = beside(new, observed_with(node_pool(2, asked=2)), 0, provisioned(new))
    more = scaled(ready, large=3)
    scaling = beside(more, observed_with(node_pool(2, asked=3, observed=7)), 1)
    assert (scaling.condition("NodesReady") or {})["message"] == "2 of 3 nodes ready"
    assert scaling.status["readyNodes"] == "2/3"


def test_the_namespace_that_was_found_by_its_label_is_recorded_until_the_other_controller_does_it() -> None:
    new = new_beside()
    found = beside(new, replace(HEALTHY, namespace="cluster-demo-x"))
    assert found.working_namespace == "cluster-demo-x" and "clusterReference" not in found.raw["status"]
    recorded = stored(found, found.raw["status"] | {"clusterReference": {"namespace": "cluster-demo-y"}})
    assert recorded.working_namespace == "cluster-demo-y"
    assert beside(found, ObservedState()).working_namespace == "orders-demo", "it is gone"


def test_an_order_without_a_namespace_says_what_it_waits_for_and_since_when() -> None:
    new = new_beside(creationTimestamp="2026-01-01T00:00:00Z")
    waiting = beside(new, ObservedState()).condition("NamespaceCreated") or {}
    assert (waiting["status"], waiting["reason"], waiting["message"]) == (
        "False",
        "WaitingForController",
        "Waiting since 2026-01-01T00:00:00Z for the order's controller to create a namespace with the label "
        "cloudkit.openshift.io/clusterorder=demo and to name it in status.clusterReference",
    )
    gone = new_beside(THEIRS | {"clusterReference": {"namespace": "cluster-demo-x"}})
    missing = derive_status(gone, ObservedState(), at(0))
    assert state_of(missing, "NamespaceCreated") == ("False", "NamespaceMissing")
    assert message_of(missing, "NamespaceCreated").startswith("The namespace cluster-demo-x does not exist; waiting for the order's")


def test_the_patch_changes_only_our_conditions_and_applies_only_to_ours_as_they_were() -> None:
    written = beside(new_beside(), HEALTHY)
    lost = beside(written, observed_with(node_pool(1)), 1)
    patch = order_foreign.conditions_patch(written.raw, lost.raw["status"])
    assert patch
    assert jsonpatch.apply_patch(written.raw, patch) == lost.raw
    by_them = stored(written, written.raw["status"] | {"phase": "Ready"})
    by_them.raw["status"]["conditions"][1]["status"] = "False"
    both = jsonpatch.apply_patch(by_them.raw, patch)["status"]
    assert both["phase"] == "Ready" and both["conditions"][1]["status"] == "False", "what they changed stays"
    assert both["conditions"][3:] == lost.raw["status"]["conditions"][3:]
    for changed_meanwhile in (
        beside(written, ObservedState(), 1),  # by another of our writers
        changed(written, templateParameters="{}"),
        ClusterOrder.from_object(written.raw | {"metadata": written.raw["metadata"] | {"uid": "later"}}),
    ):
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            jsonpatch.apply_patch(changed_meanwhile.raw, patch)


def test_a_condition_that_is_added_needs_a_write_of_the_whole_list() -> None:
    new = new_beside()
    assert order_foreign.conditions_patch(new.raw, beside(new, HEALTHY).raw["status"]) is None
