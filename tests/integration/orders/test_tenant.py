"""Orders as their tenants deal with them, on a real API server: created, changed beside other managers, deleted, waited for, shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import ApplyConflict, Invalid
from ansible_collections.openfleet.clusters.plugins.module_utils.lock.fenced_writer import Change
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import tenant as order_tenant
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.pending import next_actions
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.tenant import DesiredOrder, NotInTime, OrderFailed, OrderRefused

NAMES = Names()
TEMPLATE = "ocp_4_17_small"
SECRET = "hunter2-do-not-show"  # noqa: S105 made up
Apply = Callable[..., Change]


@pytest.fixture
def kube(hub: Access) -> Kube:
    return Kube.connect({"kubeconfig": str(hub.kubeconfig)})


@pytest.fixture
def apply(kube: Kube, namespace: str) -> Apply:
    def apply(name: str = "demo", force: bool = False, check_mode: bool = False, **wanted: Any) -> Change:
        return order_tenant.apply(kube, NAMES, DesiredOrder(namespace, name, **wanted), force=force, check_mode=check_mode)

    return apply


def nodes(**classes: int) -> list[dict[str, Any]]:
    return [{"resourceClass": name, "numberOfNodes": count} for name, count in classes.items()]


def found(kube: Kube, namespace: str) -> ClusterOrder:
    order = order_tenant.find(kube, NAMES, namespace, "demo")
    assert order is not None
    return order


def edited(hub: Access, namespace: str, patch: dict[str, Any], *options: str) -> None:
    """Edit the order as another manager, with kubectl."""
    hub.kubectl("patch", "clusterorder", "demo", "-n", namespace, "--type=merge", "-p", json.dumps(patch), *options)


def test_what_is_not_asked_for_stays_as_an_earlier_task_has_set_it(kube: Kube, namespace: str, apply: Apply) -> None:
    apply(template_id=TEMPLATE, template_parameters={"pull_secret": "{}"}, node_requests=nodes(fc430=2), labels={"team": "a"})
    for wanted in ({"annotations": {"note": "x"}}, {"labels": {"more": "b"}}, {"node_requests": nodes(fc430=3)}):
        assert apply(**wanted).action == "changed"
        assert apply(**wanted).action == "unchanged"
    raw = found(kube, namespace).raw
    assert raw["spec"] == {"templateID": TEMPLATE, "templateParameters": '{"pull_secret": "{}"}', "nodeRequests": nodes(fc430=3)}
    assert (raw["metadata"]["labels"], raw["metadata"]["annotations"]) == ({"team": "a", "more": "b"}, {"note": "x"})


def test_parameters_that_say_the_same_are_no_change_however_they_are_written(hub: Access, namespace: str, apply: Apply) -> None:
    apply(template_id=TEMPLATE, template_parameters={"a": 1, "b": [2]})
    edited(hub, namespace, {"spec": {"templateParameters": '{ "b" : [2],\n"a":1 }'}})
    assert apply(template_parameters={"b": [2], "a": 1}).action == "unchanged"


def test_check_mode_returns_the_order_as_it_would_be_and_writes_nothing(kube: Kube, namespace: str, apply: Apply) -> None:
    assert apply(template_id=TEMPLATE, check_mode=True).action == "created"
    assert order_tenant.find(kube, NAMES, namespace, "demo") is None
    apply(template_id=TEMPLATE, node_requests=nodes(fc430=1))
    before = found(kube, namespace)
    predicted = apply(node_requests=nodes(fc640=2), check_mode=True)
    assert found(kube, namespace) == before
    real = apply(node_requests=nodes(fc640=2))
    assert predicted.action == real.action == "changed"
    assert predicted.item["spec"] == real.item["spec"]


def test_what_another_manager_has_set_is_taken_only_by_force(hub: Access, kube: Kube, namespace: str, apply: Apply) -> None:
    apply(template_id=TEMPLATE, node_requests=nodes(fc430=1))
    edited(hub, namespace, {"spec": {"nodeRequests": nodes(fc430=5, fc640=1)}}, "--field-manager=autoscaler")
    with pytest.raises(ApplyConflict, match=r"autoscaler.*With force=true this task takes them over"):
        apply(node_requests=nodes(fc430=2))
    assert found(kube, namespace).raw["spec"]["nodeRequests"] == nodes(fc430=5, fc640=1)
    assert apply(node_requests=nodes(fc430=2), force=True, check_mode=True).item["spec"]["nodeRequests"] == nodes(fc430=2)
    assert apply(node_requests=nodes(fc430=2), force=True).item["spec"]["nodeRequests"] == nodes(fc430=2)
    # What was removed by force is ours now, and is no conflict with ourselves later.
    assert apply(node_requests=nodes(fc430=3, fc640=1)).action == "changed"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"node_requests": []}, "set template_id"),
        ({"template_id": TEMPLATE, "template_parameters": {"share": float("nan")}}, "JSON does not have"),
        ({"template_id": TEMPLATE, "template_parameters": {"secret": SECRET * 20_000}}, "an order holds 262144 at most"),
    ],
)
def test_what_cannot_be_an_order_is_refused_with_what_to_do(
    kube: Kube, namespace: str, apply: Apply, wanted: dict[str, Any], said: str
) -> None:
    with pytest.raises(OrderRefused, match=said) as caught:
        apply(**wanted)
    assert SECRET not in str(caught.value)
    assert order_tenant.find(kube, NAMES, namespace, "demo") is None


def test_the_servers_complaint_does_not_repeat_the_parameters(apply: Apply) -> None:
    with pytest.raises(Invalid) as caught:
        apply(template_id=TEMPLATE, template_parameters={"pull_secret": SECRET}, node_requests=nodes(fc430=0))
    assert "numberOfNodes" in str(caught.value) and SECRET not in str(caught.value)


def test_another_template_or_a_change_during_deletion_is_refused(hub: Access, kube: Kube, namespace: str, apply: Apply) -> None:
    apply(template_id=TEMPLATE)
    assert apply(template_id=f"openfleet.clusters.{TEMPLATE}").action == "unchanged"
    with pytest.raises(OrderRefused, match="cannot be changed to other"):
        apply(template_id="other")
    edited(hub, namespace, {"metadata": {"finalizers": ["example.com/held"]}})
    try:
        assert order_tenant.delete(kube, NAMES, namespace, "demo", check_mode=True) is not None
        assert not found(kube, namespace).is_deleting
        for action in ("deleted", "unchanged"):
            change = order_tenant.delete(kube, NAMES, namespace, "demo")
            assert change is not None and change.action == action
        with pytest.raises(OrderRefused, match="create it again after that"):
            apply(labels={"too": "late"})
    finally:
        edited(hub, namespace, {"metadata": {"finalizers": None}})
    assert order_tenant.delete(kube, NAMES, namespace, "demo") is None


def test_a_wait_ends_as_soon_as_the_order_is_ready_or_cannot_become_ready(hub: Access, kube: Kube, namespace: str, apply: Apply) -> None:
    apply(template_id=TEMPLATE)
    with pytest.raises(NotInTime, match="no run has prepared it yet"):
        order_tenant.wait_until_ready(kube, NAMES, namespace, "demo", 0)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(order_tenant.wait_until_ready, kube, NAMES, namespace, "demo", 60)
        edited(hub, namespace, {"status": {"phase": "Ready", "observedGeneration": 1}}, "--subresource=status")
        assert waiting.result().phase == "Ready"
    apply(node_requests=nodes(fc430=1))  # now the phase is that of the order as it was
    with pytest.raises(NotInTime, match="it is Ready"):
        order_tenant.wait_until_ready(kube, NAMES, namespace, "demo", 0)
    failure = {"reason": "UnknownTemplate", "message": "There is none.", "retryable": False, "attempts": 1}
    edited(hub, namespace, {"status": {"phase": "Failed", "observedGeneration": 2, "failure": failure}}, "--subresource=status")
    with pytest.raises(OrderFailed, match=r"is Failed \(UnknownTemplate\): There is none\."):
        order_tenant.wait_until_ready(kube, NAMES, namespace, "demo", 60)


def test_an_order_of_the_same_name_that_came_after_is_not_the_one_waited_for(kube: Kube, namespace: str, apply: Apply) -> None:
    uid = apply(template_id=TEMPLATE).item["metadata"]["uid"]
    with pytest.raises(NotInTime, match="is not deleted"):
        order_tenant.wait_until_deleted(kube, NAMES, namespace, "demo", uid, 0)
    order_tenant.delete(kube, NAMES, namespace, "demo")
    apply(template_id=TEMPLATE)
    order_tenant.wait_until_deleted(kube, NAMES, namespace, "demo", uid, 0)


def test_orders_are_selected_by_name_namespace_and_labels_at_once(kube: Kube, namespace: str, apply: Apply) -> None:
    apply("demo", template_id=TEMPLATE, labels={"team": "a"})
    apply("other", template_id=TEMPLATE, labels={"team": "a"})
    apply("third", template_id=TEMPLATE)

    def names(name: str | None = None, where: str | None = namespace, labels: str = "") -> set[str]:
        found, problems = order_tenant.find_all(kube, NAMES, name, where, labels)
        assert problems == []
        return {order.name for order in found if order.namespace == namespace}

    assert names() == names(where=None) == {"demo", "other", "third"}
    assert (names(labels="team=a"), names("demo", labels="team=a"), names("third", labels="team=a")) == ({"demo", "other"}, {"demo"}, set())
    with pytest.raises(Invalid, match="check the label selector '==='"):
        names(labels="===")


def test_the_next_actions_of_one_order_and_of_several_are_the_same(hub: Access, kube: Kube, namespace: str, apply: Apply) -> None:
    apply("demo", template_id=TEMPLATE)
    apply("other", template_id=TEMPLATE)
    orders, _problems = order_tenant.find_all(kube, NAMES, None, namespace, "")
    assert next_actions(kube, NAMES, []) == []
    assert next_actions(kube, NAMES, orders) == ["provision", "provision"]
    assert next_actions(kube, NAMES, orders[:1]) == ["provision"]
    unprivileged = Kube.connect({"kubeconfig": str(hub.kubeconfig), "impersonate_user": "unprivileged"})
    for some in (orders, orders[:1]):
        assert next_actions(unprivileged, NAMES, some) is None


def test_an_order_is_shown_with_the_names_of_its_parameters_and_no_value(hub: Access, kube: Kube, namespace: str, apply: Apply) -> None:
    before = apply(template_id=TEMPLATE, template_parameters={"pull_secret": SECRET, "size": 1}).item
    copied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(before)}
    edited(hub, namespace, {"metadata": {"annotations": copied | {"note": "x"}}})
    shown = order_tenant.shown(found(kube, namespace))
    assert shown["spec"]["templateParameters"] == ["pull_secret", "size"]
    assert shown["metadata"]["annotations"] == {"note": "x"}
    difference = order_tenant.diff(apply(template_parameters={"pull_secret": SECRET, "size": 2, "new": SECRET}))
    shown = json.loads(difference["after"])["spec"]["templateParameters"]
    assert shown == {"pull_secret": "(hidden)", "size": "(hidden, changed)", "new": "(hidden, changed)"}
    assert SECRET not in json.dumps([shown, difference])
