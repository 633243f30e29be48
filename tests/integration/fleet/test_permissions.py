"""The shipped roles and the policy of a fleet on a real API server: what the controller, an operator and a tenant may do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import Sandbox
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import UserError
from ansible_collections.openfleet.clusters.plugins.module_utils.common.timestamps import format_time
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    API_VERSION,
    CLUSTER,
    FINALIZER,
    QUOTA,
    hub_namespace,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.observe import observe
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.reconcile import Reconciler
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden, Invalid, KubeError

from ..support.deployment import account_kubeconfig
from ..support.fleet import TEMPLATE, Fleet, fleet_of
from ..support.fleet_source import running
from ..support.manifests import MANIFESTS, manifest
from ..support.permissions import Permission, Recorder, permissions_of
from ..support.tenants import RBAC, connect_as

CONTROLLER = "system:serviceaccount:openfleet-system:openfleet-fleet"
REFUSED = (Forbidden, Invalid)
# All roles of the home engine: in the whole cluster, in the namespaces of the site, of tenants and of hubs.
ROLES = ("controller_cluster_role", "controller_role", "secrets_cluster_role", "copies_cluster_role")
ROLE = {"rules": [rule for name in ROLES for rule in manifest(f"fleet/{name}")["rules"]]}


@pytest.fixture(scope="module")
def guarded(hub: Access) -> Iterator[Access]:
    """The hub with the roles and the policy of a fleet in force."""
    folder = str(MANIFESTS / "fleet")
    hub.kubectl("apply", "-k", folder)
    probe = connect_as(hub, "probe")
    try:
        hub.kube.apply(binding("default", "openfleet-fleet-tenant", "probe"), force=True)
        wanted = cluster("default", "east")
        until(lambda: "fleetclusters/binding" in refusal(lambda: probe.create(wanted, dry_run=True)), "the policy is in force")
        yield hub
    finally:
        hub.kube.delete(binding("default", "openfleet-fleet-tenant", "probe"))
        hub.kubectl("delete", "-k", folder)


@pytest.fixture
def fleet(guarded: Access, namespace: str) -> Iterator[Fleet]:
    with fleet_of(guarded, namespace) as made:
        yield made


def cluster(namespace: str, hub: str = "", **metadata: Any) -> Object:
    placement = {"placement": {"hub": hub}} if hub else {}
    return {
        "apiVersion": API_VERSION,
        "kind": CLUSTER,
        "metadata": {"name": "demo", "namespace": namespace} | metadata,
        "spec": {"template": TEMPLATE} | placement,
    }


def binding(namespace: str, role: str, user: str) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{role}-{user}", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


def refusal(request: Callable[[], Any]) -> str:
    """Why the server refuses the request; empty if it does not."""
    try:
        request()
    except REFUSED as error:
        return str(error)
    return ""


def account(fleet: Fleet, role: str) -> Kube:
    """An account with this role in the namespace of the tenant."""
    fleet.home.apply(binding(fleet.namespace, role, role), force=True)
    kube = connect_as(fleet.access, role)

    def is_known() -> bool:
        try:
            kube.list_all(API_VERSION, QUOTA, fleet.namespace)
        except KubeError:
            return False
        return True

    until(is_known, f"the server knows the permissions of {role}")
    return kube


def test_controller_reconciles_with_the_shipped_roles(fleet: Fleet) -> None:
    east = fleet.add_hub("east")
    fleet.set_quota(hard={"clusters": 1})
    fleet.add_cluster("demo", 2)
    fleet.add_cluster("refused", 1)
    kube = connect_as(fleet.access, CONTROLLER, "system:serviceaccounts")

    def reconcile() -> dict[str, str]:
        return {each.cluster.name: each.result for each in Reconciler(kube, fleet.namespace).reconcile(observe(kube, fleet.namespace))}

    assert sorted(reconcile().values()) == ["refused", "scheduled"]
    bound = next(name for name in ("demo", "refused") if fleet.cluster(name)["status"].get("hub") == east)
    fleet.report(bound, 3 if bound == "demo" else 1)
    fleet.resize(bound, 1)
    assert reconcile()[bound] == "bound"
    fleet.report(bound, 1)
    assert reconcile()[bound] == "bound"
    fleet.home.delete(fleet.cluster(bound))
    assert [reconcile()[bound] for _step in range(2)] == ["deleting", "deleted"]
    assert len(fleet.records()) == 1


def bound_in(name: str, namespace: str) -> Object:
    """A shipped RoleBinding in this namespace."""
    item = manifest(name)
    return item | {"metadata": item["metadata"] | {"namespace": namespace}}


@pytest.fixture
def bucket(quick_sandbox: Sandbox, namespace: str) -> dict[str, Any]:
    quick_sandbox.up(s3=True)
    s3 = quick_sandbox.s3()
    secrets = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key}
    boto3.client("s3", endpoint_url=s3.endpoint, region_name=s3.region, **secrets).create_bucket(Bucket=namespace)
    options = {"bucket": namespace, "endpoint_url": s3.endpoint, "region": s3.region}
    return options | {"access_key": s3.access_key, "secret_key": s3.secret_key}


def test_permissions_of_the_home_engine_are_enough_for_the_life_of_a_cluster_and_all_are_used(
    fleet: Fleet, bucket: dict[str, Any], tmp_path: Path
) -> None:
    east = fleet.add_hub("east", clusters=2)
    for name, namespace in (("fleet/tenant/secrets_role_binding", fleet.namespace), ("fleet/hub/copies_role_binding", hub_namespace(east))):
        fleet.home.create(bound_in(name, namespace))
    metadata = {"name": "pull-secret", "namespace": fleet.namespace}
    fleet.home.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": "made up"}})
    parameters = {"templateParameters": {"pull_secret": {"secretRef": {"name": "pull-secret", "key": "token"}}}}
    records = bucket | {"interval": 1, "max_number": 0}
    # The default quota of the site, and not one of the tenant, which the engine creates then.
    fleet.set_quota("openfleet-system", hard={"clusters": 2})

    def state(name: str) -> str:
        found = fleet.home.find(API_VERSION, CLUSTER, name, fleet.namespace) or {}
        return str((found.get("status") or {}).get("state", ""))

    try:
        with Recorder(fleet.access).running() as recorder:
            url, file = f"http://127.0.0.1:{recorder.port}", tmp_path / "kubeconfig"
            kubeconfig = account_kubeconfig(fleet.access, url, file, "fleet/service_account")
            with running(fleet, kubeconfig=str(kubeconfig), site_namespace="openfleet-system", records=records):
                fleet.add_cluster("demo", 1, **parameters)
                until(lambda: state("demo") == "Progressing", "the cluster is bound", 120)
                fleet.report("demo", 1, state="Ready")
                until(lambda: state("demo") == "Ready", "the cluster is ready", 120)
                fleet.resize("demo", 2)
                until(lambda: fleet.assignments()[0]["spec"]["nodeSets"]["workers"]["size"] == 2, "the assignment has the size", 120)
                fleet.report("demo", 2, state="Failed")
                until(lambda: state("demo") == "Failed", "the failure is shown", 120)
                fleet.resize("demo", 1)
                until(lambda: fleet.assignments()[0]["spec"]["nodeSets"]["workers"]["size"] == 1, "the assignment has the size", 120)
                fleet.report("demo", 1, state="Failed")
                until(lambda: fleet.hub(east)["free"]["nodes"]["fc430"] == 9, "the capacity is released", 120)
                ended = format_time(datetime.now(UTC) - timedelta(seconds=1))
                fleet.home.patch(fleet.cluster("demo"), {"spec": {"expiresAt": ended}}, checked=False)
                until(lambda: not state("demo"), "the cluster is deleted at its end", 120)
                wanted = permissions_of(ROLE)
                until(lambda: not fleet.records(), "the record is exported and deleted", 120)
                optional = {Permission("", "events", "get"), Permission("", "events", "patch")}  # only of a repeated Event
                # Also the renewal of the Lease of the leader, and the last request, whose effect is observed before its
                # answer is recorded.
                with contextlib.suppress(UserError):
                    until(lambda: not wanted - recorder.used - optional, "all permissions are used", 60)
                assert wanted - recorder.used - optional == set()
                assert recorder.refused == set()
    finally:
        fleet.home.delete({"apiVersion": API_VERSION, "kind": QUOTA, "metadata": {"name": "default", "namespace": "openfleet-system"}})


def test_tenant_cannot_choose_a_hub_and_an_operator_can(fleet: Fleet) -> None:
    tenant, operator = account(fleet, "openfleet-fleet-tenant"), account(fleet, "openfleet-fleet-operator")
    message = "To set placement.hub needs the permission to create fleetclusters/binding"
    assert message in refusal(lambda: tenant.create(cluster(fleet.namespace, "east")))
    created = tenant.create(cluster(fleet.namespace))
    assert message in refusal(lambda: tenant.patch(created, {"spec": {"placement": {"hub": "east"}}}, checked=False))
    operator.patch(created, {"spec": {"placement": {"hub": "east"}}}, checked=False)
    tenant.patch(created, {"spec": {"priority": 1}}, checked=False)  # the hub that the operator chose stays
    assert fleet.cluster("demo")["spec"]["placement"] == {"hub": "east"}


def test_manual_binding_respects_capacity(fleet: Fleet) -> None:
    full, other = fleet.add_hub("full", clusters=0), fleet.add_hub("other")
    fleet.set_quota(hard={})
    fleet.home.create(cluster(fleet.namespace, full))
    assert fleet.reconcile()["demo"] == ("waiting", f"0 of 2 hubs fit: 1 full, 1 not the requested hub {full}")
    fleet.home.patch(fleet.cluster("demo"), {"spec": {"placement": {"hub": other}}})
    assert fleet.reconcile()["demo"][0] == "scheduled"
    assert fleet.cluster("demo")["status"]["hub"] == other


def test_tenant_cannot_change_what_is_the_controllers(fleet: Fleet) -> None:
    tenant = account(fleet, "openfleet-fleet-tenant")
    name = "fleet.openfleet.io/created-by"
    forged = cluster(fleet.namespace, annotations={name: "other"})
    assert "created-by can be set to the name of your account" in refusal(lambda: tenant.create(forged))
    created = tenant.create(cluster(fleet.namespace, annotations={name: "openfleet-fleet-tenant"}))
    fleet.home.patch(created, {"metadata": {"finalizers": [FINALIZER], "labels": {"fleet.openfleet.io/x": "1"}}}, checked=False)
    changes: dict[str, Object] = {
        "finalizers of the controller": {"metadata": {"finalizers": None}},
        "labels of the controller": {"metadata": {"labels": {"fleet.openfleet.io/x": "2"}}},
        "annotations of the controller": {"metadata": {"annotations": {name: None}}},
    }
    for message, change in changes.items():
        assert message in refusal(lambda body=change: tenant.patch(created, body, checked=False))
    assert refusal(lambda: tenant.patch(created, {"status": {"hub": "east"}}, subresource="status", checked=False))
    for kind, body in ((QUOTA, {"spec": {"hard": {}}}), ("Hub", {"spec": {"capacity": {"clusters": 9}}})):
        metadata = {"name": "default"} | ({} if kind == "Hub" else {"namespace": fleet.namespace})
        item = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
        assert refusal(lambda made=item | body: tenant.create(made))


def test_tenant_has_no_more_clusters_than_the_shipped_resource_quota_says(fleet: Fleet) -> None:
    quota, name = manifest("fleet/tenant/resource_quota"), "count/fleetclusters.fleet.openfleet.io"
    assert set(quota["spec"]["hard"]) == {name}
    metadata = quota["metadata"] | {"namespace": fleet.namespace}
    created = fleet.home.create(quota | {"metadata": metadata, "spec": {"hard": {name: "1"}}})
    # The sandbox has no controller that counts what exists.
    fleet.home.replace(created | {"status": {"hard": {name: "1"}, "used": {name: "1"}}}, "status")
    second = cluster(fleet.namespace)
    until(lambda: "exceeded quota" in refusal(lambda: fleet.home.create(second, dry_run=True)), "a second cluster is refused", 60)
