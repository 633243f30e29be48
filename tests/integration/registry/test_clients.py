"""Registered clusters on real API servers: silent, refusing, forbidding, dying and coming back, rotated, many at once."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import ProcessStatus, Sandbox
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import KubeError, Unauthorized
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients, HubFailure
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import ClusterHealth, RegisteredCluster

Object = dict[str, Any]
WRONG = "hunter2"
SECONDS = 20.0  # what a busy machine may need; silent ones are given less
PATIENT, BRIEF = 30.0, 2.0


@pytest.fixture(scope="module")
def east(sandbox: Sandbox, hub: Access) -> Access:  # noqa: ARG001  the hub runs first
    """A cluster beside the hub, that may be killed."""
    sandbox.up(clusters=["east"])
    return Access(sandbox.kubeconfig("east"))


@pytest.fixture(scope="module")
def kube(hub: Access) -> Kube:
    return Kube.connect({"kubeconfig": str(hub.kubeconfig)})


def content(access: Access) -> Object:
    read: Object = yaml.safe_load(access.kubeconfig.read_text())
    return read


def with_user(access: Access, **user: Any) -> Object:
    """The kubeconfig of a cluster, with other credentials."""
    made = content(access)
    made["users"][0]["user"] = user
    return made


def with_server(access: Access, server: str) -> Object:
    made = content(access)
    made["clusters"][0]["cluster"]["server"] = server
    return made


def account(access: Access, namespace: str, name: str, role: str = "view") -> None:
    """A service account that may do what the role says, in the whole cluster."""
    if access.get("namespace", namespace) is None:
        access.kubectl("create", "namespace", namespace)
    access.kubectl("create", "serviceaccount", name, "-n", namespace)
    if role:
        binding = f"{namespace}-{name}"
        access.kubectl("create", "clusterrolebinding", binding, f"--clusterrole={role}", f"--serviceaccount={namespace}:{name}")


def token(access: Access, namespace: str, name: str, duration: str = "720h") -> str:
    return access.kubectl("create", "token", name, "-n", namespace, f"--duration={duration}").stdout.strip()


class Secrets:
    """The Secrets of one namespace of the hub."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.namespace = namespace
        self._kube = kube

    def put(self, name: str, value: Any) -> RegisteredCluster:
        """A kubeconfig for the cluster `name`; again, it is another version of the same Secret."""
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        metadata = {"name": f"{name}-kubeconfig", "namespace": self.namespace}
        data = {"kubeconfig": base64.b64encode(text).decode()}
        self._kube.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}, force=True)
        return RegisteredCluster(name, metadata["name"])

    def clients(self, seconds: float = SECONDS) -> ClusterClients:
        return ClusterClients(self._kube, self.namespace, seconds)


@pytest.fixture
def secrets(kube: Kube, namespace: str) -> Secrets:
    return Secrets(kube, namespace)


def look(clients: ClusterClients, cluster: RegisteredCluster) -> ClusterHealth:
    return clients.look([cluster])[cluster.name]


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on loopback that does `serve` with each connection; its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _address = server.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def hold(connection: socket.socket) -> None:
    """Take the connection and never say a word."""
    with contextlib.suppress(OSError):
        while connection.recv(4096):
            pass


def test_cluster_that_is_well(secrets: Secrets, hub: Access) -> None:
    found = look(secrets.clients(), secrets.put("hub", content(hub)))
    assert (found.reason, found.reachable, found.authenticated) == ("Healthy", True, True)
    assert found.version.startswith("v1.")
    assert found.credentials_expire is not None
    assert found.credentials_expire > datetime.now(UTC) + timedelta(days=300)


def test_endpoint_takes_the_place_of_the_address_in_the_kubeconfig(secrets: Secrets, hub: Access) -> None:
    address = content(hub)["clusters"][0]["cluster"]["server"]
    cluster = secrets.put("hub", with_server(hub, f"https://127.0.0.1:{free_port()}"))
    clients = secrets.clients()
    assert look(clients, cluster).reason == "Unreachable"
    moved = RegisteredCluster(cluster.name, cluster.kubeconfig_secret, endpoint=address)
    assert look(clients, moved).reason == "Healthy"


