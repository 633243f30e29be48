"""One observer, one decision: every caller comes to the same next action for the same hub."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.controller import Controller
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import Settings
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.inventory import list_clusters
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder, Names
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.observe import LiveView, observe, unknown_cluster
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.pending import next_actions, orders_needing
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import OrderName
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.base import Provider, ProviderError
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import ProviderFactory
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import ObservedCluster

from .hub_in_memory import HubInMemory
from .order_samples import (
    HEALTHY,
    NAMESPACE,
    REFERENCE,
    START,
    Object,
    condition,
    deleted,
    hosted_cluster,
    node_pool,
    order,
    provisioned,
    ready_order,
    scaled,
    stored,
    text,
    with_status,
)

LABELS = order().labels
ACTIONS = ("provision", "post_install", "delete")
NOT_ASKED = "not asked"
# A second order, so that lists are used, and an event shows that the event source has reconciled everything.
MARKER = {
    "apiVersion": "cloudkit.openshift.io/v1alpha1",
    "kind": "ClusterOrder",
    "metadata": {"namespace": "zz", "name": "marker", "uid": "u2", "generation": 1, "resourceVersion": "9"},
    "spec": {"templateID": "x"},
}


def namespace(deleting: bool = False) -> Object:
    metadata: Object = {"name": NAMESPACE, "uid": "n1", "resourceVersion": "3", "labels": LABELS}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata | ({"deletionTimestamp": text(START)} if deleting else {})}


def cluster(*conditions: Object, **options: Any) -> Object:
    found = hosted_cluster(*conditions, **options)
    return _object("HostedCluster", found)


def pool(*arguments: Any, **options: Any) -> Object:
    made = node_pool(*arguments, **options)
    made["metadata"]["labels"] |= LABELS
    return _object("NodePool", made)


def _object(kind: str, item: Object) -> Object:
    metadata = {"uid": kind, "resourceVersion": "5"} | item["metadata"]
    return {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": kind} | item | {"metadata": metadata}


@dataclass(frozen=True)
class Case:
    order: ClusterOrder
    objects: tuple[Object, ...]
    action: str | None
    external: bool = False
    missing_kinds: tuple[str, ...] = ()
    namespace: str = ""  # as an external controller has named it

    @property
    def names(self) -> Names:
        return Names(external_controller=self.external)

    @property
    def parsed(self) -> ClusterOrder:
        return ClusterOrder.from_object(self.order.raw, self.names)

    def connection(self) -> Kube:
        """The hub. An external controller gives the namespace another name."""
        wanted = self.namespace or self.names.working_namespace("orders", "demo")
        objects = json.loads(json.dumps(self.objects).replace(NAMESPACE, wanted))
        return cast(Kube, HubInMemory(self.order.raw, MARKER, *objects, missing_kinds=self.missing_kinds))


def referring(of: ClusterOrder, to: str) -> ClusterOrder:
    """An order whose namespace another controller has recorded."""
    return stored(of, of.status | {"clusterReference": REFERENCE | {"namespace": to}})


def labelled(name: str, **labels: str) -> Object:
    """A namespace as an external controller creates it: with the label of the order's name only."""
    label = {order().names.order_label: "demo"} | labels
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "resourceVersion": "3", "labels": label}}


def namesake() -> Object:
    metadata = {"namespace": "others", "name": "demo", "uid": "u8", "generation": 1, "resourceVersion": "9"}
    return MARKER | {"metadata": metadata}


