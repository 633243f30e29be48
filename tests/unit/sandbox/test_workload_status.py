"""What the stand-in for nodes reports of workloads, and which Deployments it runs."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.flux_controllers import Wanted
from ansible_collections.openfleet.clusters.extensions.sandbox.gitops.workload_status import STATUS, problem

EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def workload(kind: str, image: str = "example.com/web:1", replicas: int = 2, args: list[str] | None = None) -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": image, **({"args": args} if args else {})}]}
    spec = pod if kind == "Pod" else {"replicas": replicas, "template": {"spec": pod}}
    return {"kind": kind, "metadata": {"name": "web", "namespace": "shop", "generation": 3}, "spec": spec}


@pytest.mark.parametrize("kind", STATUS)
@pytest.mark.parametrize("image", ["example.com/web:1", "example.com/web:broken"])
def test_a_status_does_not_change_while_its_object_does_not(kind: str, image: str) -> None:
    item = workload(kind, image)
    first = STATUS[kind](item, problem(item), EARLIER)
    assert STATUS[kind](item | {"status": first}, problem(item), NOW) == first


@pytest.mark.parametrize(
    ("kind", "image", "ready"),
    [
        ("Deployment", "example.com/web:1", 2),
        ("Deployment", "example.com/web:broken", None),
        ("StatefulSet", "example.com/web", 2),
        ("StatefulSet", "example.com/web:broken", None),
    ],
)
def test_all_replicas_are_ready_unless_the_image_is_broken(kind: str, image: str, ready: int | None) -> None:
    item = workload(kind, image)
    status = STATUS[kind](item, problem(item), NOW)
    assert status["observedGeneration"] == 3
    assert status["replicas"] == 2
    assert status.get("readyReplicas") == ready


def test_a_deployment_that_stops_being_available_says_since_when_and_why() -> None:
    item = workload("Deployment")
    item["status"] = STATUS["Deployment"](item, "", EARLIER)
    available, progressing = STATUS["Deployment"](item, "source-controller is starting", NOW)["conditions"]
    assert (available["type"], available["status"], available["lastTransitionTime"]) == ("Available", "False", NOW)
    assert available["message"].endswith("source-controller is starting")
    assert progressing["lastTransitionTime"] == EARLIER


@pytest.mark.parametrize(
    ("image", "replicas", "program"),
    [
        ("ghcr.io/fluxcd/helm-controller:v1.6.4", 1, "helm-controller"),
        ("mirror.example.com:5000/a/b/source-controller@sha256:aa", 1, "source-controller"),
        ("kustomize-controller", 1, "kustomize-controller"),
        ("ghcr.io/fluxcd/helm-controller:v1.6.4", 0, None),
        ("ghcr.io/fluxcd/helm-controller-debug:v1", 1, None),
        ("example.com/helm-controller/web:1", 1, None),
    ],
)
def test_a_deployment_runs_if_its_image_is_a_controller_of_flux(image: str, replicas: int, program: str | None) -> None:
    wanted = Wanted.of(workload("Deployment", image, replicas))
    assert (wanted.program if wanted else None) == program


def test_flags_with_addresses_and_paths_do_not_reach_the_process() -> None:
    flags = ["--storage-path=/data", "--events-addr=http://x/", "--concurrent=2", "--kubeconfig=/hub", "--requeue-dependency=2s"]
    wanted = Wanted.of(workload("Deployment", "ghcr.io/fluxcd/source-controller:v1", 1, flags))
    assert wanted
    assert wanted.flags == ("--concurrent=2", "--requeue-dependency=2s")
    assert wanted.events
