"""Which changes requeue pending clusters: those that may help them, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.queueing_hints import (
    hub_may_fit,
    is_relevant_to_all,
    quota_freed,
)


def quota(limit: int = 5, **used: int) -> Object:
    return {"spec": {"hard": {"clusters": limit}}, "status": {"used": used}}


def hub(*, ready: bool = True, clusters: int = 1, nodes: int = 4, templates: tuple[str, ...] = ("small",), **changes: Any) -> Object:
    free = {"clusters": clusters, "nodes": {"fc430": nodes}}
    status = {"conditions": [{"type": "Ready", "status": str(ready)}], "free": free, "templates": [{"name": each} for each in templates]}
    spec = {"schedulable": True, "capacity": {"clusters": 9}} | changes.pop("spec", {})
    return {"metadata": {"labels": changes.pop("labels", {})}, "spec": spec, "status": status | changes}


@pytest.mark.parametrize(
    ("before", "after", "all_clusters", "frees"),
    [
        (None, quota(), True, False),
        (quota(5), quota(6), True, False),
        (quota(clusters=3, nodes=2), quota(clusters=3, nodes=1), False, True),
        (quota(clusters=3), quota(), False, True),
        (quota(clusters=3), quota(clusters=4), False, False),
    ],
)
def test_quota(before: Object | None, after: Object, all_clusters: bool, frees: bool) -> None:
    assert (is_relevant_to_all(before, after), quota_freed(before, after)) == (all_clusters, frees)


@pytest.mark.parametrize(
    ("before", "after", "may_fit"),
    [
        (None, hub(), True),
        (hub(ready=False), hub(), True),
        (hub(), hub(ready=False), False),
        (hub(clusters=1), hub(clusters=2), True),
        (hub(clusters=2), hub(clusters=1), False),
        (hub(nodes=1), hub(nodes=2), True),
        (hub(nodes=1), hub(nodes=2, ready=False), False),
        (hub(), hub(templates=("small", "large")), True),
        (hub(), hub(labels={"gpu": "yes"}), True),
        (hub(spec={"schedulable": False}), hub(), True),
        (hub(heartbeat="2026-01-01T00:00:00Z"), hub(heartbeat="2026-01-01T00:00:30Z"), False),
        (hub(), hub(reservations={"1": {}}), False),
    ],
)
def test_hub(before: Object | None, after: Object, may_fit: bool) -> None:
    assert hub_may_fit(before, after) is may_fit