RANDOM = "cluster-demo-x7k2p"
MADE = (namespace(), cluster(), pool(3))
INSTALLED = with_status(order(), HEALTHY, outcome=provisioned(order(), template_applied=False))
GONE = with_status(deleted(ready_order()), HEALTHY)
THEIRS = referring(order(), RANDOM)
BESIDE = {
    "a random namespace that the other controller recorded": Case(THEIRS, (labelled(RANDOM),), "provision"),
    "a random namespace of an order that is ready": Case(referring(ready_order(), RANDOM), MADE, None, namespace=RANDOM),
    "a random namespace whose cluster lost its nodes": Case(
        referring(ready_order(), RANDOM), (namespace(), cluster()), "provision", namespace=RANDOM
    ),
    "a random namespace without the label": Case(THEIRS, (labelled(RANDOM, **{order().names.order_label: "other"}),), None),
    "a random namespace of another order of that name": Case(THEIRS, (labelled(RANDOM, **{order().names.order_uid_label: "u7"}),), None),
    "a random namespace that is not recorded yet, found by its label": Case(order(), (labelled(RANDOM),), "provision"),
    "a label that two orders could mean": Case(order(), (labelled(RANDOM), namesake()), None),
    "a label that two orders could mean, and a recorded name": Case(THEIRS, (labelled(RANDOM), namesake()), "provision"),
    "two labelled namespaces": Case(order(), (labelled(RANDOM), labelled("cluster-demo-other")), None),
    "two labelled namespaces, one with the order's uid": Case(
        order(), (labelled(RANDOM, **{order().names.order_uid_label: "u1"}), labelled("cluster-demo-other")), "provision"
    ),
    "two labelled namespaces, one with the usual name": Case(order(), (labelled(RANDOM), labelled("orders-demo")), "provision"),
    "two labelled namespaces, the one with the order's uid before that with the usual name": Case(
        ready_order(), (labelled("orders-demo"), *MADE), None, namespace=RANDOM
    ),
    "a recorded namespace that is gone, and a new one": Case(THEIRS, (labelled("cluster-demo-new"),), "provision"),
    "a recorded namespace that is gone": Case(THEIRS, (), None),
    "a namespace that is being deleted": Case(order(), (namespace(deleting=True),), None),
    "a namespace that is being deleted, of an order that was ready": Case(ready_order(), (namespace(deleting=True),), None),
    "to be deleted, in a random namespace": Case(referring(deleted(ready_order()), RANDOM), MADE, "delete", namespace=RANDOM),
}
CASES = {f"beside an external controller: {name}": replace(case, external=True) for name, case in BESIDE.items()} | {
    "a new order": Case(order(), (), "provision"),
    "a new order, its namespace there": Case(order(), (namespace(),), "provision"),
    "a new order beside an external controller waits for the namespace": Case(order(), (), None, external=True),
    "a new order beside an external controller with a namespace": Case(order(), (namespace(),), "provision", external=True),
    "a new order, its namespace that of an earlier one of its name": Case(order(uid="u9"), MADE, "provision"),
    "ready": Case(ready_order(), MADE, None),
    "to be deleted, its namespace that of an earlier order of its name": Case(deleted(order(uid="u9")), MADE, "delete"),
    "to be deleted, whatever its management state": Case(
        deleted(order(annotations={"cloudkit.openshift.io/management-state": "unmanaged"})), MADE, "delete"
    ),
    "ready beside an external controller": Case(ready_order(), MADE, None, external=True),
    "scaled": Case(scaled(ready_order(), large=5), MADE, "provision"),
    "the node pool was deleted": Case(ready_order(), (namespace(), cluster()), "provision"),
    "the cluster was deleted": Case(ready_order(), (namespace(),), "provision"),
    "the cluster and its namespace were deleted": Case(ready_order(), (), "provision"),
    "the cluster is being deleted": Case(ready_order(), (namespace(), cluster(deleting=True), pool(3)), None),
    "installed, the control plane available": Case(INSTALLED, MADE, "post_install"),
    "installed, the control plane not available": Case(INSTALLED, (namespace(), cluster(condition("Available", "False")), pool(3)), None),
    "to be deleted, with its cluster": Case(deleted(ready_order()), MADE, "delete"),
    "to be deleted, the namespace only left": Case(GONE, (namespace(),), "delete"),
    "to be deleted, the namespace being deleted": Case(GONE, (namespace(deleting=True),), None),
    "to be deleted, nothing left": Case(GONE, (), "delete"),
    "to be deleted, nothing left, beside an external controller": Case(GONE, (), "delete", external=True),
    "to be deleted, the namespace being deleted by an external controller": Case(
        GONE, (namespace(deleting=True),), "delete", external=True
    ),
    "the hub has lost the kind": Case(ready_order(), (namespace(),), None, missing_kinds=("HostedCluster", "NodePool")),
}


def live(case: Case) -> str | None:
    return cast(list[Any], next_actions(case.connection(), case.names, [case.parsed]))[0]


def info_module(case: Case) -> str | None:
    both = [case.parsed, ClusterOrder.from_object(MARKER, case.names)]
    return cast(list[Any], next_actions(case.connection(), case.names, both))[0]


def playbooks(case: Case) -> str | None:
    def selects(action: Any) -> bool:
        found = orders_needing(case.connection(), case.names, action)
        return any(item.name == "demo" for item in found)

    return next((action for action in ACTIONS if selects(action)), None)