def test_each_trouble_has_its_own_reason(secrets: Secrets, hub: Access, namespace: str, tmp_path: Path) -> None:
    account(hub, namespace, "nobody", role="")
    expired = Authority("elsewhere").client("somebody", "system:masters", valid=timedelta(days=-1))
    in_base64 = {"client-certificate-data": base64.b64encode(expired[0]).decode(), "client-key-data": base64.b64encode(expired[1]).decode()}
    other_authority = content(hub)
    other_authority["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(Authority("other").pem).decode()
    trace = tmp_path / "trace"
    with listening(hold) as silent:
        clusters = [
            secrets.put("refused", with_server(hub, f"https://127.0.0.1:{free_port()}")),
            secrets.put("untrusted", other_authority),
            secrets.put("unauthorized", with_user(hub, token=WRONG)),
            secrets.put("expired", with_user(hub, **in_base64)),
            # The API server does not even look at a password, and takes whoever has one for nobody.
            secrets.put("anonymous", with_user(hub, username="admin", password=WRONG)),
            secrets.put("forbidden", with_user(hub, token=token(hub, namespace, "nobody"))),
            secrets.put("garbage", b"\xff\x00" + WRONG.encode()),
            secrets.put("command", with_user(hub, exec={"apiVersion": "v1", "command": "touch", "args": [str(trace)]})),
            RegisteredCluster("missing", "no-such-secret"),
        ]
        found = secrets.clients().look(clusters)
        found["silent"] = look(secrets.clients(BRIEF), secrets.put("silent", with_server(hub, silent)))
    assert {name: (health.reason, health.reachable, health.authenticated) for name, health in found.items()} == {
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
    assert "The client certificate expired on" in found["expired"].message
    assert not any(WRONG in health.message for health in found.values())
    assert not trace.exists()


def test_client_certificate_that_is_refused_in_the_handshake_is_unauthorized(secrets: Secrets, hub: Access, tmp_path: Path) -> None:
    """As a proxy in front of an API server does, that asks for certificates itself."""
    authority = Authority("authority of the proxy")
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
            # Closed at once, the connection might break before the refusal is read.
            over.wait()

    over = threading.Event()
    with listening(serve) as address:
        foreign = with_server(hub, address)
        foreign["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(authority.pem).decode()
        found = look(secrets.clients(), secrets.put("proxied", foreign))
        over.set()
    assert (found.reason, found.reachable, found.authenticated) == ("Unauthorized", True, False), found


def test_killed_cluster_is_unreachable_others_are_well_and_it_comes_back(
    sandbox: Sandbox, secrets: Secrets, hub: Access, east: Access
) -> None:
    clusters = [secrets.put("hub", content(hub)), secrets.put("east", content(east))]
    clients = secrets.clients()

    def reasons() -> list[str]:
        return [health.reason for health in clients.look(clusters).values()]

    assert reasons() == ["Healthy", "Healthy"]

    def server() -> ProcessStatus:
        return next(process for process in sandbox.status() if (process.owner, process.name) == ("east", "kube-apiserver"))

    os.kill(server().pid, signal.SIGKILL)
    assert reasons() == ["Healthy", "Unreachable"]
    until(lambda: not server().running, "the sandbox has noticed it")
    # The supervisor notices that something died, and starts it where it was.
    sandbox.up(clusters=["east"])
    assert reasons() == ["Healthy", "Healthy"]


def test_revoked_token_is_unauthorized_until_the_secret_has_another(secrets: Secrets, hub: Access, namespace: str) -> None:
    account(hub, namespace, "ramen")
    # A token is bound to its account: one that is made anew under the same name is another. (An API server accepts a token that it
    # has seen for ten more seconds, so this one was not shown to it.)
    revoked = token(hub, namespace, "ramen")
    hub.kubectl("delete", "serviceaccount", "ramen", "-n", namespace)
    hub.kubectl("create", "serviceaccount", "ramen", "-n", namespace)
    clients, cluster = secrets.clients(), secrets.put("hub", with_user(hub, token=revoked))
    found = look(clients, cluster)
    assert (found.reason, found.reachable, found.authenticated) == ("Unauthorized", True, False)

    secrets.put("hub", with_user(hub, token=token(hub, namespace, "ramen")))
    assert look(clients, cluster).reason == "Healthy"


def test_connection_is_kept_until_its_secret_changes(secrets: Secrets, hub: Access, east: Access, namespace: str) -> None:
    account(hub, namespace, "ramen")
    account(east, namespace, "ramen")
    clients, cluster = secrets.clients(), secrets.put("hub", with_user(hub, token=token(hub, namespace, "ramen")))
    assert look(clients, cluster).reason == "Healthy"
    before = clients.client(cluster).kube
    assert look(clients, cluster).reason == "Healthy"
    assert clients.client(cluster).kube is before

    secrets.put("hub", with_user(hub, token=token(east, namespace, "ramen")))
    assert look(clients, cluster).reason == "Unauthorized"
    secrets.put("hub", with_user(hub, token=token(hub, namespace, "ramen")))
    assert look(clients, cluster).reason == "Healthy"
    assert clients.client(cluster).kube is not before

    hub.kubectl("delete", "secret", cluster.kubeconfig_secret, "-n", namespace)
    gone = look(clients, cluster)
    assert (gone.reason, gone.credentials_expire) == ("SecretNotFound", None)


def test_after_a_401_the_connection_is_made_anew_once(secrets: Secrets, hub: Access, namespace: str) -> None:
    account(hub, namespace, "ramen")
    clients, cluster = secrets.clients(), secrets.put("hub", with_user(hub, token=WRONG))
    asked: list[Kube] = []

    def work(kube: Kube) -> str:
        asked.append(kube)
        if len(asked) == 1:
            # Rotated after the connection was made, and before it is used.
            secrets.put("hub", with_user(hub, token=token(hub, namespace, "ramen")))
        return str(kube.get("v1", "Namespace", "kube-system")["metadata"]["name"])

    assert clients.call(cluster, work) == "kube-system"
    assert len(set(asked)) == 2

    secrets.put("hub", with_user(hub, token=WRONG))
    asked.clear()
    asked.append(clients.client(cluster).kube)
    with pytest.raises(Unauthorized):
        clients.call(cluster, work)
    assert len(asked) == 3


def test_token_that_expires_soon_is_warned_about_while_it_works(secrets: Secrets, hub: Access, namespace: str) -> None:
    account(hub, namespace, "ramen")
    soon = look(secrets.clients(), secrets.put("soon", with_user(hub, token=token(hub, namespace, "ramen", "48h"))))
    assert (soon.reason, soon.healthy) == ("CredentialsExpiring", True)
    assert "The token expires on" in soon.message
    assert look(secrets.clients(), secrets.put("later", with_user(hub, token=token(hub, namespace, "ramen")))).reason == "Healthy"


def test_trouble_of_the_hub_is_not_taken_for_that_of_a_cluster(hub: Access, namespace: str) -> None:
    account(hub, namespace, "blind", role="")
    blind = Kube.connect({"kubeconfig": with_user(hub, token=token(hub, namespace, "blind"))})
    with pytest.raises(HubFailure, match=r"The hub: get Secret .*grant the verb"):
        look(ClusterClients(blind, namespace, SECONDS), RegisteredCluster("east", "east-kubeconfig"))
    gone = Kube(Kube.connect({"kubeconfig": with_server(hub, f"https://127.0.0.1:{free_port()}")}).target, tries=1)
    with pytest.raises(KubeError, match="does not answer"):
        look(ClusterClients(gone, namespace, SECONDS), RegisteredCluster("east", "east-kubeconfig"))


def test_of_fifty_clusters_silent_ones_delay_none(secrets: Secrets, hub: Access) -> None:
    admin = content(hub)
    with listening(hold) as silent:
        clusters = [secrets.put(f"well-{number}", admin) for number in range(40)]
        clusters += [secrets.put(f"silent-{number}", with_server(hub, silent)) for number in range(5)]
        clusters += [secrets.put(f"closed-{number}", with_server(hub, f"https://127.0.0.1:{free_port()}")) for number in range(3)]
        clusters += [secrets.put("wrong", with_user(hub, token=WRONG)), RegisteredCluster("missing", "missing")]
        began = time.monotonic()
        found = secrets.clients(PATIENT).look(clusters)
        ended = time.monotonic()
    reasons = [found[cluster.name].reason for cluster in clusters]
    assert reasons == ["Healthy"] * 40 + ["Unreachable"] * 8 + ["Unauthorized", "SecretNotFound"]
    # Each silent one takes half of the time that it is given: one after the other, the five alone would take this long.
    assert ended - began < 5 * PATIENT / 2
