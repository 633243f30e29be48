"""A tenant sees, changes and learns nothing of another one. The operations come from the OpenAPI document, so that none is forgotten."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, RECORD

from ..support.fleet import TEMPLATE, Fleet, fleet_of
from ..support.fleet_api import API, Answer, Client, Facade, Site, Stream, Tenant

MARK = "xylophone"  # in all names of the other tenant
FUTURE = "2099-01-01T00:00:00Z"
SPEC = {"template": TEMPLATE}
# A valid body for each operation that has one; the tenant is replaced.
BODIES: dict[str, dict[str, Any]] = {
    "create_cluster": {"name": MARK, "tenant": "", "spec": SPEC},
    "change_cluster": {"spec": {"priority": 1}},
    "issue_kubeconfig": {},
    "plan_cluster": {"tenant": "", "spec": SPEC},
    "create_any_cluster": {"name": MARK, "tenant": "", "spec": SPEC},
    "set_expiry": {"expiresAt": FUTURE},
    "set_quota": {"spec": {"hard": {"clusters": 1}}},
}


@dataclass(frozen=True)
class Victim:
    """The other tenant, and the ids of all that it has, by the path of the collection."""

    tenant: Tenant
    ids: dict[str, str]

    def traces(self) -> list[bytes]:
        return [text.encode() for text in (MARK, self.tenant.name, *self.ids.values())]


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    id: str
    parameters: frozenset[str]
    has_body: bool

    @property
    def collection(self) -> str:
        return self.path.removeprefix(API).removeprefix("/admin").split("/")[1]

    def send(self, client: Client, wanted: str, tenant: str, query: str = "", **headers: str) -> Answer:
        body = BODIES[self.id] if self.has_body else None
        if body and "tenant" in body:
            body = body | {"tenant": tenant}
        return client(self.method, f"/{self.path.format(id=wanted)}{query}", body, **headers)


@pytest.fixture
def victim(site: Site, other: Tenant) -> Iterator[Victim]:
    with fleet_of(site.home, other.name) as fleet:
        hub = fleet.add_hub(MARK, tenantSelector={"matchLabels": {"kubernetes.io/metadata.name": other.name}})
        fleet.set_quota(hard={"clusters": 7})
        answer = other.client.post("/clusters", {"name": MARK, "spec": SPEC | {"priority": 7}, "labels": {MARK: MARK}})
        uid = str(uuid.uuid4())
        record = site.home.kube.create(
            {
                "apiVersion": API_VERSION,
                "kind": RECORD,
                "metadata": {"name": uid, "namespace": other.name},
                "spec": {"name": MARK, "uid": uid, "template": TEMPLATE, "created": FUTURE, "deleted": FUTURE, "reason": "Deleted"},
            },
            strict=True,
        )
        ids = {"clusters": answer.json()["id"], "records": record["metadata"]["uid"], "quotas": other.name, "hubs": hub, "templates": MARK}
        made = Victim(other, ids)
        for path in ("/records", "/quotas"):
            until(lambda path=path: other.client.get(path).json()["items"], f"the service has the {path} of the other tenant")
        yield made


def operations(facade: Facade) -> list[Operation]:
    document = Client(facade.address).get("//openapi.json").json()
    found = []
    for path, methods in document["paths"].items():
        for method, each in methods.items():
            names = frozenset(parameter["name"] for parameter in each.get("parameters", ()))
            found.append(Operation(method.upper(), path, each["operationId"], names, "requestBody" in each))
    return found


def shown(answer: Answer) -> tuple[int, Any]:
    """What a client can tell answers apart by."""
    body = answer.json()
    body.pop("operation_id", None)
    return answer.status, body


def test_answers_about_another_tenants_things_are_those_about_things_that_do_not_exist(
    facade: Facade, tenant: Tenant, victim: Victim
) -> None:
    swept = [each for each in operations(facade) if "{id}" in each.path]
    assert len(swept) >= 16
    for operation in swept:
        invented = "none" if operation.collection in ("quotas", "hubs", "templates") else str(uuid.uuid4())
        for headers in ({}, {"If-Match": '"1"'}, {"If-None-Match": "*"}):
            if not {name.lower() for name in headers} <= {name.lower() for name in operation.parameters}:
                continue
            answers = [operation.send(tenant.client, each, "x", **headers) for each in (victim.ids[operation.collection], invented)]
            assert shown(answers[0]) == shown(answers[1]), operation
            assert answers[0].status == 404, operation


def test_another_tenants_name_is_answered_like_one_that_does_not_exist(facade: Facade, tenant: Tenant, victim: Victim) -> None:
    for operation in operations(facade):
        if "tenant" in operation.parameters:
            names = (victim.tenant.name, "none")
            answers = [operation.send(tenant.client, "x", "x", f"?tenant={tenant.name}&tenant={name}") for name in names]
        elif "tenant" in BODIES.get(operation.id, {}):
            answers = [operation.send(tenant.client, "x", name) for name in (victim.tenant.name, "none")]
        else:
            continue
        assert shown(answers[0]) == shown(answers[1]), operation
        assert answers[0].status == 404, operation


def test_no_list_filter_order_or_cursor_shows_another_tenant(facade: Facade, tenant: Tenant, victim: Victim) -> None:
    filters = ["", "?filter=true", f"?filter=name%20==%20%22{MARK}%22", "?filter=priority%20==%207", "?order_by=tenant%20desc&limit=500"]
    for operation in operations(facade):
        if operation.method != "GET" or "{" in operation.path or operation.path.endswith("/events"):
            continue
        for query in filters if "filter" in operation.parameters else [""]:
            answer = operation.send(tenant.client, "x", "x", query)
            assert answer.status in ((404,) if "/admin/" in operation.path else (200, 400)), operation
            assert not [trace for trace in victim.traces() if trace in answer.body], operation
    for number in range(3):
        victim.tenant.client.post("/clusters", {"name": f"c{number}", "spec": SPEC})
    cursor = victim.tenant.client.get("/clusters?limit=1").json()["nextCursor"]
    garbage = tenant.client.get("/clusters?limit=1&cursor=AAAA")
    assert shown(tenant.client.get(f"/clusters?limit=1&cursor={cursor}")) == shown(garbage)
    assert garbage.code == "invalid-cursor"


def test_own_plan_shows_nothing_of_another_tenant_and_its_hub(tenant: Tenant, fleet: Fleet, victim: Victim) -> None:
    fleet.set_quota(hard={"clusters": 1})
    hub = fleet.add_hub("own")

    def planned(spec: dict[str, Any]) -> dict[str, Any]:
        answer = tenant.client.post("/plan", {"spec": spec})
        assert answer.status == 200, answer.body
        assert not [trace for trace in victim.traces() if trace in answer.body]
        scheduling: dict[str, Any] = answer.json()["scheduling"]
        return scheduling

    until(lambda: planned(SPEC).get("hub") == hub, "the service has the hub of the tenant")
    unfit = planned(SPEC | {"nodeSets": {"workers": {"class": "fc430", "size": 99}}})
    assert not unfit["fits"] and "1 not for this tenant" in unfit["message"], unfit


def test_names_of_another_tenant_are_free_and_keys_are_of_one_user(tenant: Tenant, victim: Victim) -> None:
    body = {"name": MARK, "spec": SPEC}
    other = victim.tenant.client.post("/clusters", body | {"name": "keyed"}, Idempotency_Key="same")
    own = tenant.client.post("/clusters", body, Idempotency_Key="same")
    assert (own.status, own.json()["tenant"]) == (202, tenant.name)
    assert own.json()["id"] != other.json()["id"]


def test_stream_and_its_past_show_nothing_of_another_tenant(tenant: Tenant, victim: Victim) -> None:
    before = tenant.client.get("/clusters").json()["resourceVersion"]
    stream = Stream(tenant.client)
    assert stream.next().name == "synced"
    path = f"/clusters/{victim.ids['clusters']}"
    victim.tenant.client("PATCH", path, {"spec": {"priority": 8}})
    victim.tenant.client("DELETE", path)
    own = tenant.client.post("/clusters", {"name": "own", "spec": SPEC}).json()
    assert stream.next().data == own
    stream.close()
    resumed = Stream(tenant.client, last=before)
    assert resumed.next().data == own
    resumed.close()


def test_tenant_without_the_permission_to_write_sees_and_changes_nothing_more(site: Site, facade: Facade, tenant: Tenant) -> None:
    """A viewer of a tenant: what the service may do does not help it."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "viewer", "namespace": tenant.name},
        "rules": [{"apiGroups": ["fleet.openfleet.io"], "resources": ["fleetclusters"], "verbs": ["get", "list"]}],
    }
    site.home.kube.create(role)
    viewer = Client(facade.address, site.account(tenant.name, "viewer"))
    binding = site.bind(tenant.name, "viewer", name="viewer")
    site.home.kube.delete(binding)
    site.home.kube.create(binding | {"roleRef": binding["roleRef"] | {"kind": "Role"}})
    until(lambda: viewer.get("/tenants").json()["items"], "the service knows the viewer")
    cluster = tenant.client.post("/clusters", {"name": "demo", "spec": SPEC}).json()
    assert viewer.get(f"/clusters/{cluster['id']}").json() == cluster
    assert viewer.post("/clusters", {"name": "more", "spec": SPEC}).code == "forbidden"
    assert viewer("PATCH", f"/clusters/{cluster['id']}", {"spec": {"priority": 1}}).code == "forbidden"
    assert viewer("DELETE", f"/clusters/{cluster['id']}").code == "forbidden"
    assert viewer.post("/plan", {"spec": SPEC}).code == "forbidden"
    assert viewer.post(f"/clusters/{cluster['id']}/kubeconfig").code == "forbidden"
    assert viewer.get("/quotas").json() == {"items": []}
    assert viewer.get(f"/quotas/{tenant.name}").code == "not-found"
    assert viewer.get("/records").json() == {"items": []}


def test_account_without_any_role_has_no_tenant(site: Site, facade: Facade, namespace: str, fleet: Fleet) -> None:
    stranger = Client(facade.address, site.account(namespace, "stranger"))
    assert stranger.get("/tenants").json() == {"items": []}
    assert stranger.get("/clusters").json()["items"] == []
    assert stranger.post("/clusters", {"name": "demo", "spec": SPEC}).code == "tenant-required"
    assert stranger.post("/clusters", {"name": "demo", "tenant": fleet.namespace, "spec": SPEC}).code == "not-found"
