"""The connections of the webhook server: bounded in all, for each client and in time, and a probe is answered whatever senders do."""

from __future__ import annotations

import logging
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.plugins.module_utils.controller import listener
from ansible_collections.openfleet.clusters.tests.unit.controller.test_webhook_server import BODY, CREATE, Server, serving

HEAD = f"POST {CREATE} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connected(sockets: ExitStack, server: Server, client: str = "127.0.0.1") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30, source_address=(client, 0))
    return sockets.enter_context(connection)


def is_answered(connection: socket.socket) -> bool:
    try:
        connection.sendall(HEAD + BODY)
        return b" 202 " in connection.recv(1000)
    except ConnectionError:
        return False


def is_closed(connection: socket.socket) -> bool:
    """Whether the server closes it within 30 seconds."""
    try:
        return connection.recv(1000) == b""
    except ConnectionError:
        return True


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_client_has_so_many_connections_and_all_clients_have_so_many_together(sockets: ExitStack) -> None:
    with serving(max_connections=5, max_connections_per_client=3) as server:
        first = [connected(sockets, server) for _each in range(3)]
        assert all(map(is_answered, first))
        assert not is_answered(connected(sockets, server)), "its fourth"
        second = [connected(sockets, server, "127.0.0.2") for _each in range(2)]
        assert all(map(is_answered, second))
        assert not is_answered(connected(sockets, server, "127.0.0.3")), "the sixth of all"
        assert all(map(is_answered, first + second)), "and those before it are not affected"
        assert b"openfleet_orders_webhook_refused_connections_total 2.0" in server.metrics.text()
        for connection in second:
            connection.close()
        eventually(lambda: is_answered(connected(sockets, server, "127.0.0.3")))


def test_a_client_is_an_address_or_a_network_that_one_machine_may_have_to_itself() -> None:
    clients = ["10.0.0.1", "2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1", "fe80::1%eth0"]
    assert [listener.client_of(each) for each in clients] == [
        "10.0.0.1",
        "2001:db8::/64",
        "2001:db8::/64",
        "2001:db8:0:1::/64",
        "fe80::/64",
    ]


def test_a_flood_of_connections_leaves_the_probes_theirs(sockets: ExitStack) -> None:
    with serving(health_port=0, max_connections=4, max_connections_per_client=4) as server:
        flood = [connected(sockets, server) for _each in range(200)]
        eventually(lambda: not is_answered(connected(sockets, server)))
        for path in ("/healthz", "/metrics"):
            assert server.code(method="GET", path=path, body=None, port=server.health_port) == 200
        for connection in flood:
            connection.close()
        eventually(lambda: server.code() == 202)
        assert server.code(method="GET", path="/healthz", body=None) == 404, "the port of webhooks has webhooks only"
        assert server.code(port=server.health_port) == 404


@pytest.mark.parametrize("before", [b"", HEAD + BODY], ids=["new", "kept alive"])
@pytest.mark.parametrize("drip", [b"", b"P", b"POST / HTTP/1.1\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-"])
def test_headers_have_to_arrive_in_time_however_they_drip(
    sockets: ExitStack, monkeypatch: pytest.MonkeyPatch, before: bytes, drip: bytes
) -> None:
    monkeypatch.setattr(listener, "IDLE_SECONDS", 0.2)
    with serving() as server:

        def has_begun() -> bool:
            """Whether the headers before arrived in time: this machine may stall, too."""
            nonlocal connection
            connection = connected(sockets, server)
            return not before or is_answered(connection)

        connection = connected(sockets, server)
        eventually(has_begun)
        connection.sendall(drip)
        connection.settimeout(0.02)

        def is_cut_off() -> bool:
            try:
                connection.sendall(b"x" if drip else b"")
                return is_closed(connection)
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        eventually(is_cut_off)
        eventually(lambda: is_answered(connected(sockets, server)))


def test_a_client_that_does_not_read_its_answers_is_disconnected(sockets: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "ANSWER_SECONDS", 0.2)
    with serving(rate_limit=10**6, max_connections=1) as server:
        connection = connected(sockets, server)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        with pytest.raises(ConnectionError):
            while True:
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100)  # a long answer to each
        eventually(lambda: is_answered(connected(sockets, server)))


def test_a_handshake_has_to_end_in_time(sockets: ExitStack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 0.2)
    file = tmp_path / "server.pem"
    file.write_bytes(b"".join(Authority("ours").server("server", ["127.0.0.1"])))
    with serving(certfile=str(file), max_connections=1) as server:
        assert is_closed(connected(sockets, server))
        connection = connected(sockets, server)
        connection.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert is_closed(connection), "what is not TLS"
        eventually(lambda: is_closed(connected(sockets, server)))


@contextmanager
def no_file_descriptors() -> Iterator[None]:
    """The process can open no further file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_file_descriptors_the_server_waits_and_says_so_once(
    sockets: ExitStack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "EXHAUSTED_SECONDS", 0.1)
    with serving() as server:
        clients = [sockets.enter_context(socket.socket()) for _each in range(3)]
        for client in clients:
            client.settimeout(30)
        with caplog.at_level(logging.INFO), no_file_descriptors():
            for client in clients:
                client.connect(("127.0.0.1", server.port))
            eventually(lambda: any(record.levelno >= logging.WARNING for record in caplog.records))
            time.sleep(0.3)
        said = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert [record.getMessage().partition(":")[0] for record in said] == ["cannot accept connections"]
        assert all(map(is_answered, clients))
