"""Tokens of the real home cluster and of a real OpenID Connect issuer: accepted and refused as described."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator

import jwt
import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ..support.fleet import TEMPLATE
from ..support.fleet_api import TENANT_ROLE, Client, Facade, Site, Tenant
from ..support.oidc_issuer import MISSING, OidcIssuer

ORDER = {"name": "demo", "spec": {"template": TEMPLATE}}
NO_NODE = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING}: install Node.js with npm")


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcIssuer]:
    made = OidcIssuer(tmp_path_factory.mktemp("oidc"))
    made.start("first")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def federated(site: Site, issuer: OidcIssuer) -> Facade:
    """A replica that accepts tokens of the issuer, and of the home cluster for an audience of its own."""
    trusted = {
        "url": issuer.url,
        "audiences": ["fleet-api"],
        "username_prefix": "oidc:",
        "groups_claim": "groups",
        "groups_prefix": "oidc:",
        "leeway": 0,
        "refresh_seconds": 0.1,
    }
    return site.start(issuers=[trusted], token_audiences=["fleet-api"])


@pytest.fixture(scope="module", autouse=True)
def leaver(site: Site, facade: Facade) -> Iterator[Client]:
    """The client of an account that was deleted before the first test: the API server itself knows its token for ten seconds."""
    with fresh_namespace(site.home) as namespace:
        client = Client(facade.address, site.account(namespace, "leaver"))
        assert client.get("/tenants").status == 200
        site.home.kube.delete({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "leaver", "namespace": namespace}})
        yield client


def refusal(facade: Facade, token: str, **headers: str) -> str:
    answer = Client(facade.address, token).get("/clusters", **headers)
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    return str(answer.json()["detail"])


def test_request_without_a_bearer_token_is_refused(facade: Facade) -> None:
    assert refusal(facade, "") == "The request has no token."
    for value in ("Basic YTpi", "Bearer", "Bearer ", "Token x"):
        assert refusal(facade, "", Authorization=value) == "The request has no bearer token."
    assert "unknown, expired, revoked" in refusal(facade, "invented")
    assert refusal(facade, "x" * 20000) == "The token is too long."


def test_token_of_the_home_cluster_for_another_audience_is_refused(site: Site, facade: Facade, tenant: Tenant) -> None:
    assert "another audience" in refusal(facade, site.token(tenant.name, "user", audience="elsewhere"))


@NO_NODE
def test_token_of_the_home_cluster_needs_the_audience_of_the_service(site: Site, federated: Facade, tenant: Tenant) -> None:
    assert "another audience" in refusal(federated, tenant.client.token)
    right = Client(federated.address, site.token(tenant.name, "user", audience="fleet-api"))
    found = until(lambda: right.get("/tenants").json()["items"], "the replica knows the tenant")
    assert found == [{"id": tenant.name, "name": tenant.name}]


@NO_NODE
def test_user_of_the_issuer_orders_a_cluster_by_the_groups_of_its_token(
    site: Site, federated: Facade, issuer: OidcIssuer, tenant: Tenant
) -> None:
    alice, bob = (Client(federated.address, issuer.token(name)) for name in ("alice", "bob"))
    site.bind(tenant.name, TENANT_ROLE, kind="Group", name="oidc:alice-team")
    until(lambda: alice.get("/tenants").json()["items"], "the service knows the group")
    created = alice.post("/clusters", ORDER)
    assert (created.status, created.json()["createdBy"]) == (202, "oidc:alice")
    stored = site.home.kube.get(API_VERSION, CLUSTER, "demo", tenant.name)
    assert stored["metadata"]["uid"] == created.json()["id"]
    assert bob.get(f"/clusters/{created.json()['id']}").code == "not-found"
    assert bob.get("/clusters").json()["items"] == []


@NO_NODE
def test_tokens_of_the_issuer_that_are_wrong_are_refused(federated: Facade, issuer: OidcIssuer) -> None:
    good = issuer.token("alice")
    assert Client(federated.address, good).get("/clusters").status == 200
    assert refusal(federated, issuer.token("alice", "urn:other")) == "The token is for another audience."
    assert "algorithm that is not allowed" in refusal(federated, issuer.token("alice", "urn:elliptic"))
    short = Client(federated.address, issuer.token("alice", "urn:short"))
    until(lambda: short.get("/clusters").status == 401, "the token expires", 60)
    assert refusal(federated, short.token) == "The token has expired."
    header, claims, signature = good.split(".")
    assert refusal(federated, f"{header}.{claims}.{signature[:-8]}AAAAAAAA") == "The token is not valid."
    other = rsa.generate_private_key(65537, 2048)
    content, kid = jwt.decode(good, options={"verify_signature": False}), jwt.get_unverified_header(good)["kid"]
    assert refusal(federated, jwt.encode(content, other, "RS256", {"kid": kid})) == "The token is not valid."
    assert refusal(federated, jwt.encode(content, other, "RS256", {"kid": "unknown"})) == "The issuer has no such key."
    for forged in (unsigned(content, kid), signed_with_the_public_key(issuer, content, kid)):
        assert "algorithm that is not allowed" in refusal(federated, forged)
    foreign = jwt.encode(content | {"iss": "https://elsewhere.example"}, other, "RS256", {"kid": kid})
    assert "unknown, expired, revoked" in refusal(federated, foreign)


@NO_NODE
def test_keys_of_the_issuer_can_be_rotated(federated: Facade, issuer: OidcIssuer) -> None:
    old = issuer.token("alice")
    assert Client(federated.address, old).get("/clusters").status == 200
    issuer.stop()
    issuer.start("second")
    assert Client(federated.address, issuer.token("alice")).get("/clusters").status == 200
    assert refusal(federated, old) == "The issuer has no such key."


def test_token_of_a_deleted_account_is_refused(leaver: Client) -> None:
    until(lambda: leaver.get("/tenants").status == 401, "the token is refused", 60)


def encoded(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def unsigned(claims: dict[str, object], kid: str) -> str:
    return f"{encoded({'alg': 'none', 'kid': kid})}.{encoded(claims)}."


def signed_with_the_public_key(issuer: OidcIssuer, claims: dict[str, object], kid: str) -> str:
    """HS256 with the public key as the secret: a verifier that trusts the header would accept it."""
    keys = jwt.PyJWKClient(f"{issuer.url}/jwks").get_signing_key(kid).key
    assert isinstance(keys, rsa.RSAPublicKey)
    secret = keys.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    content = f"{encoded({'alg': 'HS256', 'kid': kid})}.{encoded(claims)}"
    return f"{content}.{base64.urlsafe_b64encode(hmac.new(secret, content.encode(), hashlib.sha256).digest()).decode().rstrip('=')}"
