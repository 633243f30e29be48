"""An order's status from its observed state, case by case, each checked against the schema of the CRD."""

from __future__ import annotations

import copy
import functools
import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.pools import node_pool_status
from ansible_collections.openfleet.clusters.extensions.sandbox.hypershift.status import ControlPlane, hosted_cluster_status
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import status as order_status
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.next_action import next_action
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState, unknown_cluster
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Job, LostRun, Outcome, UnstartedRun
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import (
    ConditionState,
    NodeRequest,
    NodeSet,
    ObservedCluster,
)
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import (
    HEALTHY,
    REFERENCE,
    START,
    Object,
    at,
    changed,
    condition,
    deleted,
    hosted_cluster,
    message_of,
    new_hosted_cluster,
    node_pool,
    observed_from,
    observed_with,
    order,
    provisioned,
    ready_order,
    scaled,
    since,
    state_of,
    stored,
    text,
)

CONDITIONS = [
    "Accepted",
    "NamespaceCreated",
    "InfrastructureReady",
    "ControlPlaneCreated",
    "ControlPlaneAvailable",
    "ClusterAvailable",
    "NodesReady",
    "TemplateApplied",
    "Deleting",
]
NOTHING = ObservedState()
UNREACHABLE = Failure("Unreachable", "no answer", "Apply the objects")
BAD = Failure("ParametersInvalid", "size: must be a number", retryable=False)
LOST = condition("Available", "False", "EtcdDown", "no quorum")
OLD_ANSWER = condition("Available", "True", generation=1)


@functools.cache
def status_schema() -> jsonschema.Draft202012Validator:
    version = load_crd(COLLECTION_CRDS / "clusterorders.yaml")["spec"]["versions"][0]
    schema: Object = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    return jsonschema.Draft202012Validator(closed(schema), format_checker=jsonschema.FormatChecker())


def closed(schema: Object) -> Object:
    """The schema with unknown fields refused, where the API server would drop them in silence."""
    made = {name: value for name, value in schema.items() if not name.startswith("x-")}
    if "properties" in made:
        made["properties"] = {name: closed(value) for name, value in made["properties"].items()}
        made["additionalProperties"] = False
    if "items" in made:
        made["items"] = closed(made["items"])
    return made


def derive(
    of: ClusterOrder, observed: ObservedState = HEALTHY, minutes: float = 0, outcome: Outcome | None = None, lost_run: LostRun | None = None
) -> Object:
    """The derived status, which must fit the schema, not change its arguments, and be the same when it is derived again."""
    before = copy.deepcopy((of, observed))
    status = order_status.derive_status(of, observed, at(minutes), outcome, lost_run)
    assert (of, observed) == before
    status_schema().validate(status)
    kinds = [item["type"] for item in status["conditions"]]
    assert len(kinds) == len(set(kinds))
    assert order_status.derive_status(stored(of, status), observed, at(minutes + 60), lost_run=lost_run) == status
    return status


def with_status(of: ClusterOrder, observed: ObservedState = HEALTHY, minutes: float = 0, outcome: Outcome | None = None) -> ClusterOrder:
    return stored(of, derive(of, observed, minutes, outcome))


def failed(of: ClusterOrder, failure: Failure, step: Any = "provision", **changes: Any) -> Outcome:
    return Outcome(step, config_version(of), failure=failure, **changes)


def installed() -> ClusterOrder:
    return with_status(order(), outcome=provisioned(order(), template_applied=False))


def progressing_order() -> ClusterOrder:
    return with_status(order(), NOTHING)


def refused_order() -> ClusterOrder:
    return with_status(order(), NOTHING, outcome=failed(order(), BAD, accepted=False))


def degraded_order() -> ClusterOrder:
    lost = with_status(ready_order(), observed_with(node_pool(2)))
    assert lost.phase == "Degraded"
    return lost


def test_a_new_order_is_progressing_and_every_condition_says_why() -> None:
    status = derive(order(), NOTHING)
    assert status["phase"] == "Progressing"
    assert status["observedGeneration"] == 1
    assert [item["type"] for item in status["conditions"]] == CONDITIONS
    assert {kind: state_of(status, kind) for kind in CONDITIONS} == {
        "Accepted": ("Unknown", "NotChecked"),
        "NamespaceCreated": ("False", "NamespaceMissing"),
        "InfrastructureReady": ("False", "ClusterMissing"),
        "ControlPlaneCreated": ("False", "ClusterMissing"),
        "ControlPlaneAvailable": ("False", "ClusterMissing"),
        "ClusterAvailable": ("False", "ClusterMissing"),
        "NodesReady": ("False", "NodesMissing"),
        "TemplateApplied": ("False", "ClusterMissing"),
        "Deleting": ("False", "NotRequested"),
    }
    assert {item["observedGeneration"] for item in status["conditions"]} == {1}
    assert message_of(status, "NodesReady") == "0 of 3 nodes ready"
    assert set(status) == {"phase", "observedGeneration", "conditions", "nodeSets", "readyNodes"}


def test_a_cluster_as_ordered_is_ready() -> None:
    status = derive(order(), outcome=provisioned(order()))
    assert status["phase"] == "Ready"
    assert {kind for kind in CONDITIONS if state_of(status, kind)[0] == "True"} == set(CONDITIONS) - {"Deleting"}
    assert status["configVersion"] == config_version(order())
    assert status["clusterReference"] == REFERENCE
    assert status["apiURL"] == "https://api.demo.example.com:6443"
    assert "consoleURL" not in status  # the domain is known, the address of the console is not
    assert status["nodeRequests"] == [{"resourceClass": "large", "numberOfNodes": 3}]
    assert status["nodeSets"] == [{"resourceClass": "large", "requested": 3, "ready": 3}]
    assert message_of(status, "NodesReady") == "3 of 3 nodes ready"
    assert "failure" not in status