def inventory(case: Case) -> str | None:
    hosts = list_clusters(
        case.connection(),
        case.names,
        {},
        namespace=None,
        sources=["orders"],
        registry_kind="ClusterRegistry",
        warn=print,
    )
    return next(host.variables.get("fleet_next_action", NOT_ASKED) for host in hosts if host.name == "demo") or None


def event_source(case: Case) -> str | None:
    return asyncio.run(_event_source(case))


async def _event_source(case: Case) -> str | None:
    hub, events = case.connection(), list[Object]()

    async def emit(event: Object) -> None:
        events.append(event)

    def started(name: str) -> str | None:
        return next((event["action"] for event in events if event["action"] in ACTIONS and event["order"]["name"] == name), None)

    settings = Settings(case.names, max_in_flight=100, batch_size=1)
    controller = Controller(settings, hub, hub, emit, Metrics(State))
    work = asyncio.create_task(controller.run())
    try:
        async with asyncio.timeout(60):
            while not (case.external or started("marker")) or controller.problems():  # noqa: ASYNC110 - it has no event for this
                await asyncio.sleep(0.01)
            for _round in range(5):
                controller.enqueue(OrderName("orders", "demo"))
                await asyncio.sleep(0.05)
                while controller.state().queue:  # noqa: ASYNC110 - the same
                    await asyncio.sleep(0.01)
            if case.action:
                while not started("demo"):  # noqa: ASYNC110 - the same
                    await asyncio.sleep(0.01)
    finally:
        cast(Any, hub).close()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
    return started("demo")


@pytest.mark.parametrize("caller", [live, info_module, playbooks, inventory, event_source])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_caller_comes_to_the_same_next_action(caller: Callable[[Case], str | None], case: Case) -> None:
    assert caller(case) == case.action


class PolledProvider(Provider):
    """A provider that has to be asked."""

    TYPE = "polled"
    answer: ClassVar[ObservedCluster | None] = None

    def create(self, request: Any) -> ObservedCluster:
        raise AssertionError

    def update(self, observed: ObservedCluster, request: Any) -> ObservedCluster:
        raise AssertionError

    def delete(self, observed: ObservedCluster) -> bool:
        raise AssertionError

    def status(self, observed: ObservedCluster) -> ObservedCluster:
        if self.answer is None:
            raise ProviderError("the provider does not answer")
        return self.answer


def test_a_provider_is_asked_only_while_the_namespace_exists_and_its_error_makes_the_cluster_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ProviderFactory, "get", classmethod(lambda _cls, _kind: PolledProvider))
    served = stored(ready_order(), ready_order().status | {"provider": {"type": "acme.site.polled"}})
    absent = observe(served, LiveView(cast(Kube, HubInMemory())))
    assert (absent.cluster.status, absent.namespace_exists) == ("absent", False)
    unknown = observe(served, LiveView(cast(Kube, HubInMemory(namespace()))))
    assert unknown.cluster == unknown_cluster(served, ProviderError("the provider does not answer"))
    assert unknown.namespace_exists


@pytest.mark.parametrize(
    ("of", "answer", "action"),
    [
        (ready_order(), HEALTHY.cluster, None),
        (ready_order(), ObservedCluster(), "provision"),
        (deleted(ready_order()), HEALTHY.cluster, "delete"),
    ],
    ids=["the cluster is healthy", "the cluster was deleted at the service", "the order is deleted"],
)
def test_every_caller_that_asks_the_provider_comes_to_the_same_next_action_and_the_inventory_asks_nothing(
    of: ClusterOrder, answer: ObservedCluster, action: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProviderFactory, "get", classmethod(lambda _cls, _kind: PolledProvider))
    monkeypatch.setattr(PolledProvider, "answer", answer)
    case = Case(stored(of, of.status | {"provider": {"type": "acme.site.polled"}}), (namespace(),), action)
    assert [caller(case) for caller in (live, info_module, playbooks, event_source)] == [action] * 4
    assert inventory(case) == NOT_ASKED


def test_a_provider_that_is_not_installed_makes_the_cluster_unknown_for_every_caller() -> None:
    served = stored(ready_order(), ready_order().status | {"provider": {"type": "acme.site.missing"}})
    for caller in (live, info_module, playbooks, inventory, event_source):
        assert caller(Case(served, (namespace(),), None)) is None
