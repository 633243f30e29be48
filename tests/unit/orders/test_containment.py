"""One order never harms another: an error of any kind ends on the order it is about, and a namespace that hangs waits for itself."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.inventory import list_clusters
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, NotFound, Unexpected
from ansible_collections.openfleet.clusters.plugins.module_utils.orders import model, observe, pending
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names, config_version
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.next_action import next_action
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import ListView, NotAsked, ObservedState
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.pending import next_actions, orders_needing
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster

from .hub_in_memory import HubInMemory
from .order_samples import HEALTHY, NAMESPACE, START, Object, order, order_object, provisioned, with_status

FAULTS = [RecursionError("hunter2"), MemoryError(), ValueError("hunter2"), KeyError("hunter2"), AssertionError(), NotFound("x")]
NAMES = Names()


def named(namespace: str, name: str, **spec: Any) -> Object:
    item = order_object()
    item["metadata"] |= {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}"}
    return item | {"spec": item["spec"] | spec}


UNREADABLE = named("evil", "bad", nodeRequests=[{"resourceClass": "large"}])
GOOD = named("good", "demo")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_error_of_any_kind_is_the_result_of_its_item(fault: Exception) -> None:
    def work(item: int) -> int:
        if item == 2:
            raise fault
        return item

    first, second, third = Kube(Target("http://127.0.0.1:1")).in_parallel(work, [1, 2, 3])
    assert (first, third) == (1, 3)
    assert isinstance(second, KubeError)
    assert "hunter2" not in str(second)


def test_an_order_that_cannot_be_read_hides_no_other() -> None:
    hub = cast(Kube, HubInMemory(UNREADABLE, GOOD))
    view = ListView(hub, NAMES)
    assert [item.name for item in view.orders] == ["demo"]
    assert [problem.partition(" An unexpected KeyError")[0] for problem in view.problems] == ["evil/bad:"]
    assert [item.namespace for item in orders_needing(hub, NAMES, "provision")] == ["good"]
    warnings: list[str] = []
    fleet = list_clusters(hub, NAMES, {}, namespace=None, sources=["orders"], registry_kind="ClusterRegistry", warn=warnings.append)
    assert [cluster.name for cluster in fleet] == ["demo"]
    assert len(warnings) == 1 and warnings[0].startswith("skipped an order: evil/bad")


@pytest.mark.parametrize("fault", FAULTS[:-1], ids=lambda fault: type(fault).__name__)
def test_an_error_of_any_kind_in_a_decision_ends_on_its_order(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(item: ClusterOrder, *given: Any) -> Any:
        if item.namespace == "evil":
            raise fault
        return next_action(item, *given)

    monkeypatch.setattr(pending, "next_action", decide)
    hub = cast(Kube, HubInMemory(named("evil", "bad"), GOOD))
    assert [item.namespace for item in orders_needing(hub, NAMES, "provision")] == ["good"]
    failed, needed = cast(list[Any], next_actions(hub, NAMES, ListView(hub, NAMES).orders))
    assert isinstance(failed, KubeError)
    assert needed == "provision"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_provider_that_cannot_even_be_made_leaves_the_cluster_unknown(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_kind: str, _ref: Any) -> Any:
        raise fault

    monkeypatch.setattr(ProviderFactory, "for_cluster", broken)
    item = with_status(order(), HEALTHY, outcome=provisioned(order()))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "uid": "n", "labels": item.labels}}
    seen = observe.observe(item, observe.LiveView(cast(Kube, HubInMemory(namespace))))
    assert seen.cluster.status == "unknown"
    assert "hunter2" not in seen.cluster.status_details


def test_namespaces_take_turns_and_those_at_the_end_are_not_asked_but_not_changed_either(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = cast(Kube, HubInMemory(*(named("evil", f"hangs-{number}") for number in range(50)), GOOD))
    view, asked = ListView(hub, NAMES), []

    def note(item: ClusterOrder, _view: Any) -> ObservedState:
        asked.append(item.namespace)
        return ObservedState()

    monkeypatch.setattr(observe, "observe", note)
    assert len(view.observe_all()) == 51
    assert asked[:3] == ["evil", "good", "evil"]
    monkeypatch.undo()
    monkeypatch.setattr(observe, "OBSERVE_SECONDS", -1.0)

    class Asked:
        TYPE, WATCHES = "slow", ()

        def __init__(self, ref: Any) -> None:
            self.ref = ref

        def status(self, _observed: ObservedCluster) -> ObservedCluster:
            raise AssertionError("is not asked")

    monkeypatch.setattr(ProviderFactory, "for_cluster", lambda _kind, ref: Asked(ref))
    item = with_status(order(), HEALTHY, outcome=provisioned(order()))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "uid": "n", "labels": item.labels}}
    [late] = ListView(cast(Kube, HubInMemory(namespace)), NAMES, [item]).observe_all()
    assert isinstance(late, NotAsked)


def test_parameters_are_parsed_once_for_all_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest order costs its hash once."""
    parsed: list[str] = []
    loads = json.loads
    monkeypatch.setattr(model.json, "loads", lambda text: parsed.append(text) or loads(text))
    item = order()
    done = provisioned(item)
    after = with_status(item, HEALTHY, START, done)
    parsed.clear()
    for _each in range(3):
        assert (after.is_applied, done.is_about(after), config_version(after)) == (True, True, done.config_version)
        next_action(after, HEALTHY, START)
    assert len(parsed) == 1


def test_an_unexpected_error_says_where_and_nothing_of_its_text() -> None:
    def fail() -> None:
        raise ValueError("hunter2")

    with pytest.raises(ValueError, match="hunter2") as caught:
        fail()
    message = str(Unexpected(caught.value))
    assert "An unexpected ValueError at line" in message and "test_containment.py" in message
    assert "hunter2" not in message
