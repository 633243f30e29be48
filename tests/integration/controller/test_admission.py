"""The shipped policies, quota and tenant role on a real API server: what a tenant may do, and what only the controller may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden, Invalid, KubeError

from ..support.fleet_agents import AGENT
from ..support.manifests import manifest
from ..support.orders import GROUP, Orders
from ..support.permissions import allowed
from ..support.tenants import RBAC, TENANT, connect_as

CONTROLLER = "system:serviceaccount:openfleet-system:openfleet-clusters"
OURS, THEIRS = f"{GROUP}/infrastructure", "example.com/theirs"
FLEET = "fleet.openfleet.io/cluster-uid"
MARKED = {f"{GROUP}/clusterorder": "demo"}


@pytest.fixture(scope="module")
def hub(quick_hub: Access) -> Iterator[Access]:
    """With a user who may do anything but what the policies refuse."""
    anything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "careless"}, "rules": [anything]}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "careless"}
    subjects = [{"kind": "User", "name": name, "apiGroup": RBAC} for name in ("careless", AGENT)]
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "careless"}}
    made = (role, binding | {"roleRef": reference, "subjects": subjects})
    quick_hub.apply(*made)
    marked: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "not-created", "labels": MARKED}}

    def is_enforced() -> bool:
        try:
            connect_as(quick_hub, "careless").create(marked, dry_run=True)
        except Invalid:
            return True
        except Forbidden:  # its role is not known yet
            return False
        return False

    until(is_enforced, "the policies are in force")
    yield quick_hub
    for item in made:
        quick_hub.kube.delete(item)


@pytest.fixture
def placed(hub: Access, tmp_path: Path) -> Iterator[Orders]:
    """An order with a finalizer of ours and one of another controller."""
    with fresh_namespace(hub) as namespace:
        orders = Orders(hub, namespace, tmp_path)
        orders.apply()
        orders.patch({"metadata": {"finalizers": [OURS, THEIRS], "labels": MARKED}})
        yield orders
        orders.clean_up()


def refusal(kube: Kube, orders: Orders, patch: Object, subresource: str = "") -> str:
    try:
        if subresource:
            kube.replace(orders.get() | patch, subresource)
        else:
            kube.patch(orders.get(), patch, checked=False)
    except KubeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("patch", "subresource", "message"),
    [
        ({"metadata": {"finalizers": None}}, "", "delete the order"),
        ({"metadata": {"finalizers": [THEIRS]}}, "", "delete the order"),
        ({"metadata": {"finalizers": [OURS, THEIRS, f"{GROUP}/finalizer"]}}, "", "delete the order"),
        ({"metadata": {"labels": {f"{GROUP}/clusterorder": "x"}}}, "", "labels of the controller"),
        ({"metadata": {"labels": None}}, "", "labels of the controller"),
        ({"metadata": {"annotations": {f"{GROUP}/lock-token": "9"}}}, "", "annotations of the controller"),
        ({"metadata": {"annotations": {"openfleet.clusters/order": "x/y"}}}, "", "annotations of the controller"),
        ({"metadata": {"labels": {FLEET: "x"}}}, "", "labels of the controller"),
        ({"metadata": {"annotations": {"fleet.openfleet.io/retry": "now"}}}, "", "annotations of the controller"),
        ({"status": {"phase": "Ready"}}, "status", "Only the controller writes the status"),
    ],
)
def test_only_the_controller_changes_what_is_its_own(placed: Orders, patch: Object, subresource: str, message: str) -> None:
    """The other user has every permission: a site may grant a tenant too much."""
    assert message in refusal(connect_as(placed.hub, "careless"), placed, patch, subresource)
    assert refusal(connect_as(placed.hub, CONTROLLER), placed, patch, subresource) == ""


def test_agent_of_a_fleet_changes_the_marks_of_the_fleet_alone(placed: Orders) -> None:
    agent, careless = connect_as(placed.hub, AGENT, "system:serviceaccounts"), connect_as(placed.hub, "careless")
    placed.patch({"metadata": {"labels": {FLEET: "x"}}})  # the operator of the hub, for an adoption
    assert "labels of the controller" in refusal(careless, placed, {"metadata": {"labels": {FLEET: None}}})
    assert refusal(careless, placed, {"metadata": {"labels": {"team": "blue"}}}) == "", "what the order has already may stay"
    assert (
        refusal(agent, placed, {"metadata": {"labels": {"fleet.openfleet.io/hub": "east"}, "annotations": {"fleet.openfleet.io/a": "b"}}})
        == ""
    )
    assert "labels of the controller" in refusal(agent, placed, {"metadata": {"labels": {f"{GROUP}/clusterorder": "x"}}})
    forged = {"name": "forged", "namespace": placed.namespace, "labels": {FLEET: "x"}}
    order = {"apiVersion": placed.api_version, "kind": "ClusterOrder", "metadata": forged, "spec": {"templateID": "ocp_4_17_small"}}
    with pytest.raises(Invalid, match="labels of the controller"):
        placed.tenant.create(order, dry_run=True)


def test_a_tenant_may_do_what_the_documentation_says(placed: Orders) -> None:
    for patch in (
        {"spec": {"nodeRequests": [{"resourceClass": "fc430", "numberOfNodes": 2}]}},
        {"metadata": {"annotations": {f"{GROUP}/management-state": "manual", "note": "x"}, "labels": {"team": "blue"}}},
        {"metadata": {"annotations": {f"{GROUP}/management-state": None}}},
        {"metadata": {"finalizers": [OURS]}},  # the other one is not ours
    ):
        assert refusal(placed.tenant, placed, patch) == ""
    options = (f"--as={TENANT}", "-n", placed.namespace)
    for command in (
        ("get", "cord"),
        ("describe", "cord", "demo"),
        ("events", "--for", f"clusterorder.{GROUP}/demo"),
        ("delete", "cord", "demo", "--wait=false"),
    ):
        placed.hub.kubectl(*command, *options)
    assert placed.get()["metadata"]["deletionTimestamp"], "its cluster is deleted first"


@pytest.mark.parametrize(
    ("resource", "verbs"),
    [
        ("clusterorders/status", "get,update,patch"),
        ("secrets", "get,list,create,patch,delete"),
        ("leases.coordination.k8s.io", "get,list,create,patch"),
        ("events", "create,patch,delete"),
        ("namespaces", "create,patch,delete"),
        ("rolebindings.rbac.authorization.k8s.io", "get,create,patch"),
        ("hostedclusters.hypershift.openshift.io", "get,list,create,patch,delete"),
    ],
)
def test_a_tenant_has_no_other_permission(placed: Orders, resource: str, verbs: str) -> None:
    name, _slash, subresource = resource.partition("/")
    plural, _dot, group = (f"{name}.{GROUP}" if subresource else name).partition(".")
    assert placed.tenant.list_all(f"{GROUP}/v1alpha1", "ClusterOrder", placed.namespace)
    for namespace in (placed.namespace, placed.working(), "openfleet-system"):
        for verb in verbs.split(","):
            permission = (verb, plural, group, namespace, subresource)
            # Orders refer to Secrets of their own namespace.
            assert allowed(placed.tenant, *permission) == (resource == "secrets" and namespace == placed.namespace), permission
    assert not allowed(placed.tenant, "list", "clusterorders", GROUP, "default")


def test_only_the_controller_creates_and_unmarks_working_namespaces(hub: Access, placed: Orders) -> None:
    careless, controller = connect_as(hub, "careless"), connect_as(hub, CONTROLLER)
    metadata: dict[str, Any] = {"name": placed.working(), "labels": MARKED, "finalizers": [OURS]}
    marked: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    for mark in ("finalizers", "labels"):
        with pytest.raises(Invalid, match=f"The {mark} of the controller"):
            careless.create(marked | {"metadata": {"name": placed.working(), "labels": MARKED, mark: metadata[mark]}})
    created = controller.create(marked)
    for patch in ({"finalizers": None}, {"labels": dict.fromkeys(MARKED)}, {"annotations": {f"{GROUP}/provider": "ocm"}}):
        with pytest.raises(Invalid, match="of the controller cannot be changed"):
            careless.patch(created, {"metadata": patch}, checked=False)
    careless.patch(created, {"metadata": {"labels": {"team": "blue"}}}, checked=False)
    hub.kubectl("delete", "namespace", placed.working(), "--wait=false")
    controller.patch(created, {"metadata": {"finalizers": None}}, checked=False)
    until(lambda: hub.kube.find("v1", "Namespace", placed.working()) is None, "the namespace controller has deleted it")


def test_a_tenant_has_no_more_orders_than_the_quota_says(placed: Orders) -> None:
    quota = manifest("tenant/resource_quota")
    name = f"count/clusterorders.{GROUP}"
    assert set(quota["spec"]["hard"]) == {name, "count/secrets"}
    metadata = quota["metadata"] | {"namespace": placed.namespace}
    created = placed.kube.create(quota | {"metadata": metadata, "spec": {"hard": {name: "1"}}})
    # The sandbox has no controller that counts what exists.
    placed.kube.replace(created | {"status": {"hard": {name: "1"}, "used": {name: "1"}}}, "status")

    def is_refused() -> bool:
        try:
            placed.tenant.create({"apiVersion": placed.api_version, "kind": "ClusterOrder", "metadata": second, "spec": spec}, dry_run=True)
        except Forbidden as error:
            return "exceeded quota" in str(error)
        return False

    second, spec = {"name": "second", "namespace": placed.namespace}, {"templateID": "ocp_4_17_small"}
    until(is_refused, "a second order is refused", 60)