@pytest.mark.parametrize(
    ("cluster", "created", "available", "cluster_available"),
    [
        (None, ("False", "ClusterMissing"), ("False", "ClusterMissing"), ("False", "ClusterMissing")),
        (new_hosted_cluster(), ("True", "ClusterExists"), ("False", "Pending"), ("False", "ControlPlaneUnavailable")),
        (hosted_cluster(LOST), ("True", "ClusterExists"), ("False", "EtcdDown"), ("False", "ControlPlaneUnavailable")),
        (hosted_cluster(), ("True", "ClusterExists"), ("True", "AsExpected"), ("True", "Available")),
        (
            hosted_cluster(condition("Available", "True", generation=None), generation=5),
            ("True", "ClusterExists"),
            ("True", "AsExpected"),
            ("True", "Available"),
        ),
        (
            hosted_cluster(OLD_ANSWER, generation=2),
            ("True", "ClusterExists"),
            ("Unknown", "Outdated"),
            ("Unknown", "ControlPlaneUnavailable"),
        ),
        (
            hosted_cluster(condition("Degraded", "True", "Slow", "etcd is slow")),
            ("True", "ClusterExists"),
            ("True", "AsExpected"),
            ("False", "ClusterDegraded"),
        ),
        (
            hosted_cluster(condition("Degraded", "True", generation=7)),
            ("True", "ClusterExists"),
            ("True", "AsExpected"),
            ("True", "Available"),
        ),
        (hosted_cluster(releases=("Partial",)), ("True", "ClusterExists"), ("True", "AsExpected"), ("False", "Installing")),
        (hosted_cluster(releases=()), ("True", "ClusterExists"), ("True", "AsExpected"), ("False", "Installing")),
        (hosted_cluster(releases=("Partial", "Completed")), ("True", "ClusterExists"), ("True", "AsExpected"), ("True", "Available")),
        (hosted_cluster(deleting=True), ("True", "ClusterExists"), ("True", "AsExpected"), ("False", "ClusterDeleting")),
    ],
)
def test_control_plane(cluster: Object | None, created: Any, available: Any, cluster_available: Any) -> None:
    status = derive(order(), observed_from(cluster, (node_pool(3),)), outcome=provisioned(order()))
    assert state_of(status, "ControlPlaneCreated") == created
    assert state_of(status, "ControlPlaneAvailable") == available
    assert state_of(status, "ClusterAvailable") == cluster_available


def test_the_infrastructure_is_what_the_hosted_cluster_says_of_it() -> None:
    waiting = condition("InfrastructureReady", "False", "WaitingForLoadBalancer", "no address")
    status = derive(order(), observed_with(cluster=hosted_cluster(waiting)))
    assert state_of(status, "InfrastructureReady") == ("False", "WaitingForLoadBalancer")
    assert message_of(status, "InfrastructureReady") == "no address"


@pytest.mark.parametrize(
    ("pools", "state", "message", "sets"),
    [
        ([], ("False", "NodesMissing"), "0 of 3 nodes ready", [("large", 3, 0)]),
        ([node_pool(None)], ("False", "NodesMissing"), "0 of 3 nodes ready", [("large", 3, 0)]),
        ([node_pool(2)], ("False", "NodesMissing"), "2 of 3 nodes ready", [("large", 3, 2)]),
        ([node_pool(3)], ("True", "AllNodesReady"), "3 of 3 nodes ready", [("large", 3, 3)]),
        ([node_pool(3, observed=None)], ("True", "AllNodesReady"), "3 of 3 nodes ready", [("large", 3, 3)]),
        ([node_pool(3, observed=7)], ("Unknown", "Outdated"), "0 of 3 nodes ready", [("large", 3, 0)]),
        ([node_pool(5)], ("False", "ScalingDown"), "3 of 3 nodes ready, 2 to be removed", [("large", 3, 3)]),
        ([node_pool(5, asked=None)], ("True", "AllNodesReady"), "3 of 3 nodes ready", [("large", 3, 3)]),
        ([node_pool(1), node_pool(2)], ("True", "AllNodesReady"), "3 of 3 nodes ready", [("large", 3, 3)]),
        (
            [node_pool(3), node_pool(2, kind="old")],
            ("False", "ScalingDown"),
            "3 of 3 nodes ready, 2 to be removed",
            [("large", 3, 3), ("old", 0, 2)],
        ),
        (
            [node_pool(3), node_pool(0, kind="old", deleting=True)],
            ("False", "ScalingDown"),
            "3 of 3 nodes ready, 1 to be removed",
            [("large", 3, 3), ("old", 0, 0)],
        ),
        (
            [node_pool(1), node_pool(2, kind="old")],
            ("False", "NodesMissing"),
            "1 of 3 nodes ready, 2 to be removed",
            [("large", 3, 1), ("old", 0, 2)],
        ),
        (
            [node_pool(3), {"metadata": {"name": "by-hand"}, "status": {"replicas": 9}}],
            ("True", "AllNodesReady"),
            "3 of 3 nodes ready",
            [("large", 3, 3)],
        ),
    ],
)
def test_nodes(pools: list[Object], state: Any, message: str, sets: list[tuple[str, int, int]]) -> None:
    status = derive(order(), observed_with(*pools), outcome=provisioned(order()))
    assert state_of(status, "NodesReady") == state
    assert message_of(status, "NodesReady") == message
    assert status["nodeSets"] == [{"resourceClass": name, "requested": requested, "ready": ready} for name, requested, ready in sets]
    assert status["phase"] == ("Ready" if state[0] == "True" else "Progressing")


