"""Which Deployments and StatefulSets belong to a workload, and how they are started and stopped."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.workloads import REPLICAS, belongs, started, stopped


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
