"""The next action for an order, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Failure, Names, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.next_action import action_reason, next_action
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.outcome import Outcome
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.tests.unit.orders.order_samples import (
    HEALTHY,
    START,
    Object,
    at,
    changed,
    condition,
    deleted,
    hosted_cluster,
    new_hosted_cluster,
    node_pool,
    observed_from,
    observed_with,
    order,
    provisioned,
    ready_order,
    scaled,
    stored,
    with_status,
)

NOTHING = ObservedState()
UNREACHABLE = Failure("Unreachable", "no answer", "Apply")
BAD = Failure("ParametersInvalid", "size: must be a number", retryable=False)


def action(of: ClusterOrder, observed: ObservedState = HEALTHY, minutes: float = 0) -> str | None:
    return next_action(of, observed, at(minutes))


def failed(of: ClusterOrder, failure: Failure, observed: ObservedState = NOTHING, **outcome: Any) -> ClusterOrder:
    return with_status(of, observed, START, Outcome("provision", config_version(of), failure=failure, **outcome))


def installed(observed: ObservedState = HEALTHY) -> ClusterOrder:
    """An order whose template has still to do its post_install."""
    return with_status(order(), observed, START, provisioned(order(), template_applied=False))


def managed_as(of: ClusterOrder, state: str) -> ClusterOrder:
    raw = of.raw | {"metadata": of.raw["metadata"] | {"annotations": {"cloudkit.openshift.io/management-state": state}}}
    return ClusterOrder.from_object(raw)


def without_finalizers(of: ClusterOrder, *left: str) -> ClusterOrder:
    return ClusterOrder.from_object(of.raw | {"metadata": of.raw["metadata"] | {"finalizers": list(left)}})


def test_a_new_order_is_provisioned() -> None:
    assert action(order(), NOTHING) == "provision"
    assert action(with_status(order(), NOTHING), NOTHING) == "provision"


def test_a_ready_order_needs_nothing() -> None:
    assert action(ready_order()) is None


def test_a_changed_spec_is_provisioned() -> None:
    assert action(changed(ready_order(), templateParameters='{"size": 2}')) == "provision"
    assert action(with_status(changed(ready_order(), templateParameters='{"size": 2}'), HEALTHY)) == "provision"


def test_a_change_that_was_reverted_is_provisioned_since_half_of_it_may_have_been_made() -> None:
    ready = ready_order()
    there_and_back = scaled(with_status(scaled(ready, large=5), HEALTHY), large=3)
    assert action(there_and_back) == "provision"


def test_a_spec_that_only_reads_otherwise_needs_nothing() -> None:
    assert action(changed(ready_order(), templateParameters='{"name":"x",  "size":1}')) is None


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ([], "provision"),
        ([node_pool(3)], None),
        ([node_pool(0)], None),  # nodes that are missing come by themselves: the pool asks for them
        ([node_pool(None)], None),
        ([node_pool(3, asked=2)], "provision"),
        ([node_pool(3, asked=4)], "provision"),
        ([node_pool(3, asked=None)], None),  # an autoscaler's business
        ([node_pool(1, asked=1), node_pool(2, asked=2)], None),  # two pools of one class
        ([node_pool(3), node_pool(1, asked=1, kind="small")], "provision"),
        ([node_pool(3), node_pool(0, asked=0, kind="small")], "provision"),
        ([node_pool(3), node_pool(1, asked=1, kind="small", deleting=True)], None),  # is being deleted already
        ([node_pool(3, deleting=True)], None),  # must be deleted before it can be created again
        ([node_pool(3), {"metadata": {"name": "by-hand"}, "spec": {"replicas": 1}}], None),
    ],
)
def test_pools_that_are_not_as_ordered_are_provisioned(pools: list[Object], expected: str | None) -> None:
    assert action(ready_order(), observed_with(*pools)) == expected


def test_a_lost_hosted_cluster_is_provisioned() -> None:
    assert action(ready_order(), NOTHING) == "provision"
    assert action(ready_order(), observed_from(None, [node_pool(3)])) == "provision"


def test_a_hosted_cluster_that_is_being_deleted_is_waited_for() -> None:
    assert action(ready_order(), observed_with(cluster=hosted_cluster(deleting=True))) is None
    assert action(changed(ready_order(), templateParameters="{}"), observed_with(cluster=hosted_cluster(deleting=True))) is None


def test_the_templates_default_nodes_are_held_once_known() -> None:
    ready = ready_order(nodes={})
    assert action(ready) is None
    assert action(ready, observed_with()) == "provision"
    assert action(ready, observed_with(node_pool(2, asked=2))) == "provision"


def test_pools_are_not_scaled_while_it_is_unknown_how_many_nodes_were_ordered() -> None:
    bare = order(nodes={})
    assert action(stored(bare, {"configVersion": config_version(bare)})) == "post_install"


def test_a_template_without_nodes_is_content_without_pools() -> None:
    new = order(nodes={})
    made = with_status(new, observed_with(), START, provisioned(new, node_requests=()))
    assert made.phase == "Ready"
    assert action(made, observed_with()) is None
    assert action(made) == "provision"


def test_requests_of_the_same_class_are_added_up() -> None:
    twice = changed(order(), nodeRequests=[{"resourceClass": "large", "numberOfNodes": count} for count in (1, 2)])
    made = with_status(twice, HEALTHY, START, provisioned(twice))
    assert made.phase == "Ready"
    assert action(made) is None


def test_post_install_follows_as_soon_as_the_control_plane_is_available() -> None:
    waiting = observed_with(node_pool(None), cluster=new_hosted_cluster())
    assert action(installed(waiting), waiting) is None
    assert action(installed(), observed_with(node_pool(0))) == "post_install"


@pytest.mark.parametrize(
    "available", [condition("Available", "False"), condition("Available", "True", generation=7), condition("Available", "Unknown")]
)
def test_post_install_waits_for_a_control_plane_that_says_so_itself(available: Object) -> None:
    assert action(installed(), observed_with(node_pool(3), cluster=hosted_cluster(available))) is None


def test_post_install_is_done_once_for_a_spec() -> None:
    made = installed()
    done = with_status(made, HEALTHY, START, Outcome("post_install", config_version(made), finished=True, template_applied=True))
    assert done.phase == "Ready"
    assert action(done) is None
    bigger = scaled(done, large=4)
    observed = observed_with(node_pool(4, asked=4))
    assert action(bigger, observed) == "provision"
    applied = with_status(bigger, observed, START, provisioned(bigger, template_applied=False))
    assert action(applied, observed) == "post_install"


def test_post_install_is_done_again_for_a_hosted_cluster_that_was_created_again() -> None:
    recreated = observed_with(node_pool(3), cluster=hosted_cluster(created=at(5)))
    assert action(ready_order(), recreated) == "post_install"
    assert action(with_status(ready_order(), recreated, at(6)), recreated) == "post_install"


@pytest.mark.parametrize(("status", "reason", "expected"), [("False", "Missing", "post_install"), ("False", "GitOperationFailed", None)])
def test_what_is_missing_of_flux_is_applied_again_after_a_while(status: str, reason: str, expected: str | None) -> None:
    ready = ready_order()
    missing = condition("GitOpsSourceReady", status, reason) | {"lastTransitionTime": at(0).isoformat()}
    of = stored(ready, ready.status | {"conditions": [*ready.status["conditions"], missing]})
    assert (action(of, minutes=4.9), action(of, minutes=5)) == (None, expected)
    assert action(of, observed_with(node_pool(3), cluster=hosted_cluster(condition("Available", "False"))), minutes=5) is None
    assert action_reason(of, HEALTHY.cluster, "post_install") == "GitOpsMissing"


def test_a_failure_is_waited_out() -> None:
    once = failed(order(), UNREACHABLE)
    assert [action(once, NOTHING, minutes) for minutes in (0, 0.4, 0.5, 60)] == [None, None, "provision", "provision"]
    twice = failed(once, UNREACHABLE)
    assert [action(twice, NOTHING, minutes) for minutes in (0.5, 0.9, 1)] == [None, None, "provision"]


def test_a_failed_post_install_is_repeated_and_not_the_whole() -> None:
    made = installed()
    broken = with_status(made, HEALTHY, START, Outcome("post_install", config_version(made), failure=UNREACHABLE))
    assert (action(broken), action(broken, minutes=1)) == (None, "post_install")


def test_a_changed_spec_does_not_wait_for_the_failure_of_the_old_one() -> None:
    assert action(changed(failed(order(), UNREACHABLE), templateParameters="{}"), NOTHING) == "provision"
    assert action(changed(failed(order(), BAD), templateParameters="{}"), NOTHING) == "provision"


def test_what_is_not_retryable_is_not_tried_again_with_the_same_spec() -> None:
    assert action(failed(order(), BAD, accepted=False), NOTHING, minutes=10_000) is None


def test_a_failed_repair_of_a_ready_cluster_is_repeated() -> None:
    ready = failed(ready_order(), UNREACHABLE, HEALTHY)
    assert ready.phase == "Ready"
    assert (action(ready), action(ready, minutes=1)) == (None, "provision")


@pytest.mark.parametrize("state", ["unmanaged", "manual"])
def test_an_unmanaged_order_is_only_deleted(state: str) -> None:
    for item in (order(), changed(ready_order())):
        assert action(managed_as(item, state), NOTHING) is None
    assert action(deleted(managed_as(ready_order(), state)), NOTHING) == "delete"


def test_a_deleted_order_is_deleted_in_every_phase() -> None:
    for item in (order(), with_status(order(), NOTHING), installed(), ready_order(), failed(order(), BAD), failed(order(), UNREACHABLE)):
        for observed in (NOTHING, HEALTHY, observed_with(cluster=hosted_cluster(deleting=True))):
            assert action(deleted(item), observed) == "delete"


@pytest.mark.parametrize(
    ("finalizers", "external", "expected"),
    [
        (["cloudkit.openshift.io/infrastructure"], False, "delete"),
        (["cloudkit.openshift.io/infrastructure"], True, "delete"),
        (["cloudkit.openshift.io/finalizer"], False, "delete"),
        (["cloudkit.openshift.io/finalizer"], True, None),
        (["example.com/other", "osac.openshift.io/infrastructure"], False, None),
        ([], False, None),
    ],
)
def test_deletion_ends_with_our_finalizers(finalizers: list[str], external: bool, expected: str | None) -> None:
    item = replace(without_finalizers(deleted(ready_order()), *finalizers), names=Names(external_controller=external))
    assert action(item, NOTHING) == expected


def test_what_a_run_has_begun_to_delete_is_waited_for() -> None:
    item = deleted(ready_order())
    deleting = observed_with(node_pool(3, deleting=True), cluster=hosted_cluster(deleting=True))
    started = with_status(item, deleting, START, Outcome("delete", config_version(item)))
    assert action(started, deleting) == "delete"  # it may have been killed before it asked for everything
    asked = with_status(item, deleting, START, Outcome("delete", config_version(item), finished=True))
    assert action(asked, deleting) is None
    assert action(with_status(asked, deleting), deleting) is None
    assert action(asked, observed_from(None, [node_pool(3, deleting=True)])) is None
    assert action(asked, NOTHING) == "delete"  # the rest: namespace and finalizers
    assert action(asked, HEALTHY) == "delete"  # created again meanwhile
    assert action(asked, observed_with(node_pool(3, deleting=True))) == "delete"


def test_a_failed_deletion_is_repeated_when_due() -> None:
    item = deleted(ready_order())
    broken = with_status(item, HEALTHY, START, Outcome("delete", config_version(item), failure=UNREACHABLE))
    assert (action(broken), action(broken, minutes=1)) == (None, "delete")


def test_explicit_requests_win_over_remembered_defaults() -> None:
    ready = ready_order(nodes={})
    named = changed(ready, nodeRequests=[{"resourceClass": "large", "numberOfNodes": 1}])
    applied = with_status(named, HEALTHY, START, provisioned(named, node_requests=(NodeRequest("large", 1),)))
    assert action(applied) == "provision"
