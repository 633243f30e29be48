"""JSON Web Tokens of configured issuers: what is accepted, what is refused, and when keys are read. The issuer is a local web server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.problems import Problem
from ansible_collections.openfleet.clusters.extensions.fleet_api.settings import Issuer
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.home import Home
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.identity import Caller
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.tokens import Authenticator
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

RSA_KEY, OTHER_KEY = (rsa.generate_private_key(65537, 2048) for _each in range(2))
EC_KEY = ec.generate_private_key(ec.SECP256R1())


class KeyServer:
    """An issuer. `keys` are what it publishes, `requests` what it was asked for."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [jwk(RSA_KEY, "one"), {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"}, {"broken": True}]
        self.requests: list[str] = []
        self.status = 200
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests.append(self.path)
                known = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
                body = json.dumps(known if self.path.startswith("/.well-known") else {"keys": issuer.keys}).encode()
                self.send_response(issuer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: Any) -> None:
                """Nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def jwk(key: Any, kid: str, **more: str) -> dict[str, Any]:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


@pytest.fixture
def issuer() -> Iterator[KeyServer]:
    made = KeyServer()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


class NoHome(Home):
    """A home cluster that refuses every token, and counts the reviews."""

    def __init__(self) -> None:
        self.reviews = 0

    async def ask(self, _work: Any) -> Any:
        self.reviews += 1
        return {"status": {"authenticated": False}}


def authenticator(issuer: KeyServer, **settings: Any) -> Authenticator:
    made = Issuer.model_validate(
        {
            "url": issuer.url,
            "audiences": ["fleet"],
            "username_prefix": "oidc:",
            "groups_claim": "groups",
            "groups_prefix": "oidc:",
            "refresh_seconds": 0.001,
            **settings,
        }
    )
    return Authenticator(NoHome(), [made], [], 10)


def token(issuer: KeyServer, key: Any = RSA_KEY, algorithm: str = "RS256", kid: str | None = "one", **claims: Any) -> str:
    content = {"iss": issuer.url, "aud": "fleet", "sub": "alice", "exp": time.time() + 60, "groups": ["dev"]} | claims
    given = {name: value for name, value in content.items() if value is not None}
    return jwt.encode(given, key, algorithm, headers={"kid": kid} if kid else {})


def accepted(checker: Authenticator, text: str) -> Caller:
    return asyncio.run(checker.caller(text))


def refusal(checker: Authenticator, text: str) -> str:
    with pytest.raises(Problem) as refused:
        asyncio.run(checker.caller(text))
    assert refused.value.kind.code == "unauthenticated"
    assert "WWW-Authenticate" in refused.value.headers
    return refused.value.detail


def unsigned(text: str, algorithm: str) -> str:
    header = base64.urlsafe_b64encode(json.dumps({"alg": algorithm, "typ": "JWT", "kid": "one"}).encode()).decode().rstrip("=")
    return f"{header}.{text.split('.')[1]}."


def signed_with_text(text: str, secret: bytes) -> str:
    """The library does not sign with a public key as the shared secret; an attacker does."""
    content = unsigned(text, "HS256").rstrip(".")
    signature = base64.urlsafe_b64encode(hmac.new(secret, content.encode(), hashlib.sha256).digest()).decode().rstrip("=")
    return f"{content}.{signature}"


def test_token_of_the_issuer_is_accepted_with_its_groups(issuer: KeyServer) -> None:
    caller = accepted(authenticator(issuer), token(issuer))
    assert (caller.user, caller.groups) == ("oidc:alice", ("oidc:dev",))
    assert caller.expires > time.time()
    assert accepted(authenticator(issuer), token(issuer, kid=None)).user == "oidc:alice"  # the issuer has one key of this kind


@pytest.mark.parametrize(
    ("claims", "detail"),
    [
        ({"exp": 1}, "The token has expired."),
        ({"exp": None}, "The token is not valid."),
        ({"aud": "other"}, "The token is for another audience."),
        ({"aud": None}, "The token is not valid."),
        ({"nbf": 2**32}, "The token is not valid."),  # not the present time: this line may be much older than the test
        ({"sub": None}, "The token is not valid."),
        ({"sub": ""}, "The claim sub of the token is not a name."),
        ({"sub": "a\nb"}, "The name or a group of the user is not allowed."),
        ({"sub": "é"}, "The name or a group of the user is not allowed."),
        ({"groups": [1]}, "The claim groups of the token is not a list of names."),
        ({"groups": {"a": 1}}, "The claim groups of the token is not a list of names."),
    ],
)
def test_claims_are_checked(issuer: KeyServer, claims: dict[str, Any], detail: str) -> None:
    assert refusal(authenticator(issuer), token(issuer, **claims)) == detail


def test_clock_may_differ_by_the_leeway_and_no_more(issuer: KeyServer) -> None:
    late = token(issuer, exp=time.time() - 20)
    assert accepted(authenticator(issuer, leeway=200), late)
    assert refusal(authenticator(issuer, leeway=1), late) == "The token has expired."


def test_no_claim_makes_a_user_or_group_of_kubernetes(issuer: KeyServer) -> None:
    open_to_all = {"username_prefix": "", "groups_prefix": "sys"}
    assert "not allowed" in refusal(authenticator(issuer, **open_to_all), token(issuer, sub="system:admin"))
    assert "not allowed" in refusal(authenticator(issuer, **open_to_all), token(issuer, groups=["tem:masters"]))


def test_signature_and_algorithm_are_checked(issuer: KeyServer) -> None:
    checker = authenticator(issuer)
    public = RSA_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert refusal(checker, token(issuer, OTHER_KEY)) == "The token is not valid."
    wrong = "The token is signed by an algorithm that is not allowed for its issuer."
    assert refusal(checker, signed_with_text(token(issuer), public)) == wrong
    assert refusal(checker, token(issuer, RSA_KEY, "RS512")) == wrong
    for name in ("none", "None", "nOnE"):
        assert refusal(checker, unsigned(token(issuer), name)) == wrong
    assert refusal(checker, unsigned(token(issuer), "RS256")) == "The token is not valid."
    several = authenticator(issuer, algorithms=["RS256", "ES256"])
    assert refusal(several, token(issuer, EC_KEY, "ES256")) == "The issuer has no such key."  # `one` is of another type
    issuer.keys.append(jwk(EC_KEY, "two"))
    assert accepted(several, token(issuer, EC_KEY, "ES256", "two")).user == "oidc:alice"
    issuer.keys = [jwk(RSA_KEY, "one", alg="PS256")]
    assert refusal(authenticator(issuer), token(issuer)) == "The issuer has no such key."


def test_secret_key_of_the_issuer_verifies_nothing(issuer: KeyServer) -> None:
    assert refusal(authenticator(issuer), token(issuer, b"secret" * 6, "HS256", "shared")).startswith("The token is signed by an algorithm")


def test_new_key_is_found_and_invented_ones_do_not_load_the_issuer(issuer: KeyServer) -> None:
    checker = authenticator(issuer)
    assert accepted(checker, token(issuer))
    issuer.keys = [jwk(OTHER_KEY, "new")]
    assert accepted(checker, token(issuer, OTHER_KEY, kid="new"))
    slow = authenticator(issuer, refresh_seconds=600)
    assert accepted(slow, token(issuer, OTHER_KEY, kid="new"))
    asked = len(issuer.requests)
    for number in range(20):
        assert refusal(slow, token(issuer, OTHER_KEY, kid=f"invented-{number}")) == "The issuer has no such key."
    assert len(issuer.requests) == asked


def test_known_keys_are_used_while_the_issuer_is_away_and_without_any_it_is_an_outage(issuer: KeyServer) -> None:
    checker = authenticator(issuer, keys_seconds=0.001)
    assert accepted(checker, token(issuer))
    issuer.status = 500
    time.sleep(0.01)
    assert accepted(checker, token(issuer))
    with pytest.raises(Problem) as refused:
        asyncio.run(authenticator(issuer).caller(token(issuer)))
    assert (refused.value.kind.code, refused.value.headers) == ("issuer-unavailable", {"Retry-After": "1"})


def test_discovery_document_of_another_issuer_is_not_used(issuer: KeyServer) -> None:
    other = authenticator(issuer, url=issuer.url + "/other")
    with pytest.raises(Problem) as refused:
        asyncio.run(other.caller(jwt.encode({"iss": issuer.url + "/other"}, RSA_KEY, "RS256", headers={"kid": "one"})))
    assert refused.value.kind.code == "issuer-unavailable"


@pytest.mark.parametrize("text", ["x", "a.b.c", "." * 10, "eyJhbGciOiJSUzI1NiJ9.W10.x", "é", "x" * 20000])
def test_what_is_no_token_of_an_issuer_is_reviewed_or_refused(issuer: KeyServer, text: str) -> None:
    assert refusal(authenticator(issuer), text)


def test_refused_token_is_reviewed_once(issuer: KeyServer) -> None:
    home = NoHome()

    async def ask() -> None:
        checker = Authenticator(home, [], [], 10)
        for _time in range(5):
            with pytest.raises(Problem):
                await checker.caller("opaque")

    asyncio.run(ask())
    assert home.reviews == 1
    assert issuer.requests == []