def test_every_class_must_be_ready_and_none_makes_up_for_another() -> None:
    mixed = order(nodes={"large": 3, "small": 2})
    status = derive(mixed, observed_with(node_pool(5), node_pool(1, kind="small")), outcome=provisioned(mixed))
    assert message_of(status, "NodesReady") == "4 of 5 nodes ready, 2 to be removed"
    assert state_of(status, "NodesReady") == ("False", "NodesMissing")
    assert status["nodeRequests"] == [{"resourceClass": "large", "numberOfNodes": 5}, {"resourceClass": "small", "numberOfNodes": 1}]


def test_a_pool_that_has_yet_to_answer_neither_loses_nor_gains_nodes() -> None:
    status = derive(ready_order(), observed_with(node_pool(1, observed=7)))
    assert status["nodeSets"] == [{"resourceClass": "large", "requested": 3, "ready": 3}]
    assert state_of(status, "NodesReady") == ("Unknown", "Outdated")
    assert message_of(status, "NodesReady") == "3 of 3 nodes ready"


def test_nodes_of_a_template_that_has_not_spoken_are_not_planned() -> None:
    status = derive(order(nodes={}), NOTHING)
    assert state_of(status, "NodesReady") == ("False", "NotPlanned")
    assert "nodeSets" not in status


def test_the_templates_defaults_are_remembered() -> None:
    new = order(nodes={})
    made = with_status(new, observed_with(node_pool(2)), outcome=provisioned(new, node_requests=(NodeRequest("large", 3),)))
    assert message_of(made.status, "NodesReady") == "2 of 3 nodes ready"
    started = derive(made, HEALTHY, outcome=Outcome("provision", config_version(made), job=Job("42")))
    assert message_of(started, "NodesReady") == "3 of 3 nodes ready"
    later = derive(made, HEALTHY)
    assert later["phase"] == "Ready"
    assert message_of(derive(changed(made, templateParameters="{}"), HEALTHY), "NodesReady") == "3 of 3 nodes ready"


@pytest.mark.parametrize(
    "cluster",
    [
        hosted_cluster(condition("Progressing", "True")),
        hosted_cluster(releases=("Partial", "Completed")),
    ],
)
def test_a_change_is_not_ready_while_it_is_rolled_out(cluster: Object) -> None:
    updating = observed_from(cluster, (node_pool(3),))
    newer = changed(ready_order(), templateParameters='{"release": "4.18"}')
    in_flight = with_status(newer, updating, outcome=provisioned(newer))
    assert in_flight.phase == "Progressing"
    assert state_of(in_flight.status, "ClusterAvailable") == ("True", "Available")
    assert with_status(in_flight, HEALTHY).phase == "Ready"


def test_a_change_is_not_ready_while_nodes_are_updated() -> None:
    newer = changed(ready_order(), templateParameters='{"release": "4.18"}')
    in_flight = with_status(newer, observed_with(node_pool(3, updating=True)), outcome=provisioned(newer))
    assert in_flight.phase == "Progressing"
    assert with_status(in_flight, HEALTHY).phase == "Ready"


def test_nodes_whose_configuration_changes_are_updated() -> None:
    pool = node_pool(3)
    pool["status"]["conditions"].append(condition("UpdatingConfig", "True"))
    assert derive(order(), observed_with(pool), outcome=provisioned(order()))["phase"] == "Progressing"


def test_only_what_a_pool_says_of_its_nodes_must_be_up_to_date() -> None:
    pool = node_pool(3)
    pool["status"]["conditions"].append(condition("ValidTuningConfig", "True", generation=7))
    assert derive(order(), observed_with(pool), outcome=provisioned(order()))["phase"] == "Ready"


def test_a_hosted_cluster_that_says_little_is_believed() -> None:
    cluster = hosted_cluster()
    cluster["status"]["conditions"] = [{"type": "Available", "status": "True"}]
    status = derive(order(), observed_with(node_pool(3), cluster=cluster), outcome=provisioned(order()))
    assert status["phase"] == "Ready"
    assert state_of(status, "ControlPlaneAvailable") == ("True", "NoReason")
    cluster["status"]["conditions"] = [{"type": "Available", "status": "False", "reason": "Down"}]
    assert message_of(derive(order(), observed_with(cluster=cluster)), "ClusterAvailable") == "ControlPlaneAvailable is False (Down)"


def test_an_update_that_was_not_ordered_leaves_a_ready_cluster_ready() -> None:
    assert derive(ready_order(), observed_with(node_pool(3), cluster=hosted_cluster(condition("Progressing", "True"))))["phase"] == "Ready"


@pytest.mark.parametrize(
    ("observed", "why"),
    [
        (observed_from(None, ()), "The cluster does not exist"),
        (observed_with(node_pool(3), cluster=hosted_cluster(LOST)), "ControlPlaneAvailable is False (EtcdDown): no quorum"),
        (observed_with(node_pool(2)), "NodesReady is False (NodesMissing): 2 of 3 nodes ready"),
        (observed_with(), "NodesReady is False (NodesMissing): 0 of 3 nodes ready"),
        (
            observed_with(node_pool(3), cluster=hosted_cluster(condition("Degraded", "True", "Slow", "etcd is slow"))),
            "The cluster's Degraded is True (Slow): etcd is slow",
        ),
        (observed_with(node_pool(3), cluster=hosted_cluster(deleting=True)), "The cluster is being deleted"),
    ],
)
def test_a_ready_cluster_that_loses_something_is_degraded_and_says_why_and_comes_back(observed: ObservedState, why: str) -> None:
    lost = with_status(ready_order(), observed, 5)
    assert lost.phase == "Degraded"
    assert state_of(lost.status, "ClusterAvailable")[0] == "False"
    assert message_of(lost.status, "ClusterAvailable") == why
    assert since(lost.status, "ClusterAvailable") == text(at(5))
    back = derive(lost, HEALTHY, 9, None if observed.cluster.exists else provisioned(lost))
    assert back["phase"] == "Ready"
    assert since(back, "ClusterAvailable") == text(at(9))


