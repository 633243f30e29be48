"""Reading and writing on peers over a real API server: four different answers, stamps, ownership, races, deadlines."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.deployer import DirectDeployer
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.directory import DirectDirectory
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.peers import Peers
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.direct.reader import DirectReader
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.interfaces import (
    Cluster,
    Deployed,
    ObjectRef,
    Outcome,
    Refused,
    Stamp,
    Superseded,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.kinds import RAMEN, VRG
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.read_results import Absent, Found, Listed, Unauthorized, Unreachable
from ansible_collections.openfleet.clusters.plugins.module_utils.dr.stamps import DESTINATION, DRPC_UID, EPOCH, REVISION
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.clients import ClusterClients, HubError
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.health import ClusterHealth
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import ClusterRegistry, RegisteredCluster

from ..support.dr_objects import SECONDS, peers_of, ref, vrg
from ..support.kubeconfigs import create_account, create_token, kubeconfig, with_server, with_user
from ..support.manifests import manifest
from ..support.tenants import connect_as

STAMP = Stamp("ours", 3, 9)
WRONG = "hunter2"
BRIEF = 1.0  # for a server that never answers


@pytest.fixture
def east(hub: Access, namespace: str) -> Peers:
    """One peer, the hub itself."""
    return peers_of(hub.kube, namespace, {"east": kubeconfig(hub)})


@pytest.fixture
def deployer(east: Peers) -> DirectDeployer:
    return DirectDeployer(east)


def annotations(hub: Access, namespace: str) -> dict[str, str]:
    found: dict[str, str] = hub.kube.get(RAMEN, VRG, "shop", namespace)["metadata"]["annotations"]
    return found


@contextlib.contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on loopback that calls `serve` with each connection; its host and port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _address = listener.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def hold(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(4096):
            pass


def test_object_is_created_with_its_namespace_and_stamp(hub: Access, east: Peers, deployer: DirectDeployer, namespace: str) -> None:
    apps = f"{namespace}-apps"
    assert deployer.apply("east", vrg(apps), STAMP) == Deployed(changed=True)
    try:
        assert annotations(hub, apps) == {EPOCH: "3", REVISION: "9", DRPC_UID: "ours", DESTINATION: "east"}
        assert deployer.apply("east", vrg(apps), STAMP) == Deployed(changed=False)
        answers = DirectReader(east).get(["east"], ref(apps))
        assert isinstance(answers["east"], Found)
        listed = DirectReader(east).list(["east"], RAMEN, VRG, apps)["east"]
        assert isinstance(listed, Listed)
        assert [item["metadata"]["name"] for item in listed.items] == ["shop"]
    finally:
        hub.kube.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": apps}})


def test_update_replaces_the_spec_and_keeps_what_others_wrote(hub: Access, deployer: DirectDeployer, namespace: str) -> None:
    deployer.apply("east", vrg(namespace, runFinalSync=True), STAMP)
    theirs = {"metadata": {"finalizers": ["example.com/theirs"], "annotations": {"example.com/theirs": "kept"}}}
    created = hub.kube.patch(vrg(namespace), theirs, checked=False)
    assert deployer.apply("east", vrg(namespace, replicationState="secondary"), Stamp("ours", 3, 10)) == Deployed(changed=True)
    found = hub.kube.get(RAMEN, VRG, "shop", namespace)
    assert (found["spec"]["replicationState"], "runFinalSync" in found["spec"]) == ("secondary", False)
    assert found["metadata"]["uid"] == created["metadata"]["uid"]
    assert found["metadata"]["finalizers"] == ["example.com/theirs"]
    assert found["metadata"]["annotations"].items() >= {REVISION: "10", "example.com/theirs": "kept"}.items()
    hub.kube.patch(found, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(("epoch", "revision"), [(3, 8), (2, 10)])
def test_newer_object_is_never_overwritten(hub: Access, deployer: DirectDeployer, namespace: str, epoch: int, revision: int) -> None:
    deployer.apply("east", vrg(namespace), STAMP)
    before = hub.kube.get(RAMEN, VRG, "shop", namespace)
    old = Stamp("ours", epoch, revision)
    for outcome in (
        deployer.apply("east", vrg(namespace, replicationState="secondary"), old),
        deployer.delete("east", ref(namespace), old),
    ):
        assert isinstance(outcome, Superseded)
        assert (outcome.epoch, outcome.revision) == (3, 9)
    assert hub.kube.get(RAMEN, VRG, "shop", namespace) == before


def test_object_of_another_owner_is_adopted_only_if_the_stamp_says_so(hub: Access, deployer: DirectDeployer, namespace: str) -> None:
    deployer.apply("east", vrg(namespace), Stamp("theirs", 1, 1))
    refused = deployer.apply("east", vrg(namespace), STAMP)
    assert isinstance(refused, Refused)
    assert "theirs" in refused.why
    assert isinstance(deployer.delete("east", ref(namespace), STAMP), Refused)
    assert deployer.apply("east", vrg(namespace), Stamp("ours", 3, 9, frozenset(["theirs"]))) == Deployed(changed=True)
    assert annotations(hub, namespace)[DRPC_UID] == "ours"


def test_object_without_a_stamp_is_not_taken_over(hub: Access, deployer: DirectDeployer, namespace: str) -> None:
    hub.kube.create(vrg(namespace))
    assert isinstance(deployer.apply("east", vrg(namespace), STAMP), Refused)


def test_deletion_can_be_repeated(hub: Access, deployer: DirectDeployer, namespace: str) -> None:
    deployer.apply("east", vrg(namespace), STAMP)
    hub.kube.patch(vrg(namespace), {"metadata": {"finalizers": ["example.com/theirs"]}}, checked=False)
    assert deployer.delete("east", ref(namespace), STAMP) == Deployed(changed=True)
    assert deployer.delete("east", ref(namespace), STAMP) == Deployed(changed=False)
    again = deployer.apply("east", vrg(namespace), Stamp("ours", 4, 1))
    assert isinstance(again, Refused)
    assert "being deleted" in again.why
    hub.kube.patch(vrg(namespace), {"metadata": {"finalizers": None}}, checked=False)
    assert deployer.delete("east", ref(namespace), STAMP) == Deployed(changed=False)


def test_invalid_object_is_refused(deployer: DirectDeployer, namespace: str) -> None:
    assert isinstance(deployer.apply("east", vrg(namespace, s3Profiles="none"), STAMP), Refused)


def test_field_that_the_crd_does_not_have_is_refused_and_not_dropped(hub: Access, deployer: DirectDeployer, namespace: str) -> None:
    """With a CRD without dryRun a test failover would be a failover."""
    refused = deployer.apply("east", vrg(namespace, neverHeardOf=True), STAMP)
    assert isinstance(refused, Refused) and "Check the CRD" in refused.why
    assert hub.kube.find(RAMEN, VRG, "shop", namespace) is None
    assert deployer.apply("east", vrg(namespace), STAMP) == Deployed(changed=True)
    assert isinstance(deployer.apply("east", vrg(namespace, neverHeardOf=True), STAMP), Refused)


def test_no_write_begins_after_the_deadline(hub: Access, east: Peers, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison of the stamp takes longer than all requests may take."""
    call = east.call

    def slow(name: str, work: Callable[[Any], Outcome]) -> Any:
        return call(name, lambda kube: work(Interposed(kube, [], after_find=lambda: time.sleep(1.5 * BRIEF))))

    east.seconds = BRIEF
    monkeypatch.setattr(east, "call", slow)
    assert isinstance(DirectDeployer(east).apply("east", vrg(namespace), STAMP), Unreachable)
    assert hub.kube.find(RAMEN, VRG, "shop", namespace) is None


