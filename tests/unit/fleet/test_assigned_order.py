"""Assignments as orders, and the status of orders as that of assignments: a table for each decision."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.assigned_order import (
    UID_LABEL,
    Problem,
    changes_of,
    order_of,
    ownership_problem,
    reference_of,
    status_of,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import ADOPT_ORDER, RETRY
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.model import ClusterAssignment
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"
WORKERS = {"workers": {"class": "fc430", "size": 2}}
PROVISIONED = {
    "type": "Provisioned",
    "status": "True",
    "reason": "WasReady",
    "message": "The cluster was Ready",
    "lastTransitionTime": "2026-01-02T12:00:00Z",
}


def assignment(
    uid: str = UID, tenant: str = "team", status: Object | None = None, metadata: Object | None = None, **spec: Any
) -> ClusterAssignment:
    item = {
        "metadata": {"name": uid, "namespace": "hub-east", "generation": 3, **(metadata or {})},
        "spec": {"cluster": {"namespace": tenant, "name": "demo", "uid": uid}, "template": "a.b.small", **({"nodeSets": WORKERS} | spec)},
        "status": status or {},
    }
    return ClusterAssignment.from_object(item)


def order(status: Object | None = None, metadata: Object | None = None, wanted: ClusterAssignment | None = None) -> ClusterOrder:
    item = order_of(wanted or assignment(), Names())
    item["metadata"] |= {"uid": "order", "generation": 5, **(metadata or {})}
    return ClusterOrder.from_object({**item, "status": status or {}}, Names())


def test_no_two_clusters_share_a_namespace_and_names_are_valid() -> None:
    references = [reference_of(assignment(uid, tenant)) for uid in ("a", "b") for tenant in ("team", "t" * 63, "t-" * 31 + "t")]
    assert len({each.namespace for each in references}) == len(references)
    assert all(len(each.namespace) <= 63 and each.namespace.startswith("fleet-t") and each.name == "demo" for each in references)
    assert not any("--" in each.namespace.replace("t-t", "") for each in references[:1])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 2}]}),
        ({"nodeSets": {}}, {"nodeRequests": []}),
        ({"nodeSets": {"a": {"class": "x", "size": 0}}}, {"nodeRequests": []}),
        (
            {"nodeSets": {"b": {"class": "x", "size": 1}, "a": {"class": "x", "size": 2}, "c": {"class": "g", "size": 1}}},
            {"nodeRequests": [{"resourceClass": "g", "numberOfNodes": 1}, {"resourceClass": "x", "numberOfNodes": 3}]},
        ),
        (
            {"nodeSets": {}, "templateParameters": {"b": [1, None], "a": "ä"}},
            {"nodeRequests": [], "templateParameters": json.dumps({"a": "ä", "b": [1, None]})},
        ),
        ({"nodeSets": {}, "templateParameters": {}}, {"nodeRequests": []}),
    ],
)
def test_spec_of_the_order(spec: Object, expected: Object) -> None:
    made = order_of(assignment(**spec), Names())
    assert made["spec"] == {"templateID": "a.b.small", **expected}
    assert made["metadata"]["labels"][UID_LABEL] == UID
    assert made["apiVersion"] == "cloudkit.openshift.io/v1alpha1"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, {}),
        ({"templateParameters": {"a": 1}}, {"templateParameters": {"a": 1}}, {}),
        ({"templateParameters": {"a": 1}}, {}, {"spec": {"templateParameters": None}}),
        ({}, {"templateParameters": {"a": 1}}, {"spec": {"templateParameters": '{"a": 1}'}}),
        (
            {},
            {"nodeSets": {"w": {"class": "fc430", "size": 3}}},
            {"spec": {"nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 3}]}},
        ),
        ({}, {"nodeSets": {}}, {"spec": {"nodeRequests": []}}),
    ],
)
def test_changes_of_an_order(before: Object, after: Object, expected: Object) -> None:
    present = order_of(assignment(**before), Names())
    assert changes_of(present, order_of(assignment(**after), Names())) == expected


def test_layout_of_parameters_is_no_change_and_a_lost_label_is() -> None:
    wanted = order_of(assignment(templateParameters={"a": 1, "b": 2}), Names())
    present = {
        **wanted,
        "spec": {**wanted["spec"], "templateParameters": '{"b":2,\n"a":1} '},
        "metadata": {**wanted["metadata"], "labels": {}},
    }
    assert changes_of(present, wanted) == {"metadata": {"labels": wanted["metadata"]["labels"]}}


def test_adopted_order_keeps_what_is_not_asked_for() -> None:
    wanted = order_of(assignment(nodeSets={}), Names())
    present = order_of(assignment(templateParameters={"a": 1}), Names())
    assert changes_of(present, wanted, is_adopted=True) == {}
    assert changes_of(present, wanted) == {"spec": {"templateParameters": None, "nodeRequests": []}}


@pytest.mark.parametrize(("parameters", "texts"), [({"a": 1}, ['{"a": 1} ', '{"a": 1}', '{"a": 1} ']), ({}, ["{} ", "{}", "{} "])])
def test_each_retry_changes_the_order_and_not_its_content(parameters: Object, texts: list[str]) -> None:
    present = order_of(assignment(templateParameters=parameters), Names())
    for moment, text in enumerate(texts):
        wanted = order_of(assignment(templateParameters=parameters, metadata={"annotations": {RETRY: str(moment)}}), Names())
        changes = changes_of(present, wanted)
        assert changes == {"metadata": {"annotations": {RETRY: str(moment)}}, "spec": {"templateParameters": text}}
        present["spec"]["templateParameters"] = text
        present["metadata"]["annotations"] = {**present["metadata"]["annotations"], RETRY: str(moment)}
        assert changes_of(present, wanted) == {}


@pytest.mark.parametrize(
    ("adopt", "labels", "template", "reason"),
    [
        ("", {UID_LABEL: UID}, "a.b.small", ""),
        ("", {UID_LABEL: UID}, "small", ""),
        ("", {UID_LABEL: UID}, "a.b.large", "TemplateDiffers"),
        ("", {UID_LABEL: "other"}, "a.b.small", "OrderTaken"),
        ("", {}, "a.b.small", "OrderTaken"),
        ("old/demo", {}, "a.b.small", "OrderTaken"),
        ("old/demo", {UID_LABEL: UID}, "a.b.small", ""),
    ],
)
def test_order_of_another_is_never_used(adopt: str, labels: dict[str, str], template: str, reason: str) -> None:
    mine = assignment(metadata={"annotations": {ADOPT_ORDER: adopt}})
    reference = reference_of(mine)
    assert reference.is_adopted is bool(adopt)
    present = {"metadata": {"labels": labels}, "spec": {"templateID": template}}
    found = ownership_problem(reference, present, order_of(mine, Names()))
    assert (found.reason if found else "") == reason


@pytest.mark.parametrize(
    ("status", "metadata", "state"),
    [
        ({}, {}, "Progressing"),
        ({"phase": "Progressing", "observedGeneration": 5}, {}, "Progressing"),
        ({"phase": "Ready", "observedGeneration": 5}, {}, "Ready"),
        ({"phase": "Ready", "observedGeneration": 4}, {}, "Progressing"),
        ({"phase": "Failed", "observedGeneration": 5}, {}, "Failed"),
        ({"phase": "Failed", "observedGeneration": 4}, {}, "Progressing"),
        ({"phase": "Degraded", "observedGeneration": 5}, {}, "Degraded"),
        ({"phase": "Degraded", "observedGeneration": 4}, {}, "Degraded"),
        ({"phase": "Ready", "observedGeneration": 5}, {"deletionTimestamp": "2026-01-02T12:00:00Z"}, "Deleting"),
        ({"phase": "Invented", "observedGeneration": 5}, {}, "Progressing"),
    ],
)
def test_state_of_a_cluster(status: Object, metadata: Object, state: str) -> None:
    assert status_of(assignment(), order(status, metadata), NOW)["state"] == state


def test_state_without_an_order() -> None:
    deleting = {"deletionTimestamp": "2026-01-02T12:00:00Z"}
    taken = Problem("OrderTaken", "It is taken.")
    assert status_of(assignment(), None, NOW)["state"] == "Progressing"
    assert status_of(assignment(metadata=deleting), None, NOW)["state"] == "Deleting"
    assert status_of(assignment(metadata=deleting), order({"phase": "Ready"}), NOW)["state"] == "Deleting"
    refused = status_of(assignment(), None, NOW, problem=taken)
    assert (refused["state"], refused["failure"]) == ("Failed", {"reason": "OrderTaken", "message": "It is taken."})
    # A running cluster whose order cannot follow is not failed.
    kept = status_of(assignment(), order({"phase": "Ready", "observedGeneration": 5}), NOW, problem=taken)
    assert (kept["state"], kept["failure"]["reason"]) == ("Degraded", "OrderTaken")


def test_deleted_order_of_a_cluster_that_was_ready_is_a_failure_and_not_before() -> None:
    ready = status_of(assignment(), order({"phase": "Ready", "observedGeneration": 5}), NOW)
    assert ready["conditions"] == [PROVISIONED]
    later = datetime(2026, 6, 1, tzinfo=UTC)
    lost = status_of(assignment(status=ready), None, later)
    assert (lost["state"], lost["failure"]["reason"]) == ("Failed", "OrderDeleted")
    assert lost["conditions"] == [PROVISIONED]
    assert status_of(assignment(), None, NOW, provisioned=True)["failure"]["reason"] == "OrderDeleted"
    assert "failure" not in status_of(assignment(), None, NOW)
    gone = status_of(assignment(status=ready, metadata={"deletionTimestamp": "2026-01-02T12:00:00Z"}), None, NOW)
    assert "failure" not in gone


@pytest.mark.parametrize(
    ("before", "status", "wanted", "expected"),
    [
        (0, {}, {}, None),
        (2, {}, {}, 2),
        (2, {"observedGeneration": 4}, {}, 2),
        (2, {"observedGeneration": 5}, {}, 3),
        (2, {"observedGeneration": 5}, {"nodeSets": {}}, 2),
    ],
)
def test_generation_is_observed_when_the_order_has_the_spec_and_reports_about_it(
    before: int, status: Object, wanted: Object, expected: int | None
) -> None:
    mine = assignment(status={"observedGeneration": before} if before else {}, **wanted)
    assert status_of(mine, order(status), NOW).get("observedGeneration") == expected


def counts(requested: int, ready: int | None, existing: int, name: str = "fc430") -> Object:
    known = {} if ready is None else {"ready": ready}
    return {
        "nodeSets": [{"resourceClass": name, "requested": requested, **known}],
        "nodeRequests": [{"resourceClass": name, "numberOfNodes": existing}],
    }


@pytest.mark.parametrize(
    ("sets", "status", "expected"),
    [
        ({"a": ("x", 2)}, {}, {"a": ("x", 2, 0)}),
        ({"a": ("x", 2)}, counts(2, 1, 1, "x"), {"a": ("x", 2, 1)}),
        # Growing: wanted is reported before the order knows it. Shrinking: what exists counts until it is deleted.
        ({"a": ("x", 4)}, counts(2, 2, 2, "x"), {"a": ("x", 4, 2)}),
        ({"a": ("x", 1)}, counts(3, 3, 3, "x"), {"a": ("x", 3, 3)}),
        ({"a": ("x", 1)}, counts(1, 1, 3, "x"), {"a": ("x", 3, 1)}),
        ({"a": ("x", 1)}, counts(1, 1, 1, "x"), {"a": ("x", 1, 1)}),
        # Sets of one class are filled in the order of their names.
        ({"b": ("x", 2), "a": ("x", 1)}, counts(3, 2, 2, "x"), {"a": ("x", 1, 1), "b": ("x", 2, 1)}),
        # A set that was removed keeps its name while its nodes exist.
        ({"a": ("x", 1)}, counts(0, 2, 2, "y"), {"a": ("x", 1, 0), "former": ("y", 2, 0)}),
        ({"a": ("x", 1)}, counts(0, 0, 0, "y"), {"a": ("x", 1, 0)}),
        # A provider that cannot count.
        ({"a": ("x", 2)}, counts(2, None, 0, "x") | {"phase": "Ready"}, {"a": ("x", 2, 2)}),
        ({"a": ("x", 2)}, counts(2, None, 0, "x") | {"phase": "Progressing"}, {"a": ("x", 2, 0)}),
    ],
)
def test_nodes_by_set(sets: dict[str, tuple[str, int]], status: Object, expected: dict[str, tuple[str, int, int]]) -> None:
    wanted = {name: {"class": each, "size": size} for name, (each, size) in sets.items()}
    former = {"nodeSets": {"former": {"class": "y", "size": 2, "ready": 2}}}
    found = status_of(assignment(nodeSets=wanted, status=former), order(status), NOW)["nodeSets"]
    assert {name: (each["class"], each["size"], each["ready"]) for name, each in found.items()} == expected


def test_fields_of_the_order_arrive_and_a_second_call_changes_nothing() -> None:
    moment = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": "NodesReady", "status": "True", "reason": "A", "message": "", "lastTransitionTime": moment, "observedGeneration": 5},
        {"type": "Incomplete"},
        {"type": "Provisioned", "status": "False", "reason": "Forged", "message": "", "lastTransitionTime": moment},
    ]
    reported = {
        "phase": "Failed",
        "observedGeneration": 5,
        "apiURL": "https://api",
        "consoleURL": "x" * 3000,
        "version": {"running": "4.17.1", "desired": "4.17.2"},
        "failure": {"reason": "Run Failed!", "message": "No hosts.", "task": "claim hosts", "retryable": True}
        | {"attempts": 3, "nextAttempt": moment},
        "conditions": conditions,
    }
    status = status_of(assignment(), order(reported), NOW)
    assert (status["apiURL"], status["version"], "consoleURL" in status) == ("https://api", "4.17.1", False)
    assert status["failure"] == {
        "reason": "RunFailed",
        "message": "claim hosts: No hosts.",
        "task": "claim hosts",
        "attempts": 3,
        "nextAttempt": moment,
    }
    assert status["conditions"] == [{"type": "NodesReady", "status": "True", "reason": "A", "message": "", "lastTransitionTime": moment}]
    assert status_of(assignment(status=status), order(reported), datetime(2027, 1, 1, tzinfo=UTC)) == status


def test_profiles_of_the_lock_file_arrive_without_values_and_whatever_the_annotation_has() -> None:
    lock = {
        "profiles": [
            {"name": "mesh", "chart": "istio", "version": "1.2.3", "layer": 1, "dependsOn": ["crds", 7], "values": {"password": "x"}},
            3,
        ]
    }
    found = order({"phase": "Ready"})
    for text, expected in (
        (json.dumps(lock), [{"name": "mesh", "chart": "istio", "version": "1.2.3", "layer": 1, "dependsOn": ["crds"]}]),
        (json.dumps({"profiles": [{"name": "a"}] * 100}), [{"name": "a", "layer": 0, "dependsOn": []}] * 64),
        ("{", None),
        ("[]", None),
        (json.dumps({"profiles": {"a": 1}}), None),
    ):
        marked = {**found.raw, "metadata": {**found.raw["metadata"], "annotations": {"cloudkit.openshift.io/profiles-lock": text}}}
        assert status_of(assignment(), ClusterOrder.from_object(marked), NOW).get("profiles") == expected
