"""Orders of a single hub in the form of clusters of a fleet, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.problems import Problem
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.cluster_source import ClusterOrders
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

SOURCE = ClusterOrders(Names())


def order(parameters: str = '{"channel": "fast"}', **status: Any) -> dict[str, Any]:
    metadata = {"name": "demo", "namespace": "team", "uid": "u", "generation": 2, "resourceVersion": "7", "managedFields": [1]}
    requests = [{"resourceClass": "fc430", "numberOfNodes": 3}]
    spec = {"templateID": "small", "templateParameters": parameters, "nodeRequests": requests}
    return {"apiVersion": SOURCE.api_version, "kind": "ClusterOrder", "metadata": metadata, "spec": spec, "status": status}


def test_order_is_shown_as_a_cluster() -> None:
    sets = [{"resourceClass": "fc430", "requested": 3, "ready": 2}]
    failure = {
        "reason": "Late",
        "message": "Too late.",
        "task": "wait",
        "retryable": True,
        "attempts": 2,
        "nextAttempt": "2099-01-01T00:00:00Z",
    }
    shown = SOURCE.shown(order(phase="Failed", observedGeneration=2, nodeSets=sets, failure=failure))
    assert shown["spec"] == {
        "template": "small",
        "templateParameters": {"channel": "fast"},
        "nodeSets": {"fc430": {"class": "fc430", "size": 3}},
    }
    assert (shown["status"]["state"], shown["status"]["nodes"]) == ("Failed", "2/3")
    assert shown["status"]["failure"]["nextAttempt"] == "2099-01-01T00:00:00Z"
    assert "managedFields" not in shown["metadata"]
    assert (shown["kind"], shown["metadata"]["resourceVersion"]) == ("ClusterOrder", "7")


@pytest.mark.parametrize(("status", "state"), [({}, "Progressing"), ({"phase": "Ready", "observedGeneration": 2}, "Ready")])
def test_state_is_that_of_the_phase_without_a_condition_that_orders_lack(status: dict[str, Any], state: str) -> None:
    shown = SOURCE.shown(order(**status))
    assert (shown["status"]["state"], shown["status"]["conditions"]) == (state, [])


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_parameters_that_are_no_object_hide_no_order(text: str) -> None:
    assert SOURCE.shown(order(text))["spec"]["templateParameters"] == {}


def test_new_cluster_is_stored_as_an_order_without_the_annotations_of_the_fleet() -> None:
    sets = {"a": {"class": "fc430", "size": 1}, "b": {"class": "fc430", "size": 2}}
    annotations = {"fleet.openfleet.io/created-by": "forged", "api.fleet.openfleet.io/request": "hash"}
    spec = {"template": "small", "templateParameters": {"b": 1, "a": 2}, "nodeSets": sets}
    stored = SOURCE.stored({"metadata": {"name": "demo", "namespace": "team", "annotations": annotations}, "spec": spec})
    assert stored["spec"] == {
        "templateID": "small",
        "templateParameters": '{"a": 2, "b": 1}',
        "nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 3}],
    }
    assert stored["metadata"]["annotations"] == {"api.fleet.openfleet.io/request": "hash"}


def test_changes_are_merged_into_what_the_order_has() -> None:
    shown = SOURCE.shown(order())
    changes = SOURCE.changes(shown, {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSets": {"fc430": {"size": 5}}}})
    assert changes == {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 5}]}}
    changed = SOURCE.changes(shown, {"spec": {"templateParameters": {"channel": None, "deep": {"x": 1}}, "nodeSets": {"fc430": None}}})
    assert json.loads(changed["spec"]["templateParameters"]) == {"deep": {"x": 1}}
    assert changed["spec"]["nodeRequests"] == []


def test_what_only_a_fleet_has_is_refused() -> None:
    for field in ("placement", "priority", "expiresAt"):
        with pytest.raises(Problem, match="single hub"):
            SOURCE.changes(SOURCE.shown(order()), {"spec": {field: {"region": "x"}}})