def test_no_write_begins_after_the_term(hub: Access, deployer: DirectDeployer, namespace: str) -> None:
    """It ends while the stamp is compared."""
    acting = iter([True])
    assert isinstance(deployer.during(lambda: next(acting, False)).apply("east", vrg(namespace), STAMP), Unreachable)
    assert hub.kube.find(RAMEN, VRG, "shop", namespace) is None


class Interposed:
    """A connection on which another writer comes first, between the comparison of the stamp and the write."""

    def __init__(self, kube: Kube, others: list[Callable[[], object]], after_find: Callable[[], object] = bool) -> None:
        self._kube, self._others, self._after_find = kube, others, after_find

    def find(self, *arguments: Any) -> Object | None:
        found = self._kube.find(*arguments)
        self._after_find()
        return found

    def __getattr__(self, name: str) -> Any:
        if name in ("create", "replace", "delete") and self._others:
            self._others.pop()()
        return getattr(self._kube, name)


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("newer", [True, False])
def test_write_after_another_one_compares_the_stamp_again(
    east: Peers, hub: Access, namespace: str, exists: bool, newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployer = DirectDeployer(east)
    if exists:
        deployer.apply("east", vrg(namespace), Stamp("ours", 1, 1))
    call, others = east.call, [lambda: DirectDeployer(east).apply("east", vrg(namespace), Stamp("ours", 4 if newer else 2, 1))]

    def interposed(name: str, work: Callable[[Any], Outcome]) -> Any:
        monkeypatch.undo()
        return call(name, lambda kube: work(Interposed(kube, list(others))))

    monkeypatch.setattr(east, "call", interposed)
    outcome = deployer.apply("east", vrg(namespace, replicationState="secondary"), STAMP)
    assert isinstance(outcome, Superseded) if newer else outcome == Deployed(changed=True)
    found = hub.kube.get(RAMEN, VRG, "shop", namespace)
    assert found["spec"]["replicationState"] == ("primary" if newer else "secondary")
    assert found["metadata"]["annotations"][EPOCH] == ("4" if newer else "3")


def test_of_many_concurrent_writers_the_newest_stamp_remains(hub: Access, east: Peers, namespace: str) -> None:
    epochs = [(7 * number) % 16 + 1 for number in range(16)]

    def write(epoch: int) -> Outcome:
        return DirectDeployer(east).apply("east", vrg(namespace, s3Profiles=[f"of-{epoch}"]), Stamp("ours", epoch, 1))

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(write, epochs))
    assert all(isinstance(outcome, Deployed | Superseded) for outcome in outcomes)
    found = hub.kube.get(RAMEN, VRG, "shop", namespace)
    assert (found["metadata"]["annotations"][EPOCH], found["spec"]["s3Profiles"]) == ("16", ["of-16"])


