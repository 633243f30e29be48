"""The health of workloads, and that neither a cluster nor a hub makes the list larger or stranger than it may be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads import MOST, Workload, from_json, to_json, workload_of
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads_request import (
    WorkloadsAnswer,
    request_for,
    wants_workloads,
)

LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}


def ready(status: str, **condition: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "message": "because"} | condition], "observedGeneration": 2}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        ("Deployment", {"replicas": 2}, {"availableReplicas": 2, "updatedReplicas": 2, "observedGeneration": 2}, ("Healthy", "2/2", "")),
        ("Deployment", {}, {"availableReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1}, ("Progressing", "1/1", "")),
        (
            "Deployment",
            {"replicas": 2},
            {"availableReplicas": 2, "updatedReplicas": 1, "observedGeneration": 2},
            ("Progressing", "2/2", ""),
        ),
        ("Deployment", {"replicas": 1}, {"conditions": [LATE], "observedGeneration": 2}, ("Failed", "0/1", "too late")),
        ("Deployment", {"replicas": 0}, {"observedGeneration": 2}, ("Healthy", "0/0", "")),
        ("Deployment", {"replicas": "many"}, None, ("Progressing", "0/1", "")),
        ("StatefulSet", {"replicas": 1}, {"readyReplicas": 1, "observedGeneration": 2}, ("Healthy", "1/1", "")),
        (
            "StatefulSet",
            {},
            {"readyReplicas": 1, "observedGeneration": 2, "updateRevision": "b", "currentRevision": "a"},
            ("Progressing", "1/1", ""),
        ),
        ("HelmRelease", {}, ready("True"), ("Healthy", "", "because")),
        ("HelmRelease", {}, ready("True") | {"observedGeneration": 1}, ("Progressing", "", "because")),
        ("HelmRelease", {}, ready("False"), ("Failed", "", "because")),
        # Flux counts a generation as observed only after a success.
        ("HelmRelease", {}, ready("False", observedGeneration=2) | {"observedGeneration": 1}, ("Failed", "", "because")),
        ("HelmRelease", {}, ready("False", observedGeneration=1), ("Progressing", "", "because")),
        ("HelmRelease", {}, ready("False", reason="InstallFailed"), ("Failed", "", "because")),
        ("HelmRelease", {}, ready("False", reason="DependencyNotReady"), ("Progressing", "", "because")),
        ("Kustomization", {}, ready("False", reason="DependencyNotReady", observedGeneration=2), ("Progressing", "", "because")),
        ("HelmRelease", {"suspend": True}, ready("False"), ("Suspended", "", "Suspended")),
        # A tenant may write anything into the status of objects in the cluster.
        ("Kustomization", {}, {"conditions": ["odd"]}, ("Progressing", "", "")),
        ("Kustomization", {}, {"conditions": 5}, ("Progressing", "", "")),
        ("HelmRelease", "odd", "odd", ("Progressing", "", "")),
        ("Deployment", "odd", "odd", ("Progressing", "0/1", "")),
    ],
)
def test_health_is_that_of_the_present_generation(kind: str, spec: Any, status: Any, expected: tuple[str, str, str]) -> None:
    groups = {"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Kustomization": "kustomize.toolkit.fluxcd.io/v1"}
    metadata = {"name": "web", "namespace": "shop", "generation": 2}
    found = workload_of({"apiVersion": groups.get(kind, "apps/v1"), "kind": kind, "metadata": metadata, "spec": spec, "status": status})
    assert (found.health, found.ready, found.message) == expected


def test_list_is_bounded_and_begins_with_what_needs_attention() -> None:
    healthy = [Workload("Deployment", "a", f"n{number}", "Healthy") for number in range(MOST)]
    found = from_json(to_json([*healthy, Workload("Deployment", "z", "broken", "Failed", "0/1", "no")]))
    assert (found["items"][0]["name"], len(found["items"]), found["truncated"]) == ("broken", MOST, True)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"items": 3}', '{"items": [3]}', '{"items": [{"health": "Odd"}]}'])
def test_answer_of_a_hub_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        from_json(text)


def test_request_is_answered_in_its_secret() -> None:
    request = request_for("east", "uid")
    assert wants_workloads(request)
    assert WorkloadsAnswer.from_secret(request) is None
    assert WorkloadsAnswer.from_secret(WorkloadsAnswer(error="no").apply_to(request)) == WorkloadsAnswer(error="no")
    answered = WorkloadsAnswer.from_secret(WorkloadsAnswer(json.dumps({"items": []})).apply_to(request))
    assert answered
    assert answered.content() == {"items": [], "truncated": False}
