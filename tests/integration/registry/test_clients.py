"""Health checks of registered clusters on a real API server: silent, refusing, restarted, rotated, many at once."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, Unauthorized
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients, HubError
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.health import ClusterHealth
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import RegisteredCluster

from ..support.kubeconfigs import create_account, create_token, kubeconfig, put_kubeconfig, service_account, with_server, with_user

WRONG = "hunter2"
SECONDS = 30.0  # what a busy machine may need
BRIEF = 1.0  # for a server that never answers
WAIT_SECONDS = 120


class Secrets:
    """The Secrets of one namespace of the hub."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.namespace = namespace
        self._kube = kube

    def put(self, name: str, content: Any) -> RegisteredCluster:
        """Store a kubeconfig for the cluster `name`."""
        put_kubeconfig(self._kube, self.namespace, f"{name}-kubeconfig", content)
        return RegisteredCluster(name, f"{name}-kubeconfig")

    def clients(self, seconds: float = SECONDS) -> ClusterClients:
        return ClusterClients(self._kube, self.namespace, seconds)


@pytest.fixture
def secrets(hub: Access, namespace: str) -> Secrets:
    return Secrets(hub.kube, namespace)


@pytest.fixture
def account(hub: Access, namespace: str) -> str:
    """A service account with the role view."""
    create_account(hub.kube, namespace, "ramen")
    return "ramen"


def check(clients: ClusterClients, cluster: RegisteredCluster) -> ClusterHealth:
    return clients.check([cluster])[cluster.name]


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None], port: int = 0) -> Iterator[str]:
    """A server on loopback that calls `serve` with each connection; its address."""
    with socket.create_server(("127.0.0.1", port)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _address = server.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def forwarding(port: int, server: str) -> Iterator[None]:
    """A port that forwards to the API server. At the end all its connections break, as if the server were killed."""
    connections: list[socket.socket] = []

    def copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)

    def serve(incoming: socket.socket) -> None:
        outgoing = socket.create_connection((urlsplit(server).hostname, urlsplit(server).port))
        connections.extend((incoming, outgoing))
        threading.Thread(target=copy, args=(outgoing, incoming), daemon=True).start()
        copy(incoming, outgoing)

    with listening(serve, port):
        yield
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


def hold(connection: socket.socket) -> None:
    """Accept the connection and never answer."""
    with contextlib.suppress(OSError):
        while connection.recv(4096):
            pass


def test_healthy_cluster(secrets: Secrets, hub: Access) -> None:
    health = check(secrets.clients(), secrets.put("hub", kubeconfig(hub)))
    assert (health.reason, health.reachable, health.authenticated) == ("Healthy", True, True)
    assert health.version.startswith("v1.")
    assert health.credentials_expire is not None
    assert health.credentials_expire > datetime.now(UTC) + timedelta(days=300)


def test_endpoint_replaces_the_address_in_the_kubeconfig(secrets: Secrets, hub: Access) -> None:
    address = kubeconfig(hub)["clusters"][0]["cluster"]["server"]
    cluster = secrets.put("hub", with_server(hub, f"https://127.0.0.1:{free_port()}"))
    clients = secrets.clients()
    assert check(clients, cluster).reason == "Unreachable"
    moved = RegisteredCluster(cluster.name, cluster.kubeconfig_secret, endpoint=address)
    assert check(clients, moved).reason == "Healthy"


