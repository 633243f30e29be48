"""Which Deployments and StatefulSets belong to a workload, and how they are started and stopped."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.workloads import (
    REPLICAS,
    Write,
    belongs,
    is_idle,
    is_pending,
    started,
    starts,
    stopped,
    stops,
)


def controller(kind: str = "Deployment", replicas: int | None = 3, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "labels": labels or {}, "annotations": {}}
    return {"kind": kind, "metadata": metadata, "spec": spec | ({} if replicas is None else {"replicas": replicas})}


def mounting(claim: str) -> dict[str, Any]:
    return {"template": {"spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}}}


SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (controller(labels={"app": "web"}), True),
        (controller(labels={"app": "web", "tier": "test"}), False),
        (controller(labels={"app": "other"}), False),
        (controller(**mounting("data")), True),
        (controller(**mounting("cache")), False),
        (controller("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "files"}}]), True),
        (controller("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "logs"}}]), False),
    ],
)
def test_controller_belongs_by_its_labels_or_by_a_protected_volume(item: dict[str, Any], expected: bool) -> None:
    assert belongs(item, SELECTOR, {"data", "files-web-0"}) is expected


def test_all_controllers_of_the_namespace_belong_to_an_empty_selector() -> None:
    assert belongs(controller(), {}, set())


@pytest.mark.parametrize(("replicas", "noted"), [(3, "3"), (None, "1")])
def test_stopped_controller_is_started_with_the_replicas_it_had(replicas: int | None, noted: str) -> None:
    rest = stopped(controller(replicas=replicas))
    assert rest["spec"]["replicas"] == 0 and rest["metadata"]["annotations"] == {REPLICAS: noted}
    assert started(rest)["spec"]["replicas"] == int(noted)


def test_controller_that_was_never_stopped_here_is_started_with_one_replica() -> None:
    assert started(controller(replicas=0))["spec"]["replicas"] == 1


def test_second_stop_keeps_the_note() -> None:
    rest = stopped(controller())
    assert stopped(rest)["metadata"]["annotations"] == {}


def noted(note: str | None, replicas: int | None = 0, name: str = "web", **metadata: Any) -> dict[str, Any]:
    item = controller(replicas=replicas)
    item["metadata"] |= {"name": name, "annotations": {} if note is None else {REPLICAS: note}} | metadata
    return item


@pytest.mark.parametrize("note", [None, ""])
def test_component_without_replicas_has_none_after_a_stop_and_a_start(note: str | None) -> None:
    rest = stopped(noted(note))
    assert (rest["spec"]["replicas"], rest["metadata"]["annotations"]) == (0, {REPLICAS: "0"})
    assert started(rest)["spec"]["replicas"] == 0 and starts([rest]) == [[], []]


def test_start_clears_the_note() -> None:
    assert started(noted("3"))["metadata"]["annotations"] == {REPLICAS: ""}


@pytest.mark.parametrize(
    ("item", "idle", "pending"),
    [
        (noted(None), True, False),
        (noted(""), True, False),
        (noted("2"), True, True),
        (noted("0"), False, False),
        (noted("many"), True, False),
        (noted("9" * 5000), True, False),
        (noted("2", deletionTimestamp="2026-03-01T12:00:00Z"), False, False),
        (noted("2", replicas=2), False, False),
        (noted("2", replicas=None), False, False),
    ],
)
def test_controller_that_can_be_started(item: dict[str, Any], idle: bool, pending: bool) -> None:
    assert (is_idle(item), is_pending(item)) == (idle, pending)


def written(writes: list[list[Write]]) -> list[list[tuple[str, int, str]]]:
    return [
        [
            (item["metadata"]["name"], wanted["spec"]["replicas"], wanted["metadata"]["annotations"].get(REPLICAS, "kept"))
            for item, wanted in each
        ]
        for each in writes
    ]


def test_start_notes_everything_before_it_starts_anything() -> None:
    items = [noted(None, name="a"), noted("3", name="b"), noted("0", name="c")]
    assert written(starts(items)) == [[("a", 0, "1")], [("a", 1, ""), ("b", 3, "")]]


@pytest.mark.parametrize("note", [None, ""])
def test_start_that_goes_on_leaves_a_component_that_a_person_has_scaled_to_zero(note: str | None) -> None:
    items = [noted(note, name="a"), noted("3", name="b"), noted("0", name="c"), noted("", 2, name="d")]
    assert written(starts(items)) == [[], [("b", 3, "")]]


def test_single_controller_is_started_by_one_write() -> None:
    assert written(starts([noted(None)])) == [[], [("web", 1, "")]]


def test_stop_notes_components_without_replicas_before_it_stops_anything() -> None:
    items = [noted(None, 2, name="a"), noted("3", name="b"), noted("", name="c"), noted("5", 1, name="d"), noted("0", name="e")]
    assert written(stops(items)) == [[("c", 0, "0"), ("d", 0, "1"), ("a", 0, "2")]]
