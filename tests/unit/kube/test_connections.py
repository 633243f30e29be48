"""Servers that mean harm: every request to one ends, reads a limited number of bytes, and repeats nothing of its answers."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from typing import Any

import pytest
import urllib3
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import connections, transport
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.allowed_addresses import AllowedAddresses
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.connections import Limits
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import (
    AddressNotAllowed,
    BadCredentials,
    KubeError,
    ServerError,
    Unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.untrusted import target_of

from ...hostile_server import HARM, HEAD, SECRET, Behaviour, answer, flood, raw, serving

# Far below what any of these servers would take, far above what a slow machine needs.
TIMEOUT_SECONDS = 20.0
BRIEF = 0.3  # for a server that never answers
LOOPBACK = AllowedAddresses.of(["127.0.0.1"])


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_WAIT", 0.001)


def connected(address: str, seconds: float = TIMEOUT_SECONDS, limits: Limits | None = None, tries: int = 1, **target: Any) -> Kube:
    """`seconds` to connect, and as many to read: few only for a server that never answers."""
    times = urllib3.Timeout(connect=seconds, read=seconds)
    return Kube(Target(f"http://{address}", foreign=True, **target), times, tries, limits=limits)


@pytest.mark.parametrize("harm", HARM)
def test_read_timeout_is_for_the_whole_response(harm: str) -> None:
    began = time.monotonic()
    with serving(HARM[harm]) as address, pytest.raises(Unreachable, match=r"does not answer \(timed out\)"):
        connected(address, BRIEF).version()
    assert time.monotonic() - began < TIMEOUT_SECONDS


def test_handshake_of_tls_has_a_deadline() -> None:
    began = time.monotonic()
    # The begin of a record of 16 KiB, then a byte at a time.
    with serving(HARM["drips its status line"]) as address, pytest.raises(Unreachable):
        Kube(Target(f"https://{address}", verify=False), urllib3.Timeout(connect=BRIEF, read=BRIEF), 1).version()
    assert time.monotonic() - began < TIMEOUT_SECONDS


def test_watch_that_sends_nothing_whole_ends_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urllib3, "Timeout", lambda **_given: urllib3.util.Timeout(connect=BRIEF, read=BRIEF))
    with serving(HARM["drips chunks"]) as address, pytest.raises(Unreachable):
        list(connected(address, BRIEF).watch("v1", "ConfigMap", "n", since="1", seconds=1))


def test_all_requests_together_have_a_deadline_and_each_names_it() -> None:
    """A cluster that answers the first requests in time, and so on for ever, or asks for patience."""
    page = json.dumps({"items": [], "metadata": {"continue": "more"}}).encode()
    began = time.monotonic()
    with serving(answer("200 OK", page)) as address:
        kube = connected(address, limits=Limits(total_seconds=BRIEF, total_bytes=2**30))
        with pytest.raises(Unreachable, match=r"takes too long|timed out"):
            kube.list_all("v1", "Node")
        with pytest.raises(Unreachable, match=r"takes too long or sends too much; all requests to it together may take 0.3 s"):
            kube.version()
    with serving(answer("429 Slow", b"", b"Retry-After: 25\r\n")) as address, pytest.raises(Unreachable, match=r"takes too long|timed out"):
        connected(address, limits=Limits(total_seconds=1.0), tries=4).version()
    assert time.monotonic() - began < TIMEOUT_SECONDS


def test_name_that_is_never_resolved_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def hang(*_given: Any, **_named: Any) -> list[Any]:
        over.wait()
        return []

    monkeypatch.setattr(connections.socket, "getaddrinfo", hang)
    began = time.monotonic()
    try:
        with pytest.raises(Unreachable, match="timed out"):
            connected("slow.example.com:1", BRIEF).version()
    finally:
        over.set()
    assert time.monotonic() - began < TIMEOUT_SECONDS


@pytest.mark.parametrize("limits", [Limits(response_bytes=100_000), Limits(total_bytes=100_000)])
def test_an_answer_without_end_is_cut(limits: Limits) -> None:
    with serving(flood(HEAD + b"\r\n")) as address:
        kube = connected(address, limits=limits, tries=4)
        with pytest.raises(Unreachable, match="the response is too large"):
            kube.version()
        assert kube.requests == 1, "it would be as large again"


def test_compressed_answers_are_not_unpacked() -> None:
    bomb = gzip.compress(json.dumps({"gitVersion": "v1" + "0" * 10**6}).encode())
    with serving(answer("200 OK", bomb, b"Content-Encoding: gzip\r\n")) as address, pytest.raises(ServerError, match="is not from a Kube"):
        connected(address).version()


def status_with(message: str, **more: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": message, **more}).encode()


LEAKS: dict[str, Behaviour] = {
    "another protocol": raw(b"SSH-2.0-" + SECRET + b"\r\n"),
    "a broken header": raw(b"HTTP/1.1 200 " + SECRET + b"\r\nContent-Length: " + SECRET + b"\r\n\r\n"),
    "text": answer("200 OK", SECRET),
    "other JSON": answer("200 OK", json.dumps([SECRET.decode()]).encode()),
    **{str(code): answer(f"{code} X", status_with(SECRET.decode())) for code in (302, 400, 401, 403, 404, 409, 418, 422, 500)},
    "checks": answer("500 X", b"[-]" + SECRET + b" failed: reason withheld\n"),
    "a typed patch": answer("500 X", status_with(f"failed to create typed patch object: .{SECRET.decode()}: x")),
    "an owner": answer(
        "409 X", status_with("", details={"causes": [{"reason": "FieldManagerConflict", "message": f'"{SECRET.decode()}"'}]})
    ),
}


@pytest.mark.parametrize("behave", LEAKS.values(), ids=LEAKS)
def test_nothing_that_a_foreign_server_answers_is_repeated(behave: Behaviour) -> None:
    errors = []
    with serving(behave) as address:
        for ask in (Kube.version, Kube.readyz, lambda kube: kube.list_all("v1", "Node"), lambda kube: kube.get("v1", "Node", "a")):
            try:
                ask(connected(address, BRIEF))  # some of them end nothing
            except KubeError as error:
                errors.append(str(error))
    assert errors and SECRET.decode() not in "".join(errors)


def test_only_allowed_addresses_are_connected_to() -> None:
    for allowed, server in ((AllowedAddresses(), ""), (AllowedAddresses.of(["localhost", "0.0.0.0/0"]), "localhost")):
        with serving(answer("200 OK", b"{}")) as address:
            host = server or address.partition(":")[0]
            kube = connected(f"{host}:{address.partition(':')[2]}", limits=Limits(addresses=allowed))
            with pytest.raises(
                AddressNotAllowed, match=f"does not allow connections to {host}: ask its operator to add it to allowed_addr"
            ):
                kube.version()
    with serving(answer("200 OK", b"{}")) as address:
        assert connected(address, limits=Limits(addresses=LOOPBACK)).version() == ""


def test_name_that_cannot_be_allowed_is_not_even_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question to a name server is a request, too, with the tenant's text in it."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_given, **_named: pytest.fail("it was resolved"))
    for allowed in (AllowedAddresses(), AllowedAddresses.of(["api.example.com"])):
        with pytest.raises(AddressNotAllowed):
            connected("data.of-a-tenant.example:443", limits=Limits(addresses=allowed)).version()
        with pytest.raises(AddressNotAllowed):
            connections.check_allowed("data.of-a-tenant.example", allowed, 1)


def test_name_that_resolves_to_another_address_a_moment_later_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checked address is the one that is connected to: the name is resolved once."""
    answers = iter([["198.51.100.7"], ["127.0.0.1"]])
    resolved: list[str] = []

    def rebind(host: str, port: int, *_given: Any, **_named: Any) -> list[Any]:
        if host == "rebind.example.com":
            resolved.append(host)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(answers)]
        return original(host, port, *_given, **_named)

    original = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", rebind)
    seen: list[str] = []

    def connect(address: tuple[str, int], *_given: Any) -> Any:
        seen.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(urllib3.util.connection, "create_connection", connect)
    limits = Limits(addresses=AllowedAddresses.of(["198.51.100.0/24"]))
    with pytest.raises(Unreachable):
        connected("rebind.example.com:1", limits=limits).version()
    assert (resolved, seen) == (["rebind.example.com"], ["198.51.100.7"])
    with pytest.raises(AddressNotAllowed):
        connected("rebind.example.com:1", limits=limits).version()
    assert seen == ["198.51.100.7"]