def test_each_failure_has_its_own_reason(secrets: Secrets, hub: Access, namespace: str, tmp_path: Path) -> None:
    create_account(hub.kube, namespace, "powerless", role="")
    expired = Authority("elsewhere").client("client", "system:masters", valid=timedelta(days=-1))
    in_base64 = {"client-certificate-data": base64.b64encode(expired[0]).decode(), "client-key-data": base64.b64encode(expired[1]).decode()}
    other_authority = kubeconfig(hub)
    other_authority["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(Authority("other").pem).decode()
    trace = tmp_path / "trace"
    with listening(hold) as silent:
        clusters = [
            secrets.put("refused", with_server(hub, f"https://127.0.0.1:{free_port()}")),
            secrets.put("untrusted", other_authority),
            secrets.put("unauthorized", with_user(hub, token=WRONG)),
            secrets.put("expired", with_user(hub, **in_base64)),
            # The API server ignores a password, and treats its sender as anonymous.
            secrets.put("anonymous", with_user(hub, username="admin", password=WRONG)),
            secrets.put("forbidden", with_user(hub, token=create_token(hub.kube, namespace, "powerless"))),
            secrets.put("garbage", b"\xff\x00" + WRONG.encode()),
            secrets.put("command", with_user(hub, exec={"apiVersion": "v1", "command": "touch", "args": [str(trace)]})),
            RegisteredCluster("missing", "no-such-secret"),
        ]
        checked = secrets.clients().check(clusters)
        checked["silent"] = check(secrets.clients(BRIEF), secrets.put("silent", with_server(hub, silent)))
    assert {name: (health.reason, health.reachable, health.authenticated) for name, health in checked.items()} == {
        "refused": ("Unreachable", False, None),
        "silent": ("Unreachable", False, None),
        "untrusted": ("Untrusted", True, None),
        "unauthorized": ("Unauthorized", True, False),
        "expired": ("Unauthorized", True, False),
        "anonymous": ("Unauthorized", True, False),
        "forbidden": ("Forbidden", True, True),
        "garbage": ("BadKubeconfig", None, None),
        "command": ("BadKubeconfig", None, None),
        "missing": ("SecretNotFound", None, None),
    }
    assert "The client certificate expired on" in checked["expired"].message
    assert not any(WRONG in health.message for health in checked.values())
    assert not trace.exists()


def test_client_certificate_refused_in_the_handshake_is_unauthorized(secrets: Secrets, hub: Access, tmp_path: Path) -> None:
    """As by a proxy in front of an API server that requires client certificates."""
    authority = Authority("CA of the proxy")
    for name, text in zip(("crt", "key"), authority.server("proxy", ["127.0.0.1"]), strict=True):
        (tmp_path / name).write_bytes(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.pem.decode())

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) as secured:
            with contextlib.suppress(OSError):
                secured.do_handshake()
            # If the server closed at once, the connection could break before the client reads the refusal.
            over.wait()

    over = threading.Event()
    with listening(serve) as address:
        foreign = with_server(hub, address)
        foreign["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(authority.pem).decode()
        health = check(secrets.clients(), secrets.put("proxied", foreign))
        over.set()
    assert (health.reason, health.reachable, health.authenticated) == ("Unauthorized", True, False), health


def test_stopped_cluster_is_unreachable_others_are_healthy_and_it_recovers(secrets: Secrets, hub: Access) -> None:
    port = free_port()
    server = kubeconfig(hub)["clusters"][0]["cluster"]["server"]
    clusters = [secrets.put("hub", kubeconfig(hub)), secrets.put("east", with_server(hub, f"https://127.0.0.1:{port}"))]
    clients = secrets.clients()

    def reasons() -> list[str]:
        return [health.reason for health in clients.check(clusters).values()]

    with forwarding(port, server):
        assert reasons() == ["Healthy", "Healthy"]
    assert reasons() == ["Healthy", "Unreachable"]
    with forwarding(port, server):
        assert reasons() == ["Healthy", "Healthy"]


def test_revoked_token_is_unauthorized_until_the_secret_has_another(secrets: Secrets, hub: Access, namespace: str, account: str) -> None:
    # A token is bound to its account: a new account of the same name does not accept it. (An API server accepts a token
    # for ten more seconds once it has verified it, so this one was never sent.)
    revoked = create_token(hub.kube, namespace, account)
    hub.kube.delete(service_account(namespace, account))
    hub.kube.create(service_account(namespace, account))
    clients, cluster = secrets.clients(), secrets.put("hub", with_user(hub, token=revoked))
    # The server knows accounts from its cache.
    health = until(lambda: (found := check(clients, cluster)).reason != "Healthy" and found, "the token is refused")
    assert health and (health.reason, health.reachable, health.authenticated) == ("Unauthorized", True, False)

    secrets.put("hub", with_user(hub, token=create_token(hub.kube, namespace, account)))
    until(lambda: check(clients, cluster).reason == "Healthy", "the token of the new account is accepted")


def test_connection_is_reused_until_its_secret_changes(secrets: Secrets, hub: Access, namespace: str, account: str) -> None:
    clients, cluster = secrets.clients(), secrets.put("hub", with_user(hub, token=create_token(hub.kube, namespace, account)))
    assert check(clients, cluster).reason == "Healthy"
    before = clients.client(cluster).kube
    assert check(clients, cluster).reason == "Healthy"
    assert clients.client(cluster).kube is before

    secrets.put("hub", with_user(hub, token=WRONG))
    assert check(clients, cluster).reason == "Unauthorized"
    secrets.put("hub", with_user(hub, token=create_token(hub.kube, namespace, account)))
    assert check(clients, cluster).reason == "Healthy"
    assert clients.client(cluster).kube is not before

    hub.kube.delete(hub.kube.get("v1", "Secret", cluster.kubeconfig_secret, namespace))
    deleted = check(clients, cluster)
    assert (deleted.reason, deleted.credentials_expire) == ("SecretNotFound", None)


def test_a_401_replaces_the_connection_once(secrets: Secrets, hub: Access, namespace: str, account: str) -> None:
    clients, cluster = secrets.clients(), secrets.put("hub", with_user(hub, token=WRONG))
    used: list[Kube] = []

    def work(kube: Kube) -> str:
        used.append(kube)
        if len(used) == 1:
            # Rotated after the connection was made, and before its first request.
            secrets.put("hub", with_user(hub, token=create_token(hub.kube, namespace, account)))
        return str(kube.get("v1", "Namespace", "kube-system")["metadata"]["name"])

    assert clients.call(cluster, work) == "kube-system"
    assert len(set(used)) == 2

    secrets.put("hub", with_user(hub, token=WRONG))
    used[:] = [clients.client(cluster).kube]
    with pytest.raises(Unauthorized):
        clients.call(cluster, work)
    assert len(used) == 3


def test_token_that_expires_soon_is_reported_while_it_works(secrets: Secrets, hub: Access, namespace: str, account: str) -> None:
    soon = check(secrets.clients(), secrets.put("soon", with_user(hub, token=create_token(hub.kube, namespace, account, hours=48))))
    assert (soon.reason, soon.healthy) == ("CredentialsExpiring", True)
    assert "The token expires on" in soon.message
    later = secrets.put("later", with_user(hub, token=create_token(hub.kube, namespace, account)))
    assert check(secrets.clients(), later).reason == "Healthy"


def test_error_of_the_hub_is_not_the_health_of_a_cluster(hub: Access, namespace: str) -> None:
    create_account(hub.kube, namespace, "powerless", role="")
    powerless = Kube.connect({"kubeconfig": with_user(hub, token=create_token(hub.kube, namespace, "powerless"))})
    with pytest.raises(HubError, match=r"The hub: get Secret .*grant the verb"):
        check(ClusterClients(powerless, namespace, SECONDS), RegisteredCluster("east", "east-kubeconfig"))
    unreachable = Kube(Kube.connect({"kubeconfig": with_server(hub, f"https://127.0.0.1:{free_port()}")}).target, tries=1)
    with pytest.raises(KubeError, match="does not answer"):
        check(ClusterClients(unreachable, namespace, SECONDS), RegisteredCluster("east", "east-kubeconfig"))


@pytest.mark.soak
def test_clusters_are_checked_concurrently(secrets: Secrets, hub: Access, soak: int) -> None:
    """Each silent server answers only once all of them have a connection. Checked one by one, none would ever answer."""
    silent_clusters = 5
    barrier = threading.Barrier(silent_clusters)

    def close_together(connection: socket.socket) -> None:
        with connection:
            barrier.wait(WAIT_SECONDS)

    with listening(close_together) as silent:
        clusters = [secrets.put(f"healthy-{number}", kubeconfig(hub)) for number in range(15 * soak)]
        clusters += [secrets.put(f"silent-{number}", with_server(hub, silent)) for number in range(silent_clusters)]
        clusters += [secrets.put("closed", with_server(hub, f"https://127.0.0.1:{free_port()}"))]
        clusters += [secrets.put("wrong", with_user(hub, token=WRONG)), RegisteredCluster("missing", "missing")]
        checked = secrets.clients(2 * WAIT_SECONDS).check(clusters)
    reasons = [checked[cluster.name].reason for cluster in clusters]
    assert reasons == ["Healthy"] * 15 * soak + ["Unreachable"] * (silent_clusters + 1) + ["Unauthorized", "SecretNotFound"]
    assert not barrier.broken
