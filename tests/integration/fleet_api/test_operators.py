"""What operators of a fleet do through the REST API, each with the permissions of the shipped role; and kubeconfigs of clusters."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import (
    ADOPT_ORDER,
    API_VERSION,
    CLUSTER,
    HUB,
    QUOTA,
    RETRY,
    hub_namespace,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kubeconfig_request import (
    KubeconfigAnswer,
    KubeconfigRequest,
    is_request,
    kubeconfig_for,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads import Workload, to_json
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads_request import WorkloadsAnswer

from ..support.fleet import TEMPLATE, Fleet
from ..support.fleet_api import Client, Facade, Site, Tenant

SPEC = {"template": TEMPLATE, "nodeSets": {"workers": {"class": "fc430", "size": 2}}}


@pytest.fixture
def operator(site: Site, facade: Facade, tenant: Tenant) -> Iterator[Client]:
    with site.operator(tenant.name) as token:
        client = Client(facade.address, token)
        until(lambda: client.get("/admin/quotas").status == 200, "the service knows the operator")
        yield client


def test_operator_manages_clusters_of_all_tenants(operator: Client, tenant: Tenant, site: Site) -> None:
    cluster = tenant.client.post("/clusters", {"name": "demo", "spec": SPEC}).json()
    path = f"/admin/clusters/{cluster['id']}"
    assert operator.get(path).json() == cluster
    listed = operator.get(f"/admin/clusters?filter=tenant%20==%20%22{tenant.name}%22").json()
    assert [item["id"] for item in listed["items"]] == [cluster["id"]]
    changed = operator("PUT", f"{path}/expiry", {"expiresAt": "2099-01-01T00:00:00Z"}, If_Match=f'"{cluster["resourceVersion"]}"')
    assert (changed.status, changed.json()["spec"]["expiresAt"]) == (200, "2099-01-01T00:00:00Z")
    assert "expiresAt" not in operator("PUT", f"{path}/expiry", {"expiresAt": None}).json()["spec"]
    assert operator("PUT", f"{path}/expiry", {"expiresAt": "soon"}).code == "unprocessable"
    assert operator.post(f"{path}/retry").status == 202
    assert site.home.kube.get(API_VERSION, CLUSTER, "demo", tenant.name)["metadata"]["annotations"][RETRY]
    assert operator("DELETE", path).status == 202
    until(lambda: operator.get(path).status == 404, "the cluster is deleted")


def test_operator_creates_a_cluster_that_adopts_an_order(operator: Client, tenant: Tenant, site: Site) -> None:
    body = {"name": "old", "tenant": tenant.name, "spec": {"template": TEMPLATE}, "adoptOrder": "orders/old"}
    assert operator.post("/admin/clusters", body).json()["errors"][0]["field"] == "spec.placement.hub"
    adopting = body | {"spec": {"template": TEMPLATE, "placement": {"hub": "east"}}}
    assert operator.post("/admin/clusters", adopting, Idempotency_Key="a").status == 202
    assert operator.post("/admin/clusters", adopting, Idempotency_Key="a").headers["Idempotency-Replayed"] == "true"
    assert operator.post("/admin/clusters", adopting | {"adoptOrder": "orders/b"}, Idempotency_Key="a").code == "idempotency-key-reused"
    assert site.home.kube.get(API_VERSION, CLUSTER, "old", tenant.name)["metadata"]["annotations"][ADOPT_ORDER] == "orders/old"


def test_operator_cordons_drains_and_uncordons_a_hub(operator: Client, tenant: Tenant, fleet: Fleet) -> None:
    hub = fleet.add_hub("east", clusters=3)
    fleet.set_quota(hard={})
    until(lambda: operator.get(f"/admin/hubs/{hub}").status == 200, "the service has the hub")
    cluster = tenant.client.post("/clusters", {"name": "demo", "spec": SPEC}).json()
    fleet.reconcile()
    until(lambda: tenant.client.get(f"/clusters/{cluster['id']}").json()["status"].get("hub") == hub, "the cluster is bound")
    until(lambda: operator.get(f"/admin/hubs/{hub}").json()["clusters"] == 1, "the hub has the cluster")
    shown = operator.get(f"/admin/hubs/{hub}").json()
    assert (shown["ready"], shown["free"]) == (True, {"clusters": 2, "nodes": {"fc430": 8}})
    query = f"filter=ready%20%26%26%20clusters%20%3D%3D%201%20%26%26%20name%20%3D%3D%20%22{hub}%22&fields=name"  # there may be others
    assert operator.get(f"/admin/hubs?{query}").json()["items"] == [{"id": hub, "name": hub}]
    assert operator.post(f"/admin/hubs/{hub}/cordon").json()["spec"]["schedulable"] is False
    drained = operator.post(f"/admin/hubs/{hub}/drain").json()
    assert [item["id"] for item in drained["clusters"]] == [cluster["id"]]
    assert fleet.home.get(API_VERSION, HUB, hub)["spec"]["schedulable"] is False
    assert operator.post(f"/admin/hubs/{hub}/uncordon").json()["spec"]["schedulable"] is True


def test_operator_sets_a_quota_and_the_tenant_sees_it(operator: Client, tenant: Tenant, fleet: Fleet) -> None:
    path = f"/admin/quotas/{tenant.name}"
    created = operator("PUT", path, {"spec": {"hard": {"clusters": 1}, "maxLifetime": "2d"}})
    assert (created.status, created.json()["hard"], created.json()["maxLifetime"]) == (200, {"clusters": 1}, "2d")
    until(lambda: tenant.client.get(f"/quotas/{tenant.name}").json().get("hard") == {"clusters": 1}, "the tenant sees its quota")
    changed = operator("PUT", path, {"spec": {"hard": {"clusters": 2}}}, If_Match=created.headers["ETag"])
    assert (changed.json()["hard"], "maxLifetime" in changed.json()) == ({"clusters": 2}, False)
    assert operator("PUT", path, {"spec": {}}, If_Match=created.headers["ETag"]).code == "precondition-failed"
    assert operator("PUT", path, {"spec": {"hard": {"pods": 1}}}).code == "unprocessable"
    assert operator("PUT", "/admin/quotas/none", {"spec": {}}).code == "not-found"
    assert fleet.home.get(API_VERSION, QUOTA, "default", tenant.name)["spec"] == {"hard": {"clusters": 2}}
    assert tenant.name in [item["tenant"] for item in operator.get("/admin/quotas").json()["items"]]


def test_plan_explains_quota_and_placement_and_reserves_nothing(tenant: Tenant, fleet: Fleet) -> None:
    hub = fleet.add_hub("east", nodes=3)
    fleet.set_quota(hard={"clusters": 1, "nodes": 5}, maxLifetime="2d")
    until(lambda: tenant.client.get(f"/quotas/{tenant.name}").json().get("hard"), "the service has the quota")

    def planned() -> Any:
        """What the service plans, once it has the hub of this test, and no longer that of an earlier one."""
        plan = tenant.client.post("/plan", {"spec": SPEC}).json()
        return plan if plan["scheduling"].get("hub") == hub else None

    fits = until(planned, "the service has the hub")
    assert (fits["fits"], fits["quota"]["needed"]["nodes"]) == (True, 2)
    assert datetime.fromisoformat(fits["expires"]) > datetime.now(UTC) + timedelta(days=1)
    large = tenant.client.post("/plan", {"spec": SPEC | {"nodeSets": {"workers": {"class": "fc430", "size": 6}}}}).json()
    assert large["quota"] | {"fits": False} == large["quota"]
    assert large["quota"]["message"] == "The quota is exceeded: nodes needs 6, 5 of 5 free"
    assert "1 with too few fc430 (best 3 of 6)" in large["scheduling"]["message"]
    assert tenant.client.post("/plan", {"spec": {"template": "a b"}}).code == "unprocessable"
    assert tenant.client.post("/plan", {"spec": SPEC | {"placement": {"hub": hub}}}).code == "denied-by-policy"
    assert tenant.client.get("/clusters").json()["items"] == []
    assert fleet.quota()["reservations"] == {}


def test_templates_are_those_of_hubs_for_the_tenant(tenant: Tenant, other: Tenant, fleet: Fleet) -> None:
    hub = fleet.add_hub("east", tenantSelector={"matchLabels": {"kubernetes.io/metadata.name": tenant.name}})
    schema = {"type": "object", "properties": {"version": {"type": "string"}}}
    item = fleet.home.get(API_VERSION, HUB, hub)
    name = f"site.templates.{tenant.name.replace('-', '_')}"
    templates = [{"name": name, "title": "Small", "description": "A small cluster", "parameters": schema, "nodes": {"fc430": 2}}]
    fleet.home.patch(item, {"status": {"templates": templates}}, subresource="status", strict=True, checked=False)
    until(lambda: tenant.client.get(f"/templates/{name}").status == 200, "the service has the template")
    assert tenant.client.get(f"/templates/{name}").json() == {"id": name, "tenants": [tenant.name], **templates[0]}
    assert other.client.get(f"/templates/{name}").code == "not-found"
    assert name not in [each["name"] for each in other.client.get("/templates").json()["items"]]


# Kubeconfigs


@pytest.fixture
def bound(site: Site, tenant: Tenant, fleet: Fleet) -> tuple[str, str]:
    """The id of a cluster with an API server, and its hub; the service may ask the agent of that hub."""
    hub = fleet.add_hub("east")
    fleet.set_quota(hard={})
    site.let_ask(hub)
    uid = tenant.client.post("/clusters", {"name": "demo", "spec": SPEC}).json()["id"]
    assert tenant.client.post(f"/clusters/{uid}/kubeconfig").code == "not-ready"
    fleet.reconcile()
    fleet.report("demo", 2, state="Ready", apiURL="https://api.demo.example:6443")
    fleet.reconcile()
    until(lambda: tenant.client.get(f"/clusters/{uid}").json()["status"].get("apiURL"), "the cluster has an API server")
    return uid, hub


def test_kubeconfig_is_that_of_the_agent_and_is_stored_nowhere(site: Site, tenant: Tenant, bound: tuple[str, str], facade: Facade) -> None:
    uid, hub = bound
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=20)
    issued = kubeconfig_for("demo", {"server": "https://api.demo.example:6443"}, "secret-token")
    seen = site.answer_one(hub, KubeconfigAnswer(issued, "", expires))
    answer = tenant.client.post(f"/clusters/{uid}/kubeconfig", {"expirationSeconds": 1200})
    assert answer.status == 200, answer.body
    assert answer.json()["kubeconfig"] == issued
    assert datetime.fromisoformat(answer.json()["expiresAt"]) == expires
    assert answer.headers["Cache-Control"] == "no-store"
    request = KubeconfigRequest.from_secret(seen[0])
    assert (request.uid, request.user, request.expiration_seconds) == (uid, f"system:serviceaccount:{tenant.name}:user", 1200)
    assert site.home.kube.find("v1", "Secret", seen[0]["metadata"]["name"], hub_namespace(hub)) is None
    assert "secret-token" not in facade.log.read_text(encoding="utf-8")


def test_reason_of_the_agent_is_reported(site: Site, tenant: Tenant, bound: tuple[str, str]) -> None:
    uid, hub = bound
    site.answer_one(hub, KubeconfigAnswer(error="The cluster has no kubeconfig yet."))
    answer = tenant.client.post(f"/clusters/{uid}/kubeconfig")
    assert (answer.code, answer.json()["detail"]) == ("not-ready", "The cluster has no kubeconfig yet.")


def test_workloads_and_events_of_a_cluster_are_those_of_its_hub_and_of_home(site: Site, tenant: Tenant, bound: tuple[str, str]) -> None:
    uid, hub = bound
    listed = to_json([Workload("Deployment", "shop", "web", "Failed", "0/1", "too late")])
    seen = site.answer_one(hub, WorkloadsAnswer(listed))
    found = tenant.client.get(f"/clusters/{uid}/workloads").json()
    assert [(each["name"], each["health"]) for each in found["items"]] == [("web", "Failed")]
    assert site.home.kube.find("v1", "Secret", seen[0]["metadata"]["name"], hub_namespace(hub)) is None
    for answer in (WorkloadsAnswer(error="It is away."), WorkloadsAnswer('{"items": 3}')):
        site.answer_one(hub, answer)
        assert tenant.client.get(f"/clusters/{uid}/workloads").code == "not-ready"
    about = {"apiVersion": API_VERSION, "kind": CLUSTER, "name": "demo", "namespace": tenant.name, "uid": uid}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "odd", "namespace": tenant.name}, "involvedObject": about}
    site.home.kube.create(event | {"reason": "Odd", "message": "So it is.", "type": "Warning", "lastTimestamp": "2099-01-01T00:00:00Z"})
    latest = tenant.client.get(f"/clusters/{uid}/events").json()["items"][0]
    assert (latest["reason"], latest["message"], latest["type"], latest["count"]) == ("Odd", "So it is.", "Warning", 1)


def test_session_and_summary_are_those_of_the_caller(tenant: Tenant, operator: Client, bound: tuple[str, str]) -> None:
    session = tenant.client.get("/session").json()
    assert session == {"user": f"system:serviceaccount:{tenant.name}:user", "tenants": [tenant.name], "operator": False}
    assert operator.get("/session").json()["operator"] is True
    own, everyone = tenant.client.get("/summary").json(), operator.get("/admin/summary").json()
    assert (own["clusters"], own["tenants"]) == (1, [{"value": tenant.name, "clusters": 1}])
    assert {"value": bound[1], "clusters": 1} in everyone["hubs"]
    assert tenant.client.get("/admin/summary").code == "not-found"


def test_silent_hub_is_reported_and_its_request_deleted(site: Site, tenant: Tenant, bound: tuple[str, str], impatient: Facade) -> None:
    uid, hub = bound
    client = tenant.at(impatient)
    until(lambda: client.get(f"/clusters/{uid}").json().get("status", {}).get("apiURL"), "the replica has the cluster with its API server")
    answer = client.post(f"/clusters/{uid}/kubeconfig")
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (504, "hub-timeout", "30")
    assert not [item for item in site.home.kube.list_all("v1", "Secret", hub_namespace(hub)) if is_request(item)]


@pytest.fixture(scope="module")
def impatient(site: Site) -> Facade:
    return site.start(kubeconfig_seconds=0.5)


def test_expiration_has_limits(tenant: Tenant, bound: tuple[str, str]) -> None:
    for seconds in (1, 10**9, "1200", None):
        body: dict[str, Any] = {"expirationSeconds": seconds}
        assert tenant.client.post(f"/clusters/{bound[0]}/kubeconfig", body).json()["errors"][0]["field"] == "expirationSeconds"


def test_records_and_usage_are_those_of_the_tenant(site: Site, tenant: Tenant, fleet: Fleet) -> None:
    hub = fleet.add_hub("east")
    fleet.set_quota(hard={})
    for name in ("one", "two"):
        tenant.client.post("/clusters", {"name": name, "spec": SPEC})
    fleet.reconcile()
    for item in site.home.kube.list_all(API_VERSION, CLUSTER, tenant.name):
        site.home.kube.delete(item)
    for _step in range(3):
        fleet.reconcile(timedelta(hours=2))
    until(lambda: len(tenant.client.get("/records").json()["items"]) == 2, "the service has the records")
    first = tenant.client.get("/records?order_by=name&limit=1&filter=hub%20%21=%20%22%22").json()
    assert (first["items"][0]["name"], first["items"][0]["hub"]) == ("one", hub)
    assert first["items"][0]["owner"] == f"system:serviceaccount:{tenant.name}:user"
    assert tenant.client.get(f"/records/{first['items'][0]['id']}").json() == first["items"][0]
    second = tenant.client.get(f"/records?order_by=name&limit=1&filter=hub%20%21=%20%22%22&cursor={first['nextCursor']}").json()
    assert ([item["name"] for item in second["items"]], "nextCursor" in second) == (["two"], False)
    usage = tenant.client.get("/usage").json()["items"][0]
    assert (usage["tenant"], usage["clusters"]) == (tenant.name, 2)
    assert usage["nodeHours"]["fc430"] >= 8
    assert tenant.client.get("/usage?since=2200-01-01T00:00:00Z").json()["items"][0]["clusters"] == 0
    assert tenant.client.get("/usage?until=yesterday").code == "invalid-request"


def test_user_may_name_no_field_that_the_agent_would_read(tenant: Tenant, bound: tuple[str, str]) -> None:
    uid, _hub = bound
    body = {"expirationSeconds": 1200, "user": base64.b64encode(b"root").decode()}
    assert tenant.client.post(f"/clusters/{uid}/kubeconfig", body).code == "invalid-request"