@pytest.mark.parametrize("observed", [observed_with(node_pool(2)), observed_with(node_pool(3), cluster=hosted_cluster(LOST)), NOTHING])
def test_a_cluster_that_was_never_ready_is_progressing_and_not_degraded(observed: ObservedState) -> None:
    assert derive(with_status(order(), observed, outcome=provisioned(order())), observed)["phase"] == "Progressing"


@pytest.mark.parametrize("before", [ready_order, degraded_order])
@pytest.mark.parametrize(
    "observed",
    [observed_with(node_pool(3), cluster=hosted_cluster(OLD_ANSWER, generation=2)), observed_with(node_pool(3, observed=7))],
)
def test_an_outdated_answer_changes_no_phase(before: Any, observed: ObservedState) -> None:
    assert derive(before(), observed)["phase"] == before().phase


def test_an_outdated_answer_makes_nothing_ready() -> None:
    outdated = observed_with(node_pool(3), cluster=hosted_cluster(OLD_ANSWER, generation=2))
    assert derive(order(), outdated, outcome=provisioned(order()))["phase"] == "Progressing"


def test_a_node_too_many_does_not_degrade_a_ready_cluster() -> None:
    status = derive(ready_order(), observed_with(node_pool(4)))
    assert status["phase"] == "Ready"
    assert state_of(status, "NodesReady") == ("False", "ScalingDown")
    assert derive(degraded_order(), observed_with(node_pool(4)))["phase"] == "Ready"


def test_scaling_up_and_down_is_progressing_until_it_is_done() -> None:
    bigger = scaled(ready_order(), large=4)
    asked = with_status(bigger)
    assert asked.phase == "Progressing"
    assert "configVersion" not in asked.status
    assert message_of(asked.status, "NodesReady") == "3 of 4 nodes ready"
    in_flight = with_status(asked, observed_with(node_pool(3, asked=4)), outcome=provisioned(asked))
    assert in_flight.phase == "Progressing"
    done = with_status(in_flight, observed_with(node_pool(4, asked=4)))
    assert done.phase == "Ready"
    smaller = scaled(done, large=2)
    shrinking = with_status(smaller, observed_with(node_pool(3, asked=2)), outcome=provisioned(smaller))
    assert shrinking.phase == "Progressing"
    assert message_of(shrinking.status, "NodesReady") == "2 of 2 nodes ready, 1 to be removed"
    assert with_status(shrinking, observed_with(node_pool(2, asked=2))).phase == "Ready"


def test_a_class_that_is_no_longer_ordered_holds_ready_back_until_its_pool_is_gone() -> None:
    moved = scaled(ready_order(), small=1)
    both = observed_with(node_pool(3, deleting=True), node_pool(1, asked=1, kind="small"))
    in_flight = with_status(moved, both, outcome=provisioned(moved))
    assert in_flight.phase == "Progressing"
    assert with_status(in_flight, observed_with(node_pool(1, asked=1, kind="small"))).phase == "Ready"


def test_a_changed_spec_forgets_what_was_applied_and_applied() -> None:
    status = derive(changed(ready_order(), templateParameters="{}"))
    assert "configVersion" not in status
    assert status["phase"] == "Progressing"
    assert state_of(status, "TemplateApplied") == ("False", "SpecNotApplied")
    assert state_of(status, "Accepted") == ("Unknown", "NotChecked")
    assert state_of(status, "ClusterAvailable") == ("True", "Available")


def test_a_spec_that_only_reads_otherwise_stays_ready() -> None:
    status = derive(changed(ready_order(), templateParameters='{"name":"x","size":1}'))
    assert status["phase"] == "Ready"
    assert status["observedGeneration"] == 2
    assert state_of(status, "Accepted") == ("True", "Valid")


def test_the_template_is_applied_after_its_last_step() -> None:
    made = installed()
    assert made.phase == "Progressing"
    assert state_of(made.status, "TemplateApplied") == ("False", "PostInstallPending")
    done = derive(made, outcome=Outcome("post_install", config_version(made), finished=True, template_applied=True))
    assert done["phase"] == "Ready"
    assert state_of(done, "TemplateApplied") == ("True", "Applied")


def test_a_second_provision_does_not_undo_a_post_install() -> None:
    assert derive(ready_order(), outcome=provisioned(order(), template_applied=False))["phase"] == "Ready"


def test_a_post_install_for_a_spec_that_was_never_applied_applies_nothing() -> None:
    status = derive(order(), outcome=Outcome("post_install", config_version(order()), finished=True, template_applied=True))
    assert state_of(status, "TemplateApplied") == ("False", "SpecNotApplied")


def test_a_hosted_cluster_that_is_created_again_has_its_template_still_to_be_applied() -> None:
    recreated = observed_with(node_pool(3), cluster=hosted_cluster(created=at(5)))
    observed_recreated = with_status(ready_order(), recreated, 6)
    assert observed_recreated.phase == "Degraded"
    assert state_of(observed_recreated.status, "TemplateApplied") == ("False", "PostInstallPending")
    applied = derive(
        observed_recreated, recreated, 7, Outcome("post_install", config_version(order()), finished=True, template_applied=True)
    )
    assert applied["phase"] == "Ready"
    in_one_run = derive(ready_order(), recreated, 7, provisioned(order()))
    assert in_one_run["phase"] == "Ready"
    assert since(in_one_run, "TemplateApplied") == text(at(7))
    assert since(in_one_run, "NamespaceCreated") == text(START)


