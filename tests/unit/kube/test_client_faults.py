"""A server and a network that fail: what is tried again, what never is, and what is said. How often is counted at the server."""

from __future__ import annotations

import http.server
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import client as kube_client
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import transport
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import TRIES, Kube, retry_on_conflict
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import (
    ApplyConflict,
    Conflict,
    Gone,
    KubeError,
    ReadOnly,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)

ITEM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "n", "resourceVersion": "1", "uid": "u"},
}
READS: dict[str, Callable[[Kube], Any]] = {
    "get": lambda kube: kube.get("v1", "ConfigMap", "a", "n"),
    "list": lambda kube: kube.list_all("v1", "ConfigMap", "n"),
    "watch": lambda kube: list(kube.watch("v1", "ConfigMap", "n", since="1")),
}
WRITES: dict[str, Callable[[Kube], Any]] = {
    "create": lambda kube: kube.create(ITEM),
    "replace": lambda kube: kube.replace(ITEM),
    "apply": lambda kube: kube.apply(ITEM),
    "merge": lambda kube: kube.patch(ITEM, {"data": {}}),
    "json patch": lambda kube: kube.patch(ITEM, []),
    "delete": lambda kube: kube.delete(ITEM),
}


@dataclass(frozen=True)
class Answer:
    """What the server does with a request. `cut` ends the connection: "before" the answer, or "within" it; `hang` never answers."""

    status: int = 200
    body: Any = field(default_factory=lambda: {"items": [], "metadata": {}})
    headers: tuple[tuple[str, str], ...] = ()
    cut: str = ""
    hang: bool = False


class FaultyServer(http.server.ThreadingHTTPServer):
    """Gives the given answers, one a request, then good ones; `seen` has what arrived."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.seen: list[str] = []
        self.authorizations: list[str] = []
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that disconnects is not logged here."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: FaultyServer
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append(f"{self.command} {self.path}")
        self.server.authorizations.append(self.headers.get("Authorization", ""))
        answer = self.server.answers.pop(0) if self.server.answers else Answer()
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        if answer.hang:
            self.server.over.wait(60)
        if answer.cut == "before" or answer.hang:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if answer.cut else body)
        self.close_connection = self.close_connection or bool(answer.cut)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names http.server calls

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        return getattr(self.server, "date", None) or super().date_time_string(timestamp)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def kube(server: FaultyServer) -> Kube:
    return Kube(Target(server.url))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the client would have slept; it goes on at once."""
    slept: list[float] = []
    for module in (kube_client, transport):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=slept.append, monotonic=time.monotonic))
    return slept


# What is tried again


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_busy_server_is_asked_again_as_late_as_it_wants_to_be(name: str, server: FaultyServer, kube: Kube, waits: list[float]) -> None:
    server.answers = [Answer(429, headers=(("Retry-After", "7"),)), Answer(429)]
    (READS | WRITES)[name](kube)
    assert len(server.seen) == 3
    assert len(set(server.seen)) == 1
    assert waits == [7.0, 0.5]


@pytest.mark.parametrize("asked", ["86400", "Wed, 21 Oct 2037 07:28:00 GMT", "-1", "soon"])
def test_an_odd_retry_after_neither_fails_nor_stops_for_hours(asked: str, server: FaultyServer, kube: Kube, waits: list[float]) -> None:
    server.answers = [Answer(429, headers=(("Retry-After", asked),))]
    READS["get"](kube)
    assert 0 < waits[0] <= transport.LONGEST_WAIT


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_busy_server_gets_a_limited_number_of_requests(name: str, server: FaultyServer, kube: Kube, waits: list[float]) -> None:
    server.answers = [Answer(429)] * 10
    with pytest.raises(TooManyRequests) as caught:
        (READS | WRITES)[name](kube)
    assert caught.value.retryable
    assert len(server.seen) == TRIES
    assert waits == sorted(waits), "it waits longer each time"


