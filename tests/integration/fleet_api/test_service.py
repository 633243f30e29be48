"""The service itself: its account, its limits, its log and its health."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, ASSIGNMENT, CLUSTER, HUB, QUOTA
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden

from ..support.fleet import TEMPLATE
from ..support.fleet_api import API, Client, Facade, Site, Tenant

BODY_BYTES = 262144


@pytest.fixture(scope="module")
def strict(site: Site) -> Facade:
    """A replica with small limits."""
    return site.start(limits={"header_seconds": 1, "request_seconds": 1})


def test_account_of_the_service_can_do_nothing_else(site: Site, tenant: Tenant) -> None:
    own = Kube.connect({"kubeconfig": str(site.kubeconfig)})
    user = f"system:serviceaccount:{tenant.name}:user"
    cluster = {
        "apiVersion": API_VERSION,
        "kind": CLUSTER,
        "metadata": {"name": "x", "namespace": tenant.name},
        "spec": {"template": TEMPLATE},
    }
    own.impersonate(user).create(cluster, dry_run=True)
    own.list_all(API_VERSION, HUB)
    refused = {
        "writes as itself": lambda: own.create(cluster, dry_run=True),
        "reads Secrets": lambda: own.list_all("v1", "Secret", tenant.name),
        "reads assignments": lambda: own.list_all(API_VERSION, ASSIGNMENT),
        "reads Secrets as an operator": lambda: own.impersonate("oidc:root", ["oidc:admins"]).list_all("v1", "Secret"),
        "reads quotas of others as a tenant": lambda: own.impersonate(user).list_all(API_VERSION, QUOTA, "default"),
        "acts as an administrator": lambda: own.impersonate("x", ["system:masters"]).list_all(API_VERSION, CLUSTER, "default"),
        "acts as a node": lambda: own.impersonate("system:node:a").list_all(API_VERSION, CLUSTER, "default"),
        "acts as the controller on namespaces": lambda: own.impersonate(
            "system:serviceaccount:openfleet-system:openfleet-clusters"
        ).list_all("v1", "Namespace"),
    }
    for what, attempt in refused.items():
        with pytest.raises(Forbidden):
            attempt()
            pytest.fail(what)


def test_requests_beyond_the_rate_of_a_user_are_refused(site: Site, tenant: Tenant, other: Tenant) -> None:
    limited = site.start(limits={"requests_per_second": 0.001, "burst": 3})
    first, second = (Client(limited.address, each.client.token) for each in (tenant, other))
    answers = [first.get("/tenants") for _request in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].code == "rate-limited"
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert second.get("/tenants").status == 200


def test_body_is_limited_in_size_kind_and_time(tenant: Tenant, facade: Facade, strict: Facade) -> None:
    large = b'{"name": "' + b"x" * BODY_BYTES + b'"}'
    assert tenant.client.post("/clusters", large).code == "too-large"
    assert tenant.client.post("/clusters", b"a: 1", Content_Type="application/yaml").code == "unsupported-media-type"
    assert tenant.client.post("/clusters", b"{").code == "invalid-request"
    assert tenant.client.post("/clusters", b"[" * 100000).code == "invalid-request"
    assert tenant.client.post("/clusters", b'{"name": "\xff"}').code == "invalid-request"
    chunked = b"POST %s/clusters HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % API.encode()
    assert b" 504 " in sent_slowly(strict, chunked + b"5\r\nhello\r\n")
    assert b" 413 " in sent_slowly(facade, chunked + b"%x\r\n%b\r\n" % (BODY_BYTES + 1, b"x" * (BODY_BYTES + 1)))


def test_head_of_a_request_is_limited_in_size_and_time(facade: Facade, strict: Facade) -> None:
    assert sent_slowly(strict, b"") == b""
    assert sent_slowly(strict, b"GET / HTTP/1.1\r\nHost: ") == b""
    assert b" 400 " in sent_slowly(facade, b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 100000)


def sent_slowly(facade: Facade, data: bytes) -> bytes:
    """What the service answers to a part of a request, after which nothing comes; empty if it disconnects."""
    with socket.create_connection(("127.0.0.1", facade.port), timeout=60) as connection:
        connection.sendall(data)
        try:
            return connection.recv(65536)
        except ConnectionError:
            return b""


def test_log_has_each_operation_and_no_secret(facade: Facade, tenant: Tenant) -> None:
    secret = "hunter2"  # noqa: S105 - not one of anything
    body = {"name": "demo", "spec": {"template": TEMPLATE, "templateParameters": {"password": secret}}}
    answers = [
        tenant.client.post("/clusters", body),
        tenant.client.get(f"/clusters?filter=name%20==%20%22{secret}%22", Idempotency_Key=secret),
        tenant.client.get(f"/clusters/{secret}"),
        tenant.client.post("/clusters", {"name": secret.upper(), "spec": {}}),
        tenant.client.with_token(secret).get("/clusters"),
    ]
    ids = [answer.headers["X-Operation-Id"] for answer in answers]
    assert answers[-1].json()["operation_id"] == ids[-1]
    until(lambda: {*ids} <= {line.get("operation_id") for line in facade.lines()}, "the log has the operations", 60)
    logged = {line["operation_id"]: line for line in facade.lines() if "operation_id" in line}
    assert [logged[each]["status"] for each in ids] == [202, 200, 404, 400, 401]
    assert logged[ids[2]] | {"route": f"{API}/clusters/{{id}}", "user": f"system:serviceaccount:{tenant.name}:user"} == logged[ids[2]]
    text = facade.log.read_text(encoding="utf-8").lower()
    assert secret not in text
    assert tenant.client.token.lower() not in text


def test_health_is_at_a_port_of_its_own(facade: Facade, tenant: Tenant) -> None:
    assert (facade.health("/healthz"), facade.health("/readyz"), facade.health("/clusters")) == (200, 200, 404)
    tenant.client.get("/clusters")
    metrics = facade.metrics()
    assert f'openfleet_api_requests_total{{code="200",method="GET",route="{API}/clusters"}}' in metrics
    assert tenant.name not in metrics
    for path in ("//healthz", "//readyz", "//metrics"):
        assert tenant.client.get(path).code == "not-found"


def test_wrong_settings_end_the_command_with_one_line(site: Site) -> None:
    facade = Facade(site.kubeconfig, site.folder / "wrong", {"issuers": [{"url": "http://issuer.example"}]})
    with pytest.raises(AssertionError, match=r"^The settings are invalid: issuers\.0\.audiences: Field required"):
        facade.start()
    assert facade.process
    assert facade.process.returncode == 1