def test_what_was_applied_goes_with_the_hosted_cluster() -> None:
    gone = with_status(ready_order(), observed_from(None, ()))
    assert state_of(gone.status, "TemplateApplied") == ("False", "ClusterMissing")
    back = derive(gone, HEALTHY, outcome=provisioned(gone, template_applied=False))
    assert state_of(back, "TemplateApplied") == ("False", "PostInstallPending")
    assert back["phase"] == "Degraded"


def test_a_refused_order_says_why() -> None:
    status = derive(order(), NOTHING, outcome=failed(order(), BAD, accepted=False))
    assert status["phase"] == "Failed"
    assert state_of(status, "Accepted") == ("False", "ParametersInvalid")
    assert message_of(status, "Accepted") == "size: must be a number"
    assert status["failure"] == {"reason": "ParametersInvalid", "message": "size: must be a number", "retryable": False, "attempts": 1}
    assert "configVersion" not in status
    again = derive(changed(stored(order(), status), templateParameters="{}"), NOTHING)
    assert again["phase"] == "Progressing"
    assert "failure" not in again
    assert state_of(again, "Accepted") == ("Unknown", "NotChecked")


def test_an_order_is_not_refused_without_a_reason() -> None:
    with pytest.raises(ValueError, match="says why"):
        Outcome("provision", "x", accepted=False)


def test_an_accepted_order_stays_accepted_for_its_spec() -> None:
    accepted = with_status(order(), NOTHING, outcome=Outcome("provision", config_version(order()), accepted=True))
    assert state_of(accepted.status, "Accepted") == ("True", "Valid")
    assert accepted.phase == "Progressing"
    assert state_of(derive(accepted, NOTHING), "Accepted") == ("True", "Valid")


def test_a_failed_run_names_its_task_and_counts_the_attempts() -> None:
    once = with_status(order(), NOTHING, outcome=failed(order(), UNREACHABLE))
    assert once.phase == "Failed"
    assert state_of(once.status, "Accepted") == ("Unknown", "NotChecked")
    assert state_of(once.status, "TemplateApplied") == ("False", "Unreachable")
    assert message_of(once.status, "TemplateApplied") == "Apply the objects: no answer"
    assert (once.status["failure"]["attempts"], once.status["failure"]["nextAttempt"]) == (1, text(at(0.5)))
    assert derive(once, NOTHING)["phase"] == "Failed"
    twice = with_status(once, NOTHING, 1, failed(order(), UNREACHABLE))
    assert (twice.status["failure"]["attempts"], twice.status["failure"]["nextAttempt"]) == (2, text(at(2)))


def test_a_run_that_starts_keeps_the_failure_and_one_that_succeeds_clears_it() -> None:
    broken = with_status(order(), NOTHING, outcome=failed(order(), UNREACHABLE))
    job = Job("42", "https://aap.example.com/jobs/42", at(1))
    started = with_status(broken, NOTHING, 1, Outcome("provision", config_version(order()), job=job))
    assert started.status["failure"]["attempts"] == 1
    assert started.status["job"] == {"id": "42", "url": "https://aap.example.com/jobs/42", "startedAt": text(at(1))}
    ended = derive(started, HEALTHY, 2, provisioned(order()))
    assert "failure" not in ended
    assert ended["phase"] == "Ready"
    assert ended["job"]["id"] == "42"


def test_a_changed_spec_counts_its_attempts_from_the_beginning() -> None:
    broken = changed(with_status(order(), NOTHING, outcome=failed(order(), UNREACHABLE)), templateParameters="{}")
    assert derive(broken, NOTHING, 1, failed(broken, UNREACHABLE))["failure"]["attempts"] == 1


def test_the_report_of_a_run_for_an_older_spec_says_nothing_of_the_new_one() -> None:
    newer = changed(order(), templateParameters="{}")
    job = Job("42")
    for late in (provisioned(order(), job=job), failed(order(), BAD, accepted=False, job=job)):
        status = derive(newer, HEALTHY, outcome=late)
        assert status["phase"] == "Progressing"
        assert "failure" not in status
        assert "configVersion" not in status
        assert status["job"] == {"id": "42"}


def test_a_failed_repair_takes_nothing_from_a_healthy_cluster() -> None:
    status = derive(ready_order(), outcome=failed(order(), UNREACHABLE))
    assert status["phase"] == "Ready"
    assert status["failure"]["reason"] == "Unreachable"
    assert state_of(status, "TemplateApplied") == ("True", "Applied")


def test_a_degraded_cluster_whose_repair_fails_stays_degraded_and_shows_the_failure() -> None:
    status = derive(degraded_order(), observed_with(node_pool(2)), outcome=failed(order(), UNREACHABLE))
    assert status["phase"] == "Degraded"
    assert status["failure"]["reason"] == "Unreachable"


def test_a_failed_change_of_a_ready_cluster_is_failed() -> None:
    newer = changed(ready_order(), templateParameters="{}")
    status = derive(newer, outcome=failed(newer, UNREACHABLE))
    assert status["phase"] == "Failed"
    assert state_of(status, "ClusterAvailable") == ("True", "Available")


@pytest.mark.parametrize(
    "before",
    [
        order,
        progressing_order,
        installed,
        ready_order,
        degraded_order,
        refused_order,
    ],
)
@pytest.mark.parametrize(
    ("observed", "left"),
    [
        (HEALTHY, "Waiting for the deletion of the cluster, 1 node set, the namespace"),
        (observed_from(None, (node_pool(3), node_pool(1))), "Waiting for the deletion of 2 node sets, the namespace"),
        (NOTHING, "Everything is deleted"),
    ],
)
def test_deletion_wins_in_every_phase(before: Any, observed: ObservedState, left: str) -> None:
    status = derive(deleted(before()), observed)
    assert status["phase"] == "Deleting"
    assert state_of(status, "Deleting") == ("True", "Requested")
    assert message_of(status, "Deleting") == left
    assert "failure" not in status
    assert ("clusterReference" in status) is observed.namespace_exists