@pytest.mark.parametrize("fault", [Answer(500, {"message": "etcd"}), Answer(503, b"<html>"), Answer(cut="before"), Answer(cut="within")])
class TestWhatMayHaveArrived:
    """A failed server and a broken connection tell nothing about what was done: reads are sent again, writes never."""

    @pytest.mark.parametrize("name", ["get", "list"])
    def test_a_read_is_sent_again(self, fault: Answer, name: str, server: FaultyServer, kube: Kube, waits: list[float]) -> None:
        server.answers = [fault] * 2
        READS[name](kube)
        assert len(server.seen) == 3
        assert len(waits) == 2

    @pytest.mark.parametrize("name", WRITES)
    def test_a_write_is_not(self, fault: Answer, name: str, server: FaultyServer, kube: Kube, waits: list[float]) -> None:
        server.answers = [fault]
        with pytest.raises((ServerError, Unreachable)) as caught:
            WRITES[name](kube)
        assert caught.value.retryable
        assert len(server.seen) == 1
        assert not waits

    def test_a_read_is_given_up_in_the_end(self, fault: Answer, server: FaultyServer, kube: Kube, waits: list[float]) -> None:
        server.answers = [fault] * 10
        with pytest.raises((ServerError, Unreachable)):
            READS["get"](kube)
        assert len(server.seen) == TRIES
        assert len(waits) == TRIES - 1


def test_a_connection_that_was_closed_while_idle_does_not_fail_the_next_write(server: FaultyServer, kube: Kube) -> None:
    server.answers = [Answer(headers=(("Connection", "close"),)), Answer()]
    READS["get"](kube)
    WRITES["create"](kube)
    assert len(server.seen) == 2


@pytest.mark.parametrize(("name", "sent"), [("get", TRIES), ("apply", 1)])
def test_a_server_that_hangs_is_given_up_in_the_time_that_was_set(name: str, sent: int, server: FaultyServer, waits: list[float]) -> None:
    server.answers = [Answer(hang=True)] * 10
    impatient = Kube(Target(server.url), urllib3.Timeout(connect=5, read=0.2))
    with pytest.raises(Unreachable, match=f"{server.url} does not answer .*timed out"):
        (READS | WRITES)[name](impatient)
    until(lambda: len(server.seen) >= sent, "the server has seen what was given up")
    assert len(server.seen) == sent
    assert len(waits) == sent - 1


