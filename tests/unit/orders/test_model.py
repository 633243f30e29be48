"""The ClusterOrder, its names, its working namespace and its failures, case by case."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.text import as_reason, shortened
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import parse_time
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import (
    LAST_RETRY,
    ClusterOrder,
    Failure,
    Names,
    config_version,
    label_value,
    with_failure,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import (
    START,
    at,
    changed,
    deleted,
    order,
    order_object,
    ready_order,
    text,
)

OSAC = "osac.openshift.io"
NAMESPACE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def test_names_follow_the_group() -> None:
    names = Names(OSAC)
    assert names.api_version == "osac.openshift.io/v1alpha1"
    assert names.controller_finalizer == "osac.openshift.io/finalizer"
    assert names.infrastructure_finalizer == "osac.openshift.io/infrastructure"
    assert names.order_label == "osac.openshift.io/clusterorder"
    assert names.order_namespace_label == "osac.openshift.io/clusterorder-namespace"
    assert names.resource_class_label == "osac.openshift.io/resource-class"
    assert names.management_state_annotation == "osac.openshift.io/management-state"
    assert names.lock_token_annotation.split("/") == ["osac.openshift.io", "lock-token"]
    assert Names().group == "cloudkit.openshift.io"


def test_an_order_is_read_from_its_object() -> None:
    item = order_object({"phase": "Ready"}, {"large": 3, "small": 1}, group=OSAC)
    read = ClusterOrder.from_object(item, Names(OSAC))
    assert (read.namespace, read.name, read.uid, read.generation, read.resource_version) == ("orders", "demo", "u1", 1, "7")
    assert read.template_id == "openfleet.clusters.ocp_4_17_small"
    assert json.loads(read.template_parameters) == {"size": 1, "name": "x"}
    assert read.node_requests == (NodeRequest("large", 3), NodeRequest("small", 1))
    assert read.finalizers == ("osac.openshift.io/finalizer", "osac.openshift.io/infrastructure")
    assert not read.is_deleting
    assert read.phase == "Ready"
    assert read.raw is item
    assert deleted(read).is_deleting


def test_an_order_with_only_what_is_required_is_read() -> None:
    read = ClusterOrder.from_object({"metadata": {"namespace": "a", "name": "b"}, "spec": {"templateID": "t"}})
    assert (read.template_parameters, read.node_requests, read.finalizers, read.status, read.phase) == ("", (), (), {}, "")


@pytest.mark.parametrize(
    ("annotation", "state"),
    [
        (None, "managed"),
        ("", "managed"),
        ("managed", "managed"),
        ("unmanaged", "unmanaged"),
        (" Unmanaged ", "unmanaged"),
        ("manual", "manual"),
        ("paused", "manual"),  # a word we don't know means manual
    ],
)
def test_management_state(annotation: str | None, state: str) -> None:
    annotations = {} if annotation is None else {"cloudkit.openshift.io/management-state": annotation}
    assert order(annotations=annotations).management_state == state


def test_the_annotation_of_another_group_is_not_ours() -> None:
    assert order(annotations={"osac.openshift.io/management-state": "unmanaged"}).management_state == "managed"


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ({"templateParameters": '{"name":"x",\n "size": 1}'}, True),
        ({"templateParameters": '{"name":"x","size":2}'}, False),
        ({"templateParameters": '{"name":"x","size":"1"}'}, False),
        ({"templateParameters": "{"}, False),
        ({"templateParameters": "[" * 100_000}, False),
        ({"templateID": "other"}, False),
        ({"nodeRequests": [{"resourceClass": "b", "numberOfNodes": 2}, {"resourceClass": "a", "numberOfNodes": 1}]}, True),
        ({"nodeRequests": [{"resourceClass": "a", "numberOfNodes": 2}, {"resourceClass": "b", "numberOfNodes": 1}]}, False),
        ({"nodeRequests": []}, False),
        ({"somethingElse": 1}, True),
    ],
)
def test_config_version_changes_with_what_a_run_applies(spec: dict[str, Any], same: bool) -> None:
    before = order(nodes={"a": 1, "b": 2})
    assert (config_version(changed(before, **spec)) == config_version(before)) is same


def test_no_parameters_are_the_same_as_an_empty_object() -> None:
    assert config_version(changed(order(), templateParameters="")) == config_version(changed(order(), templateParameters="{ }"))


def test_two_texts_that_are_not_json_have_two_config_versions() -> None:
    assert config_version(changed(order(), templateParameters="{x")) != config_version(changed(order(), templateParameters="{y"))


def test_config_version_does_not_change_with_the_release_of_the_collection() -> None:
    assert config_version(order()) == "1443273de11caa4c"


# Names of namespaces and clusters

COLLIDING = [("a1", "b-c"), ("a1-b", "c"), ("team", "x"), ("team", "x-x"), ("team-x", "x"), ("team-1", "x"), ("team", "1-x-x")]
LONG = [
    ("o" * 63, "d" * 63),
    ("o" * 63, "d" * 62 + "e"),
    ("o" * 32, "d" * 31),
    ("orders", "d." * 40 + "d"),
    ("orders", "a.b"),
    ("orders", "a-b"),
    ("o" * 46, "-" * 3 + "d" * 30),
]


def control_plane_namespace(names: Names, namespace: str, name: str) -> str:
    """As HyperShift names it."""
    return f"{names.working_namespace(namespace, name)}-{names.cluster_name(name)}"


def test_no_two_orders_have_a_namespace_in_common_however_they_are_called() -> None:
    names, pairs = Names(), COLLIDING + LONG
    used = [names.working_namespace(*pair) for pair in pairs] + [control_plane_namespace(names, *pair) for pair in pairs]
    assert len(set(used)) == 2 * len(pairs)
    assert [name for name in used if not NAMESPACE_NAME.fullmatch(name)] == []


def test_namespace_and_cluster_are_named_after_the_order_as_far_as_that_fits() -> None:
    names = Names()
    assert re.fullmatch(r"orders-demo-[a-z2-7]{12}", names.working_namespace("orders", "demo"))
    assert names.cluster_name("demo") == "demo"
    assert names.cluster_name("d" * 20) == "d" * 20
    assert re.fullmatch(r"d{7}-[a-z2-7]{12}", names.cluster_name("d" * 21))


def test_names_of_an_external_controller_stay() -> None:
    names = Names(external_controller=True)
    assert names.working_namespace("orders", "demo") == "orders-demo"
    assert names.working_namespace("o" * 31, "d" * 31) == "o" * 31 + "-" + "d" * 31
    assert names.cluster_name("d" * 60) == "d" * 60
    assert all(NAMESPACE_NAME.fullmatch(names.working_namespace(*pair)) for pair in LONG)


def test_a_name_too_long_for_a_label_is_cut_and_hashed() -> None:
    one, two = label_value("n" * 70), label_value("n" * 71)
    assert one != two
    assert len(one) == len(two) == 63
    assert label_value("n" * 63) == "n" * 63


@pytest.mark.parametrize(("failed_before", "seconds"), [(0, 30), (1, 60), (2, 120), (5, 960), (6, 1800), (7, 1800), (100_000, 1800)])
def test_the_wait_doubles_up_to_half_an_hour(failed_before: int, seconds: int) -> None:
    status = {"failure": {"reason": "X", "message": "", "attempts": failed_before}} if failed_before else {}
    failure = with_failure(status, Failure("Unreachable", "no answer", "Apply"), START)["failure"]
    assert failure == {
        "reason": "Unreachable",
        "message": "no answer",
        "task": "Apply",
        "retryable": True,
        "attempts": failed_before + 1,
        "nextAttempt": text(START + timedelta(seconds=seconds)),
    }
    assert timedelta(seconds=seconds) <= LAST_RETRY


def test_a_failure_that_is_not_retryable_has_no_next_attempt() -> None:
    assert with_failure({}, Failure("BadTemplate", "no", retryable=False), START)["failure"] == {
        "reason": "BadTemplate",
        "message": "no",
        "retryable": False,
        "attempts": 1,
    }


def test_recording_a_failure_leaves_the_given_status_alone() -> None:
    status = {"phase": "Ready"}
    assert with_failure(status, Failure("X", ""), START)["phase"] == "Ready"
    assert status == {"phase": "Ready"}


@pytest.mark.parametrize(
    ("failure", "due"),
    [
        (Failure("X", "", next_attempt=at(1)), False),
        (Failure("X", "", next_attempt=START), True),
        (Failure("X", "", next_attempt=at(-1)), True),
        (Failure("X", ""), True),
        (Failure("X", "", retryable=False), False),
        (Failure("X", "", retryable=False, next_attempt=at(-1)), False),
    ],
)
def test_a_failure_is_due(failure: Failure, due: bool) -> None:
    assert failure.is_due(START) is due


def test_a_failure_survives_the_way_through_the_status() -> None:
    failure = Failure("Unreachable", "no answer", "Apply", True, 4, at(3))
    assert Failure.from_status(failure.to_status()) == failure


def test_a_failure_of_an_older_spec_is_none() -> None:
    failed = order({"observedGeneration": 1, "failure": {"reason": "X", "message": "m", "retryable": False}})
    assert failed.failure == Failure("X", "m", retryable=False)
    assert changed(failed).failure is None
    assert deleted(failed).failure is None


def test_texts_are_cut_to_the_limits_of_the_schema() -> None:
    failure = Failure("Broken pipe: no 1!", "m" * 40_000, "t" * 2_000).to_status()
    assert failure["reason"] == "Brokenpipe:no1"
    assert len(failure["message"]) == 32768
    assert failure["message"].endswith("…")
    assert len(failure["task"]) == 1024
    assert shortened("m" * 1024, 1024) == "m" * 1024
    assert len(as_reason("r" * 2000)) == 1024


def test_output_that_could_not_be_decoded_can_be_sent() -> None:
    json.dumps(shortened("bad \udcff byte", 100), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("given", "word"), [("AsExpected", "AsExpected"), ("", "Error"), ("42", "Error"), ("1st: x,", "st:x"), ("é", "Error")]
)
def test_a_reason_is_one_word(given: str, word: str) -> None:
    assert as_reason(given) == word


@pytest.mark.parametrize("given", [None, "", "soon", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_none(given: str | None) -> None:
    assert parse_time(given) is None


def test_times_are_read_in_every_form_the_api_writes() -> None:
    assert parse_time("2026-01-01T00:00:00Z") == parse_time("2026-01-01T00:00:00.000000Z") == parse_time("2026-01-01T00:00:00") == START
    assert parse_time("2026-01-01T02:00:00+02:00") == START


def test_a_ready_order_is_applied_until_its_spec_changes() -> None:
    ready = ready_order()
    assert ready.is_applied
    assert not changed(ready, templateParameters="{}").is_applied
