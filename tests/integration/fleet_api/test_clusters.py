"""Clusters through the REST API on a real home cluster: created, read, listed, changed and deleted as the caller."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, CREATED_BY

from ..support.fleet import TEMPLATE
from ..support.fleet_api import TENANT_ROLE, Answer, Facade, Site, Tenant

_keys = itertools.count(1)


def order(name: str = "demo", **spec: Any) -> dict[str, Any]:
    return {"name": name, "spec": {"template": TEMPLATE, **spec}}


@pytest.fixture(scope="module")
def second(site: Site, facade: Facade) -> Facade:
    """Another replica."""
    assert facade.is_ready()
    return site.start()


def test_cluster_is_created_read_changed_and_deleted(site: Site, tenant: Tenant) -> None:
    created = tenant.client.post("/clusters", order(nodeSets={"workers": {"class": "fc430", "size": 1}}))
    assert created.status == 202, created.body
    cluster = created.json()
    assert (cluster["name"], cluster["tenant"], cluster["status"]["state"]) == ("demo", tenant.name, "Pending")
    assert cluster["createdBy"] == f"system:serviceaccount:{tenant.name}:user"
    stored = site.home.kube.get(API_VERSION, CLUSTER, "demo", tenant.name)
    assert stored["metadata"]["annotations"][CREATED_BY] == cluster["createdBy"]
    path = f"/clusters/{cluster['id']}"
    assert created.headers["Location"].endswith(path)
    read = tenant.client.get(path)
    assert (read.status, read.json(), read.headers["ETag"]) == (200, cluster, created.headers["ETag"])
    assert tenant.client.get(path, If_None_Match=read.headers["ETag"]).status == 304
    change = {"spec": {"nodeSets": {"workers": {"size": 3}}}, "labels": {"team": "a"}}
    changed = tenant.client("PATCH", path, change, If_Match=read.headers["ETag"])
    assert changed.status == 200, changed.body
    assert (changed.json()["spec"]["nodeSets"]["workers"]["size"], changed.json()["labels"]) == (3, {"team": "a"})
    assert tenant.client.get(path).json() == changed.json()
    assert tenant.client("PATCH", path, change, If_Match=read.headers["ETag"]).code == "precondition-failed"
    assert tenant.client("DELETE", path, If_Match=read.headers["ETag"]).code == "precondition-failed"
    assert tenant.client("DELETE", path).status == 202
    until(lambda: tenant.client.get(path).status == 404, "the cluster is deleted")
    assert tenant.client("DELETE", path).code == "not-found"


def test_cluster_is_there_at_once_on_every_replica(tenant: Tenant, second: Facade) -> None:
    """The other replica may not have it in its cache yet."""
    elsewhere = tenant.at(second)
    for number in range(10):
        created = tenant.client.post("/clusters", order(f"c{number}")).json()
        assert elsewhere.get(f"/clusters/{created['id']}").json()["name"] == f"c{number}"
        changed = elsewhere("PATCH", f"/clusters/{created['id']}", {"spec": {"priority": number}})
        assert (changed.status, changed.json()["spec"]["priority"]) == (200, number)


def test_request_that_is_repeated_with_its_key_has_one_effect(tenant: Tenant, second: Facade) -> None:
    key = f"key-{next(_keys)}"
    clients = [tenant.client, tenant.at(second)]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: clients[number % 2].post("/clusters", order(), Idempotency_Key=key), range(8)))
    assert {answer.status for answer in answers} == {202}, [answer.body for answer in answers]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert tenant.client.post("/clusters", order("other"), Idempotency_Key=key).code == "idempotency-key-reused"
    assert tenant.client.post("/clusters", order(priority=1), Idempotency_Key=key).code == "idempotency-key-reused"
    assert tenant.client.post("/clusters", order(), Idempotency_Key="another").code == "already-exists"
    assert tenant.client.post("/clusters", order()).code == "already-exists"
    assert len(tenant.client.get("/clusters").json()["items"]) == 1


def test_of_different_requests_with_one_key_at_once_one_is_accepted(site: Site, tenant: Tenant, second: Facade) -> None:
    """Whichever replica they reach. A repetition of the accepted one returns its cluster, of any other one is refused."""
    clients = [tenant.client, tenant.at(second)]
    for attempt in range(3):
        key, bodies = f"key-{next(_keys)}", [order(f"c{attempt}-{number}") for number in range(8)]

        def send(number: int, key: str = key, bodies: list[dict[str, Any]] = bodies) -> Answer:
            return clients[number % 2].post("/clusters", bodies[number], Idempotency_Key=key)

        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(send, range(8)))
        accepted = [answer.json() for answer in answers if answer.status == 202]
        assert len(accepted) == 1, [answer.body for answer in answers]
        assert {answer.code for answer in answers if answer.status != 202} == {"idempotency-key-reused"}
        stored = [item["metadata"]["name"] for item in site.home.kube.list_all(API_VERSION, CLUSTER, tenant.name)]
        names = [name for name in stored if name.startswith(f"c{attempt}-")]
        assert names == [accepted[0]["name"]]
        for number, body in enumerate(bodies):
            repeated = send(number)
            assert repeated.json()["id"] == accepted[0]["id"] if body["name"] in names else repeated.code == "idempotency-key-reused"


def test_clusters_are_listed_page_by_page_by_a_filter_and_an_order(tenant: Tenant) -> None:
    for number in range(5):
        body = order(f"c{number}", priority=number) | {"labels": {"even": str(number % 2 == 0).lower()}}
        assert tenant.client.post("/clusters", body).status == 202
    query = "/clusters?limit=2&order_by=priority%20desc&fields=name,spec.priority&filter=labels%5B%22even%22%5D%20%3D%3D%20%22true%22"
    first = tenant.client.get(query).json()
    assert [(item["name"], item["spec"]) for item in first["items"]] == [("c4", {"priority": 4}), ("c2", {"priority": 2})]
    second = tenant.client.get(f"{query}&cursor={first['nextCursor']}").json()
    assert ([item["name"] for item in second["items"]], second.get("nextCursor")) == (["c0"], None)
    assert tenant.client.get(f"/clusters?cursor={first['nextCursor']}").code == "invalid-cursor"
    misspelled = tenant.client.get("/clusters?filtr=true")
    assert (misspelled.code, misspelled.json()["errors"][0]["field"]) == ("invalid-request", "filtr")
    wrong = tenant.client.get("/clusters?filter=priority%20%3D%3D%20%22a%22")
    assert (wrong.code, wrong.json()["detail"]) == ("invalid-filter", "int and string cannot be compared at position 10.")


def test_home_cluster_decides_and_its_reasons_are_reported(tenant: Tenant) -> None:
    hub = tenant.client.post("/clusters", order(placement={"hub": "east"}))
    assert (hub.status, hub.code) == (403, "denied-by-policy")
    assert hub.json()["detail"].startswith("To set placement.hub needs the permission to create fleetclusters/binding.")
    wrong = tenant.client.post("/clusters", order(nodeSets={"workers": {"class": "a", "size": -1}}, unknown=1))
    assert (wrong.status, wrong.code) == (422, "unprocessable")
    assert "unknown" in wrong.json()["detail"]
    size = tenant.client.post("/clusters", order(nodeSets={"workers": {"class": "a", "size": -1}}))
    assert [error["field"] for error in size.json()["errors"]] == ["spec.nodeSets.workers.size"]
    created = tenant.client.post("/clusters", order()).json()
    label = tenant.client("PATCH", f"/clusters/{created['id']}", {"labels": {"fleet.openfleet.io/x": "1"}})
    assert (label.status, label.code) == (400, "invalid-request")
    for body in ({"spec": {"template": "other"}}, {"metadata": {}}, {"status": {"state": "Ready"}}, [], "x", None):
        assert tenant.client("PATCH", f"/clusters/{created['id']}", body or b"").code == "invalid-request"
    for body in (order("UPPER"), order("a" * 64), {"name": "x"}, {"name": "x", "spec": {"template": None}}, order() | {"id": "1"}):
        assert tenant.client.post("/clusters", body).code == "invalid-request"


def test_caller_with_two_tenants_names_one(site: Site, tenant: Tenant, other: Tenant) -> None:
    site.bind(other.name, TENANT_ROLE, name="user", namespace=tenant.name)
    until(lambda: len(tenant.client.get("/tenants").json()["items"]) == 2, "the service knows both")
    refused = tenant.client.post("/clusters", order())
    assert (refused.status, refused.code) == (400, "tenant-required")
    assert tenant.client.post("/clusters", order() | {"tenant": other.name}).json()["tenant"] == other.name
    assert tenant.client.post("/clusters", order() | {"tenant": tenant.name}).json()["tenant"] == tenant.name
    assert [item["tenant"] for item in tenant.client.get(f"/clusters?tenant={other.name}").json()["items"]] == [other.name]
    assert len(tenant.client.get("/clusters").json()["items"]) == 2


def test_new_cluster_with_the_name_of_a_deleted_one_is_another_one(site: Site, tenant: Tenant) -> None:
    first = tenant.client.post("/clusters", order()).json()
    site.home.kube.delete(site.home.kube.get(API_VERSION, CLUSTER, "demo", tenant.name))
    second = tenant.client.post("/clusters", order()).json()
    assert first["id"] != second["id"]
    for method, body in (("GET", None), ("PATCH", {"spec": {"priority": 1}}), ("DELETE", None)):
        until(lambda method=method, body=body: tenant.client(method, f"/clusters/{first['id']}", body).status == 404, "the first is gone")
    assert tenant.client.get(f"/clusters/{second['id']}").json() == second