def test_absent_unreachable_and_unauthorized_are_different_answers(hub: Access, namespace: str) -> None:
    create_account(hub.kube, namespace, "powerless", role="")
    with server(hold) as silent:
        peers = peers_of(
            hub.kube,
            namespace,
            {
                "absent": kubeconfig(hub),
                "down": with_server(hub, f"https://127.0.0.1:{free_port()}"),
                "refused": with_user(hub, token=WRONG),
                "forbidden": with_user(hub, token=create_token(hub.kube, namespace, "powerless")),
                "without-secret": None,
                "bad-secret": b"no kubeconfig",
            },
        )
        names = [cluster.name for cluster in peers.registry.clusters]
        answers = dict(DirectReader(peers).get([*names, "not-registered"], ref(namespace)))
        outcomes = {name: DirectDeployer(peers).apply(name, vrg(namespace), STAMP) for name in names if name != "absent"}
        impatient = peers_of(hub.kube, namespace, {"silent": with_server(hub, f"https://{silent}")}, seconds=BRIEF)
        answers |= DirectReader(impatient).get(["silent"], ref(namespace))
    kinds = {
        "absent": Absent,
        "silent": Unreachable,
        "down": Unreachable,
        "refused": Unauthorized,
        "forbidden": Unauthorized,
        "without-secret": Unauthorized,
        "bad-secret": Unauthorized,
        "not-registered": Unauthorized,
    }
    assert {name: type(answer) for name, answer in answers.items()} == kinds
    assert {name: type(outcome) for name, outcome in outcomes.items()} == {name: kinds[name] for name in outcomes}
    assert WRONG not in str(answers)
    assert hub.kube.find(RAMEN, VRG, "shop", namespace) is None


def test_peer_that_sends_a_byte_at_a_time_delays_no_other(hub: Access, namespace: str) -> None:
    """Each byte comes within any time-out of a read: only a deadline for all of it ends this."""
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not ended.wait(0.05):
                connection.sendall(b" ")

    with server(drip) as slow:
        peers = peers_of(hub.kube, namespace, {"east": kubeconfig(hub), "slow": with_server(hub, f"http://{slow}")}, seconds=4 * BRIEF)
        peers.call_all(["east"], lambda kube: kube.version())  # connected before
        answers = DirectReader(peers).get(["east", "slow"], ref(namespace))
        ended.set()
    assert {name: type(answer) for name, answer in answers.items()} == {"east": Absent, "slow": Unreachable}


def test_answer_that_is_not_complete_at_the_deadline_is_not_waited_for(hub: Access, namespace: str) -> None:
    peers = peers_of(hub.kube, namespace, {"east": kubeconfig(hub), "west": kubeconfig(hub)}, seconds=SECONDS)
    peers.call_all(["east", "west"], lambda kube: kube.version())  # connected before
    peers.seconds = 2 * BRIEF
    over = threading.Event()

    def work(kube: Kube) -> str:
        if slow.append(kube) or len(slow) == 1:
            over.wait()
        return "answered"

    slow: list[Kube] = []
    answers = peers.call_all(["east", "west"], work)
    over.set()
    assert sorted(type(answer).__name__ for answer in answers.values()) == ["Unreachable", "str"]