def test_a_refused_order_stays_refused_when_it_is_deleted() -> None:
    assert state_of(derive(deleted(refused_order()), NOTHING), "Accepted") == ("False", "ParametersInvalid")


def test_deletion_says_when_all_was_asked_to_go_and_what_failed() -> None:
    item = deleted(ready_order())
    asked = with_status(item, outcome=Outcome("delete", config_version(item), finished=True))
    assert state_of(asked.status, "Deleting") == ("True", "DeletingCluster")
    assert state_of(derive(asked, NOTHING), "Deleting") == ("True", "DeletingCluster")
    broken = derive(asked, outcome=failed(item, UNREACHABLE, "delete"))
    assert broken["phase"] == "Deleting"
    assert state_of(broken, "Deleting") == ("True", "Unreachable")
    assert broken["failure"]["attempts"] == 1


def test_a_provision_that_ends_after_the_deletion_reports_nothing() -> None:
    item = deleted(with_status(order(), NOTHING))
    assert "failure" not in derive(item, NOTHING, outcome=failed(item, BAD))
    assert "configVersion" not in derive(item, NOTHING, outcome=provisioned(item))


def test_a_transition_time_moves_only_with_its_status() -> None:
    first = with_status(order(), observed_with(node_pool(1)), 0, provisioned(order()))
    second = with_status(first, observed_with(node_pool(2)), 1)
    assert message_of(second.status, "NodesReady") == "2 of 3 nodes ready"
    assert since(second.status, "NodesReady") == text(START)
    third = derive(second, HEALTHY, 2)
    assert since(third, "NodesReady") == text(at(2))
    assert since(third, "ControlPlaneAvailable") == text(START)


def test_nothing_changes_when_nothing_changed() -> None:
    ready = ready_order()
    assert derive(ready, HEALTHY, 60) == ready.status