# Who does not answer at all


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_refused_connection_is_tried_again_and_named(name: str, waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    kube = Kube(Target(f"http://127.0.0.1:{port}"))
    with pytest.raises(Unreachable, match=rf"http://127.0.0.1:{port} does not answer \(.*Connection refused\)") as caught:
        (READS | WRITES)[name](kube)
    assert caught.value.retryable
    assert " at 0x" not in str(caught.value), "no addresses of Python objects"
    assert kube.requests == TRIES, "it cannot have arrived, so a write is tried again, too"
    assert len(waits) == TRIES - 1


def test_a_name_that_cannot_be_resolved_is_said(waits: list[float]) -> None:
    with pytest.raises(Unreachable, match=r"https://nowhere.invalid does not answer \(Failed to resolve 'nowhere.invalid'"):
        READS["get"](Kube(Target("https://nowhere.invalid")))
    assert waits


def test_a_proxy_that_does_not_answer_is_said(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    kube = Kube(Target("https://api.example", proxy=f"http://me:s3cr3t@127.0.0.1:{port}"))
    with pytest.raises(Unreachable, match=r"Connection refused\); check the address, the network and the proxy") as caught:
        READS["get"](kube)
    assert "s3cr3t" not in str(caught.value)
    assert waits


def test_a_watch_that_breaks_is_unreachable(server: FaultyServer, kube: Kube) -> None:
    server.answers = [Answer(body=b'{"type": "ADDED", "object": {}}\n' * 4, cut="within")]
    seen = []
    with pytest.raises(Unreachable, match=r"the connection to http://127.0.0.1:.* broke"):
        seen.extend(kube.watch("v1", "ConfigMap", "n", since="1"))
    assert len(server.seen) == 1


# Who answers, but is no API server


@pytest.mark.parametrize("answer", [Answer(body=b"<html>Welcome!</html>"), Answer(body=["x"]), Answer(body=b"")])
def test_an_answer_that_is_none_of_kubernetes_is_an_error(answer: Answer, server: FaultyServer, kube: Kube) -> None:
    server.answers = [answer]
    with pytest.raises(ServerError, match="is not from a Kubernetes API server"):
        WRITES["create"](kube)


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_redirect_is_not_followed_with_our_credentials(name: str, server: FaultyServer, kube: Kube) -> None:
    server.answers = [Answer(302, headers=(("Location", f"{server.url}/elsewhere"),))]
    with pytest.raises(KubeError):
        (READS | WRITES)[name](kube)
    assert len(server.seen) == 1


# Credentials that are no longer accepted


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, Any]:
    """A credential plugin whose tokens are `1`, `2`, and so on."""
    script = f"""
from pathlib import Path
runs = Path({str(tmp_path / "runs")!r})
number = len(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text("x" * number)
print('{{"status": {{"token": "%d"}}}}' % number)
"""
    return {"command": sys.executable, "args": ["-c", script]}


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_refused_token_is_renewed_by_its_plugin_once(name: str, server: FaultyServer, plugin: dict[str, Any]) -> None:
    server.answers = [Answer(401)]
    (READS | WRITES)[name](Kube(Target(server.url, plugin=plugin)))
    assert server.authorizations == ["Bearer 1", "Bearer 2"]


def test_a_renewed_token_that_is_refused_too_is_the_end(server: FaultyServer, plugin: dict[str, Any]) -> None:
    server.answers = [Answer(401)] * 10
    with pytest.raises(Unauthorized, match="does not accept the credentials"):
        READS["get"](Kube(Target(server.url, plugin=plugin)))
    assert server.authorizations == ["Bearer 1", "Bearer 2"]


def test_a_refusal_at_the_last_try_is_reported_as_what_it_is(server: FaultyServer, plugin: dict[str, Any], waits: list[float]) -> None:
    server.answers = [Answer(500)] * (TRIES - 1) + [Answer(401)] * 2
    with pytest.raises(Unauthorized):
        READS["get"](Kube(Target(server.url, plugin=plugin)))
    assert len(waits) == TRIES - 1


def test_without_a_plugin_a_refusal_is_final(server: FaultyServer) -> None:
    server.answers = [Answer(401)]
    with pytest.raises(Unauthorized):
        READS["get"](Kube(Target(server.url, token="x")))  # noqa: S106
    assert len(server.seen) == 1


def test_many_threads_that_are_refused_at_once_ask_the_plugin_once(server: FaultyServer, plugin: dict[str, Any]) -> None:
    kube = Kube(Target(server.url, plugin=plugin))
    READS["get"](kube)
    refused: list[str] = []
    gate = threading.Barrier(8)

    class OnlyTheSecond(Handler):
        def _answer(self) -> None:
            if self.headers["Authorization"] == "Bearer 1":
                refused.append(self.path)
                gate.wait(30)
                self.server.answers.append(Answer(401))
            super()._answer()

        do_GET = _answer  # noqa: N815

    server.RequestHandlerClass = OnlyTheSecond
    fresh = Kube(kube.target)
    results = fresh.in_parallel(lambda _number: READS["get"](fresh), range(8))
    assert [result for result in results if isinstance(result, KubeError)] == []
    assert len(refused) == 8
    assert set(server.authorizations[1:]) == {"Bearer 1", "Bearer 2"}


# The rest of the contract


def test_a_list_whose_next_page_is_too_old_is_begun_again(server: FaultyServer, kube: Kube) -> None:
    first = Answer(body={"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "more"}})
    server.answers = [first, Answer(410, {"message": "too old"}), first, Answer(body={"items": [ITEM], "metadata": {}})]
    assert len(READS["list"](kube)) == 2
    assert ["continue=more" in request for request in server.seen] == [False, True, False, True]


def test_an_error_in_a_watch_is_raised_as_what_it_is(server: FaultyServer, kube: Kube) -> None:
    server.answers = [Answer(body={"type": "ERROR", "object": {"code": 410, "message": "too old"}})]
    server.answers[0] = Answer(body=json.dumps(server.answers[0].body).encode() + b"\n")
    with pytest.raises(Gone, match="too old"):
        READS["watch"](kube)


def test_the_time_is_the_servers_and_goes_on_between_answers_and_in_sleep(
    server: FaultyServer, kube: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.date = "Tue, 01 Jan 2030 00:00:00 GMT"  # type: ignore[attr-defined]
    now = {time.CLOCK_BOOTTIME: 1000.0}  # every other clock stands still while the machine sleeps
    monkeypatch.setattr(time, "clock_gettime", lambda clock: now.get(clock, 0.0))
    assert str(kube.server_time()) == "2030-01-01 00:00:00+00:00"
    now[time.CLOCK_BOOTTIME] += 90.5
    assert str(kube.server_time()) == "2030-01-01 00:01:30.500000+00:00"
    assert str(kube.latest_server_time()) == "2030-01-01 00:01:31.500000+00:00", "a Date has full seconds"
    assert len(server.seen) == 1, "it is not asked for again"


@pytest.mark.parametrize("date", ["yesterday", " ", "Fri, 31 Dec 9999 23:59:59 -0100", "Tue, 01 Jan 2030 00:00:00 +99999999999999999999"])
def test_without_a_date_there_is_no_time(date: str, server: FaultyServer, kube: Kube) -> None:
    server.date = date  # type: ignore[attr-defined]
    assert kube.server_time() is None
    assert kube.server_time() is None
    assert len(server.seen) == 1, "a server that does not tell is not asked again"


@pytest.mark.parametrize(
    ("field", "name"),
    [("name", ""), *((field, name) for field in ("name", "namespace") for name in (".", "..", "a/b", "../../namespaces/n", "%2e%2e"))],
)
def test_a_name_never_becomes_the_address_of_something_else(field: str, name: str, server: FaultyServer, kube: Kube) -> None:
    item = {**ITEM, "metadata": {"name": "a", "namespace": "n", "uid": "u"} | {field: name}}
    for work in (lambda: kube.delete(item), lambda: kube.get("v1", "ConfigMap", item["metadata"]["name"], item["metadata"]["namespace"])):
        with pytest.raises(KubeError, match="cannot be the name"):
            work()
    assert not server.seen


def test_a_change_is_begun_again_while_others_are_quicker_and_then_given_up(waits: list[float]) -> None:
    tries: list[int] = []

    def work(good_at: int, error: KubeError) -> int:
        tries.append(1)
        if len(tries) < good_at:
            raise error
        return len(tries)

    assert retry_on_conflict(lambda: work(10, Conflict("changed"))) == 10
    assert 3 < sum(waits) < 10, "in all it outlasts a busy controller, and does not wait long"
    tries.clear()
    with pytest.raises(Conflict):
        retry_on_conflict(lambda: work(99, Conflict("changed")), tries=4)
    assert len(tries) == 4
    tries.clear()
    with pytest.raises(ApplyConflict):
        retry_on_conflict(lambda: work(99, ApplyConflict("owned", {})))
    assert len(tries) == 1
    assert waits


# Whether a server is ready


def test_a_server_that_is_not_ready_says_which_checks_fail(server: FaultyServer, kube: Kube, waits: list[float]) -> None:
    said = b"[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac failed: reason withheld\nreadyz check failed\n"
    server.answers = [Answer(500, said)] * TRIES
    with pytest.raises(ServerError, match=rf"{server.url} is not ready: etcd, poststarthook/rbac\.$"):
        kube.readyz()
    assert waits
    server.answers = [Answer(200, b"[+]ping ok\nreadyz check passed\n")]
    kube.readyz()


def test_a_server_without_server_side_apply_is_recognised(server: FaultyServer, kube: Kube) -> None:
    server.answers = [Answer(415, {"kind": "Status", "message": "unsupported"})]
    with pytest.raises(KubeError, match=r"server-side apply needs Kubernetes 1.22 or newer"):
        kube.apply(ITEM)


@pytest.mark.parametrize("write", ["create", "replace", "apply", "patch", "delete"])
def test_connection_that_only_reads_sends_no_write(write: str) -> None:
    kube = Kube(Target("http://127.0.0.1:1"), read_only=True)
    with pytest.raises(ReadOnly, match="only reads"):
        getattr(kube, write)(ITEM, *([{}] if write == "patch" else []))
    assert kube.requests == 0