def test_what_the_resolver_of_the_site_knows_is_not_reported() -> None:
    """An unknown name that is not allowed is refused as a known one is."""
    with pytest.raises(AddressNotAllowed):
        connected("no-such-host.invalid:1", limits=Limits(addresses=LOOPBACK)).version()


def test_proxy_and_the_server_behind_it_have_to_be_allowed() -> None:
    with serving(answer("200 OK", b"{}")) as address:
        proxy = f"http://{address}"
        with pytest.raises(AddressNotAllowed, match=r"connections to 203\.0\.113\.7"):
            connected("203.0.113.7:1", limits=Limits(addresses=LOOPBACK), proxy=proxy)
        with pytest.raises(AddressNotAllowed, match=r"connections to 127\.0\.0\.1"):
            connected("203.0.113.7:1", limits=Limits(addresses=AllowedAddresses.of(["203.0.113.7"])), proxy=proxy).version()
        both = AllowedAddresses.of(["203.0.113.7", "127.0.0.1"])
        assert connected("203.0.113.7:1", limits=Limits(addresses=both), proxy=proxy).version() == ""


@pytest.mark.parametrize(
    "server", ["https://a.example.com?x=", "https://a.example.com/x#", "https://user:hunter2@a.example.com", "https://a/?"]
)
def test_address_of_a_server_has_no_query_fragment_or_account(server: str) -> None:
    kubeconfig = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    }
    with pytest.raises(BadCredentials, match="without a query, fragment or account") as caught:
        target_of(kubeconfig)
    assert "hunter2" not in str(caught.value)