def test_conditions_and_fields_of_others_stay_where_and_as_they_are() -> None:
    theirs = {"type": "ClusterStorageReady", "status": "False", "reason": "X", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    ours = condition("NodesReady", "False")
    status = order_status.derive_status(order({"conditions": [ours, theirs], "apiEndpoint": "10.0.0.1"}), HEALTHY, START)
    assert status["conditions"][1] == theirs
    assert [item["type"] for item in status["conditions"]][:3] == ["NodesReady", "ClusterStorageReady", "Accepted"]
    assert status["apiEndpoint"] == "10.0.0.1"


def test_the_reference_is_complete_or_not_there() -> None:
    assert "clusterReference" not in derive(order(), NOTHING)
    assert derive(order(), observed_from(None, ()))["clusterReference"] == REFERENCE | {"hostedClusterName": ""}
    theirs = REFERENCE | {"serviceAccountName": "theirs", "roleBindingName": "theirs-too"}
    assert derive(order({"clusterReference": theirs}))["clusterReference"] == theirs
    assert "clusterReference" not in derive(ready_order(), NOTHING)


@pytest.mark.parametrize(
    ("endpoint", "api"),
    [
        ({"host": "1.2.3.4", "port": 443}, "https://1.2.3.4:443"),
        ({"host": "fd00::1", "port": 6443}, "https://[fd00::1]:6443"),
        ({}, None),
        (None, None),
        ({"host": "", "port": 443}, None),
        ({"host": "1.2.3.4", "port": 0}, None),
    ],
)
def test_address_of_the_api_server(endpoint: Any, api: str | None) -> None:
    cluster = hosted_cluster()
    cluster["status"]["controlPlaneEndpoint"] = endpoint
    assert derive(ready_order(), observed_with(node_pool(3), cluster=cluster)).get("apiURL") == api


def test_console_that_was_observed_stays_with_its_cluster() -> None:
    observed = replace(HEALTHY, cluster=replace(HEALTHY.cluster, console_url="https://console.x.org"))
    assert derive(ready_order(), observed)["consoleURL"] == "https://console.x.org"


# Versions


@pytest.mark.parametrize(
    ("changes", "version"),
    [
        ({}, None),
        ({"version": "image"}, {"desired": "image"}),
        ({"version": "image", "desired_version": "4.17.1"}, {"desired": "4.17.1"}),
        (
            {"version": "4.17.1", "running_version": "4.17.0", "available_updates": ("4.17.1", "4.17.2")},
            {"running": "4.17.0", "desired": "4.17.1", "availableUpdates": ["4.17.1", "4.17.2"]},
        ),
    ],
)
def test_versions_as_far_as_the_provider_knows_them(changes: Any, version: Any) -> None:
    observed = replace(HEALTHY, cluster=replace(HEALTHY.cluster, **changes))
    assert derive(ready_order(), observed).get("version") == version


def test_versions_that_a_cluster_makes_up_fit_the_schema() -> None:
    hostile = replace(HEALTHY.cluster, running_version="9" * 999, desired_version="8" * 999, available_updates=("7" * 999,) * 999)
    version = derive(ready_order(), replace(HEALTHY, cluster=hostile))["version"]
    assert max(map(len, (version["running"], version["desired"], *version["availableUpdates"]))) <= 255
    assert len(version["availableUpdates"]) == 100


def test_versions_stay_while_the_provider_cannot_be_asked() -> None:
    known = stored(ready_order(), ready_order().status | {"version": {"running": "4.17.0", "desired": "4.17.1", "availableUpdates": ["x"]}})
    assert derive(known, ObservedState(unknown_cluster(known, KubeError("away")), True))["version"] == known.status["version"]


# An update that is refused


def test_refused_update_fails_the_order_and_leaves_the_cluster_available() -> None:
    before = ready_order()
    new = changed(before, templateParameters=json.dumps({"size": 2}))
    refused = replace(
        HEALTHY.cluster, status="failed", status_details="refused: too old", retryable=False, updating=True, change_refused=True
    )
    status = derive(new, replace(HEALTHY, cluster=refused), outcome=provisioned(new))
    assert (status["phase"], status["failure"]["reason"], status["failure"]["message"]) == ("Failed", "ClusterFailed", "refused: too old")
    assert "nextAttempt" not in status["failure"]
    assert state_of(status, "ClusterAvailable") == ("True", "Available")
    over = derive(stored(new, status), HEALTHY)
    assert (over["phase"], over.get("failure")) == ("Ready", None)


# Nodes that nothing counts


def test_cluster_whose_nodes_nothing_counts_is_ready_once_it_is_installed() -> None:
    uncounted = replace(HEALTHY.cluster, node_sets=(replace(HEALTHY.cluster.node_sets[0], ready=0, counted=False),))
    status = derive(order(), replace(HEALTHY, cluster=uncounted), outcome=provisioned(order()))
    assert state_of(status, "NodesReady") == ("Unknown", "NodesNotCounted")
    assert message_of(status, "NodesReady") == "The provider cannot count the nodes of large"
    assert (status["phase"], status["readyNodes"]) == ("Ready", "?/3")
    assert status["nodeSets"] == [{"resourceClass": "large", "requested": 3}]
    assert "nodeRequests" not in status
    again = stored(order(), status)
    assert derive(again, ObservedState(unknown_cluster(again, KubeError("away")), True))["readyNodes"] == "?/3"


def test_uncounted_nodes_of_a_class_that_is_not_ordered_are_surplus() -> None:
    uncounted = replace(HEALTHY.cluster.node_sets[0], resource_class="small", counted=False)
    status = derive(order(), replace(HEALTHY, cluster=replace(HEALTHY.cluster, node_sets=(*HEALTHY.cluster.node_sets, uncounted))))
    assert state_of(status, "NodesReady") == ("False", "ScalingDown")


def test_texts_of_others_fit_the_schema() -> None:
    loud = condition("Available", "False", "not a word: 1,", "m" * 40_000)
    status = derive(ready_order(), observed_with(cluster=hosted_cluster(loud)))
    assert state_of(status, "ControlPlaneAvailable") == ("False", "notaword:1")
    assert len(message_of(status, "ClusterAvailable")) == 32768
    long = Failure("1 2", "m" * 40_000, "t" * 40_000)
    derive(order(), NOTHING, outcome=failed(order(), long, job=Job("j" * 1000, "u" * 5000)))


def test_from_order_to_ready_with_the_states_of_the_sandbox() -> None:
    """The stand-in of HyperShift as it goes: nothing, starting, available, first node, all nodes."""
    image = {"release": {"image": "ocp-release:4.17.0-x86_64"}}
    cluster: Object = {"metadata": {"name": "demo", "namespace": "orders", "generation": 1}, "spec": image}
    pool = node_pool(None)
    pool["spec"] |= image
    item, phases, nodes = order(), [], []
    item = with_status(item, NOTHING)
    item = with_status(item, observed_with(pool, cluster=cluster), outcome=provisioned(item))
    for control_plane, ready in [(ControlPlane(), 0), *((ControlPlane(True, "127.0.0.1", 6443), count) for count in (0, 1, 3, 3, 2, 3))]:
        cluster["status"] = hosted_cluster_status(cluster, control_plane, ready, text(START))
        pool["status"] = node_pool_status(pool, ready, control_plane, text(START))
        item = with_status(item, observed_with(pool, cluster=cluster))
        phases.append(item.phase)
        nodes.append(message_of(item.status, "NodesReady"))
    assert phases == ["Progressing", "Progressing", "Progressing", "Ready", "Ready", "Degraded", "Ready"]
    assert nodes == [f"{count} of 3 nodes ready" for count in (0, 0, 1, 3, 3, 2, 3)]


# Runs that were killed

KILLED = LostRun("demo-local-4711-5d1c0f2e", at(1), began=at(0))


def test_a_killed_run_is_a_failure_that_names_it_and_is_tried_again() -> None:
    status = derive(progressing_order(), NOTHING, minutes=2, lost_run=KILLED)
    assert status["phase"] == "Failed"
    failure = status["failure"]
    assert (failure["reason"], failure["retryable"], failure["attempts"]) == ("RunLost", True, 1)
    assert "demo-local-4711-5d1c0f2e" in failure["message"] and text(at(1)) in failure["message"]
    assert state_of(status, "TemplateApplied") == ("False", "RunLost")


def test_the_wait_after_a_killed_run_counts_from_its_end_and_not_from_when_it_was_observed() -> None:
    for minutes in (2, 600):
        assert derive(progressing_order(), NOTHING, minutes, lost_run=KILLED)["failure"]["nextAttempt"] == text(at(1.5))


def test_a_killed_run_counts_once_and_the_next_one_that_is_killed_counts_again() -> None:
    broken = with_status(order(), NOTHING, outcome=failed(order(), UNREACHABLE))
    once = stored(broken, derive(broken, NOTHING, 2, lost_run=KILLED))
    assert once.failure and once.failure.attempts == 2
    twice = derive(once, NOTHING, 9, lost_run=LostRun("demo-local-4712-aaaaaaaa", at(8), at(7)))
    assert twice["failure"]["attempts"] == 3


def test_the_next_run_that_comes_to_its_end_clears_a_killed_one() -> None:
    killed = stored(progressing_order(), derive(progressing_order(), NOTHING, 2, lost_run=KILLED))
    assert derive(killed, NOTHING)["failure"] == killed.status["failure"]  # the next run has the lock, and is not through yet
    status = derive(killed, HEALTHY, 3, provisioned(killed))
    assert status["phase"] == "Ready" and "failure" not in status


def test_a_killed_deletion_says_so_and_stays_a_deletion() -> None:
    status = derive(deleted(ready_order()), HEALTHY, 2, lost_run=KILLED)
    assert status["phase"] == "Deleting"
    assert state_of(status, "Deleting") == ("True", "RunLost")


def test_a_killed_run_leaves_a_cluster_that_is_as_ordered_ready() -> None:
    status = derive(ready_order(), HEALTHY, 2, lost_run=KILLED)
    assert status["phase"] == "Ready" and status["failure"]["reason"] == "RunLost"


def test_a_killed_run_of_an_earlier_order_of_that_name_is_not_reported_on_this_one() -> None:
    assert "failure" not in derive(order(creationTimestamp=text(at(0.5))), NOTHING, 2, lost_run=KILLED)
    assert "failure" in derive(order(creationTimestamp=text(at(0))), NOTHING, 2, lost_run=KILLED)


def test_nodes_that_were_there_before_are_neither_missed_nor_too_many() -> None:
    new = order(nodes={})
    given = NodeSet("any", "any", 5, 4, preexisting=True)
    healthy = ObservedCluster(
        status="ready", installed=True, node_sets=(given,), conditions={"Available": ConditionState("True", "Healthy")}
    )
    made = with_status(new, ObservedState(healthy, namespace_exists=True), 0, provisioned(new, node_requests=()))
    assert (made.phase, state_of(made.status, "NodesReady")) == ("Ready", ("True", "AllNodesReady"))
    assert made.status["nodeSets"] == [{"resourceClass": "any", "requested": 0, "ready": 4}]
    assert next_action(made, ObservedState(healthy, True), at(1)) is None


def test_cluster_that_failed_fails_its_order_until_it_is_healthy() -> None:
    new = order()
    broken = replace(HEALTHY.cluster, status="failed", status_details="No quota", retryable=False)
    failed = with_status(new, ObservedState(broken, namespace_exists=True), 0, provisioned(new))
    assert failed.phase == "Failed"
    assert failed.failure is not None
    assert (failed.failure.reason, failed.failure.message, failed.failure.attempts) == ("ClusterFailed", "No quota", 1)
    assert derive(failed, ObservedState(broken, namespace_exists=True), 5) == failed.status
    assert next_action(failed, ObservedState(broken, True), at(60)) is None
    assert with_status(failed, HEALTHY, 9).phase == "Ready"


def test_provider_that_cannot_be_asked_changes_nothing_but_what_is_said_of_it() -> None:
    ready = ready_order()
    lost = ObservedState(unknown_cluster(ready, TimeoutError("no answer")), namespace_exists=True)
    observed = with_status(ready, lost, 5)
    assert observed.phase == "Ready"
    assert state_of(observed.status, "ControlPlaneAvailable") == ("Unknown", "TimeoutError")
    assert observed.status["apiURL"] == ready.status["apiURL"]
    assert observed.status["provider"] == ready.status["provider"]
    assert with_status(observed, HEALTHY, 6).phase == "Ready"
    gone = derive(deleted(ready), lost, 7)
    assert "the cluster" in message_of(gone, "Deleting")


def test_cluster_stays_with_the_provider_that_made_it() -> None:
    made = ready_order()
    assert made.status["provider"]["type"] == "hypershift"
    again = with_status(changed(made, templateParameters="{}"), HEALTHY, 5, provisioned(made, provider="capi"))
    assert again.status["provider"]["type"] == "hypershift"


# Runs that did not begin

UNSTARTED = UnstartedRun(order().uid, "0b6f5d0e", "provision", 300, at(60))


def test_a_run_that_does_not_begin_is_a_failure_that_says_what_to_check_and_is_tried_again_once_it_counts_as_lost() -> None:
    status = derive(progressing_order(), NOTHING, minutes=5, lost_run=UNSTARTED)
    assert status["phase"] == "Failed"
    failure = status["failure"]
    assert (failure["reason"], failure["retryable"], failure["attempts"]) == ("RunNotStarted", True, 1)
    assert failure["nextAttempt"] == text(at(60.5))
    for said in ("within 300 seconds", "launched provision", "eda-event-uuid-0b6f5d0e", "prompts for variables and limit"):
        assert said in failure["message"]
    assert state_of(status, "TemplateApplied") == ("False", "RunNotStarted")


def test_each_run_that_does_not_begin_doubles_the_wait() -> None:
    once = stored(progressing_order(), derive(progressing_order(), NOTHING, 5, lost_run=UNSTARTED))
    assert derive(once, NOTHING, 6)["failure"] == once.status["failure"]
    twice = derive(once, NOTHING, 66, lost_run=replace(UNSTARTED, event="1c7a", at=at(121)))["failure"]
    assert (twice["attempts"], twice["nextAttempt"]) == (2, text(at(122)))


def test_a_run_that_begins_late_clears_the_failure_at_its_end() -> None:
    late = stored(progressing_order(), derive(progressing_order(), NOTHING, 5, lost_run=UNSTARTED))
    assert "failure" not in derive(late, HEALTHY, 9, provisioned(late))


def test_a_run_for_an_earlier_order_of_that_name_is_not_missed_on_this_one() -> None:
    assert "failure" not in derive(progressing_order(), NOTHING, 5, lost_run=replace(UNSTARTED, uid="another"))