def test_kind_that_a_peer_does_not_serve_is_not_absent(hub: Access, east: Peers, deployer: DirectDeployer, namespace: str) -> None:
    unknown = ObjectRef("dr.example.com/v1", "Replica", f"{namespace}-none", "shop")
    assert isinstance(DirectReader(east).get(["east"], unknown)["east"], Unreachable)
    assert isinstance(DirectReader(east).list(["east"], unknown.api_version, unknown.kind)["east"], Unreachable)
    item: Object = {"apiVersion": unknown.api_version, "kind": unknown.kind, "metadata": {"name": "shop", "namespace": unknown.namespace}}
    assert isinstance(deployer.apply("east", item, STAMP), Refused)
    assert hub.kube.find("v1", "Namespace", unknown.namespace) is None


def test_error_of_the_own_api_server_is_no_answer_of_a_peer(hub: Access, namespace: str) -> None:
    clusters = (RegisteredCluster("east", "east-kubeconfig"),)
    clients = ClusterClients(connect_as(hub, "powerless"), namespace, SECONDS)
    peers = Peers(ClusterRegistry(namespace, "peers", clusters=clusters), clients, SECONDS)
    with pytest.raises(HubError):
        DirectReader(peers).get(["east"], ref(namespace))
    with pytest.raises(HubError):
        DirectDeployer(peers).apply("east", vrg(namespace), STAMP)


def test_shipped_role_is_enough_for_the_account_of_a_peer(hub: Access, namespace: str) -> None:
    role = manifest("dr/peer_cluster_role")
    hub.kube.apply(role, force=True)
    create_account(hub.kube, namespace, "peer", role["metadata"]["name"])
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"{namespace}-peer"}}
    try:
        token = create_token(hub.kube, namespace, "peer")
        peers = peers_of(hub.kube, namespace, {"east": with_user(hub, token=token)})
        with fresh_namespace(hub) as apps:
            deadline = time.monotonic() + SECONDS
            while isinstance(created := DirectDeployer(peers).apply("east", vrg(apps), STAMP), Unauthorized):
                assert time.monotonic() < deadline, created.why  # the server takes a moment to know the binding
            assert created == Deployed(changed=True)
            assert DirectDeployer(peers).apply("east", vrg(apps, action="Failover"), STAMP) == Deployed(changed=True)
            assert isinstance(DirectReader(peers).get(["east"], ref(apps))["east"], Found)
            assert isinstance(DirectReader(peers).list(["east"], RAMEN, VRG)["east"], Listed)
            assert DirectDeployer(peers).delete("east", ref(apps), STAMP) == Deployed(changed=True)
            with pytest.raises(Forbidden):
                Kube.connect({"kubeconfig": with_user(hub, token=token)}).list_all("v1", "Secret")
    finally:
        hub.kube.delete(binding)
        hub.kube.delete(role)


def test_directory_has_health_region_and_fence(hub: Access, namespace: str) -> None:
    name = f"{namespace}-east"
    fenced = {"apiVersion": RAMEN, "kind": "DRCluster", "metadata": {"name": name}}
    spec = {"region": "eu", "s3ProfileName": "none", "clusterFence": "Fenced"}
    created = hub.kube.create(fenced | {"spec": spec})
    try:
        condition = {"type": "Fenced", "status": "True", "reason": "Fenced", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"status": {"phase": "Fenced", "conditions": [condition | {"observedGeneration": created["metadata"]["generation"]}]}}
        hub.kube.patch(created, status, subresource="status")
        health = {"west": ClusterHealth("Unauthorized", reachable=True, authenticated=False), name: ClusterHealth("Healthy", True, True)}
        clusters = (RegisteredCluster(name, "x"), RegisteredCluster("west", "x", "us"), RegisteredCluster("new", "x"))
        registry = ClusterRegistry(namespace, "peers", clusters=clusters, health=health)
        assert DirectDirectory(hub.kube, registry).clusters() == [
            Cluster(name, "eu", True, "Healthy", fenced=True, fence_requested=True),
            Cluster("west", "us", False, "Unauthorized"),
            Cluster("new", "", None, "NotChecked"),
        ]
    finally:
        hub.kube.delete(created)
