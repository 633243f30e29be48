"""The web server for webhooks: every request is answered, only who proves to be known names an order, and nothing else of it counts."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import random
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import webhook_server
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import webhook_server as webhook_module
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.gitops_notifications import GitOpsNotifications
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.metrics import Metrics, State
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import BadSettings, Webhook
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.webhook_server import Buckets, WebhookServer
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.notification_key import key_of
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.selection import OrderName

ORDER = {"metadata": {"namespace": "orders", "name": "demo", "uid": "u"}, "spec": {"templateID": "x"}}
BODY = json.dumps(ORDER).encode()
NOTED = [OrderName("orders", "demo")]
CREATE, DELETE = "/create-hosted-cluster", "/delete-hosted-cluster"
FUZZED = 800  # requests, times the factor of `make soak`


class SiteKeys:
    """A hub that has the key of notifications, and counts the requests."""

    def __init__(self) -> None:
        self.requests = 0
        self.key = "site-key"

    def find(self, *_address: str) -> Any:
        self.requests += 1
        return {"data": {"key": base64.b64encode(self.key.encode()).decode()}} if self.key else None


class Server:
    """A webhook server in a thread of its own. `accepted` are the orders that it enqueued."""

    def __init__(self, settings: Webhook) -> None:
        self.accepted: list[OrderName] = []
        self.problems: list[str] = []
        self.metrics = Metrics(lambda: State(True, {"Ready": 3}, {("pending", "delete"): 1}, 2, 4, {"Lease": 5}))
        self.notified: list[str] = []
        self.hub = SiteKeys()
        notifications = GitOpsNotifications(self.hub, "site", self.notified.append)  # type: ignore[arg-type] - a hub in memory
        self._webhook = WebhookServer(settings, self.metrics, self.accepted.append, lambda: self.problems, notifications)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._pool = urllib3.PoolManager(retries=False, timeout=30)

    def _serve(self) -> None:
        self._task = self._loop.create_task(self._webhook.serve())
        with pytest.raises(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)

    @contextmanager
    def running(self) -> Iterator[Server]:
        self._thread.start()
        while not self.port:
            time.sleep(0.01)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join()
            self._loop.close()

    @property
    def port(self) -> int:
        return self._webhook.port

    @property
    def health_port(self) -> int:
        return self._webhook.health_port or 0

    def send(self, method: str = "POST", path: str = CREATE, body: Any = BODY, scheme: str = "http", **settings: Any) -> Any:
        pool = settings.pop("pool", self._pool)
        return pool.request(method, f"{scheme}://127.0.0.1:{settings.pop('port', self.port)}{path}", body=body, **settings)

    def code(self, **settings: Any) -> int:
        return int(self.send(**settings).status)


@contextmanager
def serving(**settings: Any) -> Iterator[Server]:
    with Server(Webhook(port=0, **settings)).running() as server:
        yield server


@pytest.fixture(scope="module")
def plain() -> Iterator[Server]:
    with serving(rate_limit=10**6) as server:
        yield server


@pytest.fixture(autouse=True)
def nothing_noted(plain: Server) -> None:
    plain.accepted.clear()


def signature(body: bytes, secret: str = "key") -> str:  # noqa: S107 - a secret of this test
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("path", [CREATE, DELETE])
def test_a_webhook_names_an_order_and_nothing_else_of_it_counts(plain: Server, path: str) -> None:
    answer = plain.send(path=path)
    assert (answer.status, json.loads(answer.data)) == (202, {"accepted": ["orders/demo"]})
    assert plain.accepted == NOTED


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("POST", "/", 404), ("POST", "/create", 404), ("POST", "/../etc/passwd", 404), ("GET", "/endpoint", 404), ("GET", CREATE, 405)],
)
def test_what_no_route_knows_is_refused(plain: Server, method: str, path: str, code: int) -> None:
    assert plain.code(method=method, path=path) == code
    assert plain.accepted == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"\xff\xfe",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b'{"metadata": null}',
        b'{"metadata": {"name": "demo"}}',
        b'{"metadata": {"name": "demo", "namespace": ["orders"]}}',
        b'{"metadata": {"name": "{{ lookup(1) }}", "namespace": "orders"}}',
        b'{"metadata": {"name": "../x", "namespace": "orders"}}',
        b'{"metadata": {"name": "a b", "namespace": "orders"}}',
        '{"metadata": {"name": "dëmo", "namespace": "orders"}}'.encode(),
        b'{"metadata": {"name": "\\ud800", "namespace": "orders"}}',
        b"[" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b"9" * 100_000,
    ],
)
def test_a_body_that_names_no_order_is_a_bad_request(plain: Server, body: bytes) -> None:
    assert plain.code(body=body) == 400
    assert plain.accepted == []


def test_a_body_over_the_limit_is_refused_also_if_it_does_not_say_how_long_it_is() -> None:
    with serving(body_limit=1000) as server:
        long = json.dumps(ORDER | {"padding": "x" * 2000}).encode()
        assert server.code(body=long) == 413
        assert server.code(body=iter([long[:500], long[500:]]), headers={"Transfer-Encoding": "chunked"}) == 413
        assert server.code() == 202 and server.accepted == NOTED


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_is_not_unpacked(plain: Server, encoding: str) -> None:
    body = gzip.compress(BODY) if encoding == "gzip" else zlib.compress(BODY)
    assert plain.code(body=body, headers={"Content-Encoding": encoding}) == 400
    assert plain.accepted == []


def test_a_token_is_asked_for() -> None:
    with serving(token="secret") as server:  # noqa: S106 - a secret of this test
        for header in ({}, {"Authorization": "secret"}, {"Authorization": "Bearer "}, {"Authorization": "Bearer sécret"}):
            assert server.code(headers={key: value.encode() for key, value in header.items()}) == 401
        assert server.accepted == []
        assert server.code(headers={"Authorization": "Bearer secret"}) == 202
        assert server.code(method="GET", path="/healthz", body=None) == 200


def test_a_signature_of_the_body_is_asked_for() -> None:
    with serving(hmac_secret="key", hmac_header="X-Signed") as server:  # noqa: S106 - a secret of this test
        for header in ({}, {"X-Signed": ""}, {"X-Signed": signature(b"other")}, {"X-Signed": signature(BODY, "other")}):
            assert server.code(headers=header) == 401
        assert server.accepted == []
        assert server.code(headers={"X-Signed": signature(BODY)}) == 202
        assert server.code(headers={"X-Signed": f"sha256={signature(BODY)}"}) == 202


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    ours, theirs = Authority("ours"), Authority("theirs")
    (folder / "ca.crt").write_bytes(ours.pem)
    for name, (certificate, key) in {
        "server": ours.server("server", ["127.0.0.1"]),
        "client": ours.client("client"),
        "colleague": ours.client("colleague"),
        "stranger": theirs.client("stranger"),
    }.items():
        (folder / f"{name}.pem").write_bytes(certificate + key)
    return folder


def test_certificate_token_and_signature_are_all_asked_for_where_all_are_set(certificates: Path) -> None:
    files = {"certfile": str(certificates / "server.pem"), "cafile": str(certificates / "ca.crt"), "client_names": ("client",)}
    headers = {"Authorization": "Bearer secret", "X-Hub-Signature-256": signature(BODY)}

    def pool(client: str) -> urllib3.PoolManager:
        context = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        if client:
            context.load_cert_chain(certificates / f"{client}.pem")
        return urllib3.PoolManager(ssl_context=context, retries=False, timeout=30)

    with serving(token="secret", hmac_secret="key", **files) as server:  # noqa: S106 - a secret of this test
        assert server.code(scheme="https", pool=pool("client"), headers=headers) == 202
        for missing in headers:
            kept = {key: value for key, value in headers.items() if key != missing}
            assert server.code(scheme="https", pool=pool("client"), headers=kept) == 401
        for other in ("", "colleague"):
            assert server.code(scheme="https", pool=pool(other), headers=headers) == 401
        assert server.code(scheme="https", pool=pool(""), method="GET", path="/healthz", body=None) == 200
        with pytest.raises(urllib3.exceptions.HTTPError):
            server.code(scheme="https", pool=pool("stranger"), headers=headers)
        with pytest.raises(urllib3.exceptions.HTTPError):
            server.code(headers=headers)
        assert server.accepted == NOTED


def certificate(name: str, *dns: str) -> dict[str, Any]:
    """A verified certificate, as Python shows it."""
    return {"subject": ((("organizationName", "acme"),), (("commonName", name),)), "subjectAltName": tuple(("DNS", each) for each in dns)}


@pytest.mark.parametrize(
    ("presented", "is_allowed"),
    [
        (None, False),
        ({}, False),
        (certificate("osac.example.com"), True),
        (certificate("OSAC.Example.com"), True),
        (certificate("other.example.com"), False),
        (certificate("anything", "a.example.com", "osac.example.com"), True),
        (certificate("osac.example.com", "other.example.com"), False),  # a certificate with DNS names is not known by its common name
        (certificate("acme"), False),
        (certificate("*.example.com"), False),
        ({"subject": (), "subjectAltName": (("IP Address", "10.0.0.1"), ("URI", "osac.example.com"))}, False),
    ],
)
def test_a_certificate_is_allowed_by_its_name(presented: dict[str, Any] | None, is_allowed: bool) -> None:
    assert webhook_server._is_allowed(presented, ["hub.example.com", "osac.example.com"]) is is_allowed  # noqa: SLF001 - a table of it


def test_certificates_that_are_renewed_are_used_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_server, "CERTIFICATE_SECONDS", 0.05)
    file = tmp_path / "server.pem"

    def renew() -> urllib3.PoolManager:
        """A certificate by an authority that only the clients of this pool trust."""
        authority = Authority("renewed")
        file.write_bytes(b"".join(authority.server("server", ["127.0.0.1"])))
        return urllib3.PoolManager(ssl_context=ssl.create_default_context(cadata=authority.pem.decode()), retries=False, timeout=30)

    def is_trusted(server: Server, pool: urllib3.PoolManager) -> bool:
        try:
            return server.code(scheme="https", pool=pool) == 202
        except urllib3.exceptions.HTTPError:
            return False

    first = renew()
    with serving(certfile=str(file), rate_limit=10**6) as server:
        assert is_trusted(server, first)
        file.write_bytes(b"half a certif")
        time.sleep(0.2)
        second = renew()
        deadline = time.monotonic() + 30
        while not is_trusted(server, second):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_certificates_that_cannot_be_used_are_reported_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="check certfile"):
        Server(Webhook(certfile=str(tmp_path / "absent")))


def test_an_address_in_use_is_reported(plain: Server) -> None:
    other = Server(Webhook(port=plain.port))
    with pytest.raises(BadSettings, match="cannot listen"):
        asyncio.run(other._webhook.serve())  # noqa: SLF001 - without the thread that hides it


def until_refused(send: Callable[[], Any]) -> Any:
    """The first answer that asks to wait. On a machine that stalls the bucket is filled meanwhile, so more requests are needed."""
    for _time in range(1000):
        if (answer := send()).status == 429:
            return answer
        assert answer.status == 202
    raise AssertionError("no request was refused")


def test_a_client_that_sends_too_much_is_asked_to_wait_and_says_when() -> None:
    with serving(rate_limit=5) as server:
        answers = [server.send() for _time in range(10)]
        assert [answer.status for answer in answers] == [202] * 10
        refused = until_refused(server.send)
        assert int(refused.headers["Retry-After"]) >= 1


def test_a_bucket_is_filled_again_and_each_client_has_its_own() -> None:
    buckets = Buckets(2)
    assert [buckets.take("a", 0.0) == 0 for _time in range(5)] == [True] * 4 + [False]
    assert buckets.take("a", 0.1) == pytest.approx(0.4)
    assert buckets.take("b", 0.1) == 0
    assert buckets.take("a", 1.0) == 0


def test_buckets_of_many_clients_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_module, "CLIENTS", 10)
    buckets = Buckets(1)
    for number in range(1000):
        buckets.take(f"client-{number}", 0.0)
    assert len(buckets._left) == 10  # noqa: SLF001 - nothing else shows it


def test_a_sender_that_disconnects_or_stalls_in_the_body_harms_no_other_sender(plain: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_module, "BODY_SECONDS", 1.0)  # of the senders that stall
    head = f"POST {CREATE} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    sleepers = []
    for cut in range(0, len(BODY), 7):
        with socket.create_connection(("127.0.0.1", plain.port)) as gone:
            gone.sendall(head + BODY[:cut])
        sleepers.append(socket.create_connection(("127.0.0.1", plain.port)))
        sleepers[-1].sendall(head + BODY[:cut])
    monkeypatch.undo()  # a good one may be slow on a busy machine
    assert plain.code() == 202
    for sleeper in sleepers:
        assert b" 408 " in sleeper.recv(1000)
        sleeper.close()
    assert plain.accepted == NOTED


def test_health_tells_what_is_wrong() -> None:
    with serving(token="secret") as server:  # noqa: S106 - a secret of this test
        server.problems = ["the watch of Lease is broken"]
        answer = server.send("GET", "/healthz", None)
        assert (answer.status, json.loads(answer.data)) == (503, {"problems": server.problems})


def test_metrics_are_what_prometheus_reads(plain: Server) -> None:
    plain.send()
    plain.send(path="/absent")
    plain.metrics.finished("delete", 3.0)
    answer = plain.send("GET", "/metrics", None)
    lines = answer.data.decode().splitlines()
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    for line in (
        'openfleet_orders_phase{phase="Ready"} 3.0',
        'openfleet_orders_actions{action="delete",state="pending"} 1.0',
        "openfleet_orders_runs_in_flight 2.0",
        "openfleet_orders_workqueue_depth 4.0",
        'openfleet_orders_watch_restarts_total{kind="Lease"} 5.0',
        'openfleet_orders_action_seconds_count{action="delete"} 1.0',
    ):
        assert line in lines
    assert any(line.startswith('openfleet_orders_webhook_responses_total{code="202",endpoint="create-hosted-cluster"}') for line in lines)
    assert any(line.startswith('openfleet_orders_webhook_responses_total{code="404",endpoint="other"}') for line in lines)


def junk(dice: random.Random, depth: int = 0) -> Any:
    """A body that a sender might send."""
    texts = [
        "",
        "{{ 7*7 }}",
        "{% for x in y %}",
        "$(reboot)",
        "`id`",
        "'; drop",
        "\x00",
        "\u202e",
        "💥" * 50,
        "a" * 300,
        "orders",
        "demo",
        "../..",
    ]
    leaves: list[Callable[[], Any]] = [
        lambda: dice.choice(texts),
        lambda: dice.choice([None, True, -1, 10**30, 1e308]),
        lambda: "".join(chr(dice.randrange(32, 0xD000)) for _each in range(dice.randrange(40))),
    ]
    if depth > 4:
        return dice.choice(leaves)()
    branches: list[Callable[[], Any]] = [
        lambda: [junk(dice, depth + 1) for _each in range(dice.randrange(4))],
        lambda: {dice.choice(["metadata", "name", "namespace", "spec", "uid", "x"]): junk(dice, depth + 1) for _each in range(4)},
    ]
    return dice.choice(leaves + branches * 3)()


def test_hostile_requests_are_all_answered_and_a_good_one_still_is(plain: Server, soak: int) -> None:
    dice = random.Random(17)  # noqa: S311 - the same every time
    requests = FUZZED * soak
    codes: dict[int, int] = {}
    for number in range(requests):
        body = json.dumps(junk(dice)).encode()
        if number % 4 == 0:
            body = body[: dice.randrange(len(body) + 1)]
        elif number % 4 == 1:
            body = bytes(dice.randrange(256) for _each in range(dice.randrange(200)))
        elif number % 200 == 2:
            body = json.dumps({"metadata": {"name": "x" * 10**6, "namespace": "orders"}}).encode()[: 2**20]
        path = dice.choice([CREATE, DELETE, f"/{dice.randrange(10**6)}"])
        answer = plain.send(path=path, body=body, headers={"X-Junk": dice.choice(["a", "{{ x }}", "é"])})
        codes[answer.status] = codes.get(answer.status, 0) + 1
    assert set(codes) <= {202, 400, 404} and sum(codes.values()) == requests
    assert all(order.name.isascii() and "{" not in order.name for order in plain.accepted)
    plain.accepted.clear()
    assert plain.code() == 202 and plain.accepted == NOTED


MINE, OTHER = "7c0e8c0a-7f0c-4d8e-9d0f-1d7a0c6a3f11", "0b6f5d0e-3f0c-4b39-9f0e-2c8d6a3f1b11"


def notify(server: Server, uid: str, signed_by: str, body: bytes = b'{"involvedObject": {}}') -> Any:
    headers = {"X-Signature": f"sha256={signature(body, key_of('site-key', signed_by))}"}
    return server.send(path=f"/gitops-notifications/{uid}", body=body, headers=headers)


def test_a_cluster_asks_for_its_own_order_and_for_no_other() -> None:
    with serving(token="t", hmac_secret="key") as server:  # noqa: S106 - of the other webhooks
        assert notify(server, MINE, signed_by=MINE).status == 202 and server.notified == [MINE]
        assert notify(server, OTHER, signed_by=MINE).status == 401
        assert server.code(path=f"/gitops-notifications/{OTHER}") == 401
        assert server.code(path=f"/gitops-notifications/{MINE}", headers={"Authorization": "Bearer t"}) == 401
        assert server.code(path="/gitops-notifications/x") == server.code(path="/gitops-notifications/") == 404
        assert server.notified == [MINE] and server.accepted == []
        assert server.hub.requests == 1, "no sender causes a request each time"
        assert b'endpoint="gitops-notifications"' in server.metrics.text() and MINE.encode() not in server.metrics.text()


def test_a_site_without_a_key_accepts_no_notification() -> None:
    with serving() as server:
        server.hub.key = ""
        assert notify(server, MINE, signed_by=MINE).status == 401 and server.notified == []


def test_notifications_are_limited_as_webhooks_are() -> None:
    with serving(rate_limit=1) as server:
        assert notify(server, MINE, signed_by=MINE).status == 202
        until_refused(lambda: notify(server, MINE, signed_by=MINE))
