"""The connection on a real API server: what it reads, writes and refuses, and which error each refusal becomes."""

from __future__ import annotations

import base64
import contextlib
import copy
import datetime
import itertools
import json
import select
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import client as kube_module
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import config as kube_config
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import transport
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import CONNECTIONS, FIELD_MANAGER, Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import (
    ApplyConflict,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NamespaceTerminating,
    NotFound,
    Unauthorized,
    Unreachable,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.kinds import in_apply_order

from ..support.samples import hosted_cluster


def config_map(namespace: str, name: str = "settings", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


@pytest.fixture
def kubeconfig(hub: Access) -> dict[str, Any]:
    """The hub's kubeconfig, to be changed at will."""
    content: dict[str, Any] = yaml.safe_load(hub.kubeconfig.read_text())
    return content


@pytest.fixture
def kube(hub: Access) -> Kube:
    return Kube.connect({"kubeconfig": str(hub.kubeconfig)})


@pytest.fixture
def token(hub: Access, namespace: str) -> str:
    """The token of a service account that may do nothing."""
    hub.kubectl("create", "serviceaccount", "unprivileged", "-n", namespace)
    return hub.kubectl("create", "token", "unprivileged", "-n", namespace).stdout.strip()


# Reading


def test_an_object_is_got_or_found_or_missing(kube: Kube, namespace: str) -> None:
    made = kube.create(config_map(namespace, a="1"))
    assert kube.get("v1", "ConfigMap", "settings", namespace) == made
    assert kube.find("v1", "ConfigMap", "settings", namespace) == made
    assert kube.find("v1", "ConfigMap", "other", namespace) is None
    with pytest.raises(NotFound, match=f'get ConfigMap {namespace}/other: configmaps "other" not found'):
        kube.get("v1", "ConfigMap", "other", namespace)


def test_a_list_is_complete_however_many_pages_it_has(kube: Kube, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"item-{number}" for number in range(7)]
    for name in names:
        item = config_map(namespace, name)
        item["metadata"]["labels"] = {"odd": str(int(name[-1]) % 2)}
        kube.create(item)
    monkeypatch.setattr(kube_module, "PAGE", 2)
    before = kube.requests
    found = kube.list_all("v1", "ConfigMap", namespace, label_selector="odd")
    assert [item["metadata"]["name"] for item in found] == names
    assert kube.requests - before == 4
    later = kube.create(config_map(namespace, "later"))
    ours = {"fieldSelector": "metadata.name!=kube-root-ca.crt"}
    event = next(iter(kube.watch("v1", "ConfigMap", namespace, since=found.resource_version, seconds=60, **ours)))
    assert event.object["metadata"]["name"] == later["metadata"]["name"], "a watch starts where the list ends"
    assert {(item["apiVersion"], item["kind"]) for item in found} == {("v1", "ConfigMap")}, "an item can be written back as it is"
    odd = kube.list_all("v1", "ConfigMap", namespace, label_selector="odd=1")
    assert [item["metadata"]["name"] for item in odd] == ["item-1", "item-3", "item-5"]
    one = kube.list_all("v1", "ConfigMap", namespace, field_selector="metadata.name=item-3")
    assert [item["metadata"]["name"] for item in one] == ["item-3"]
    everywhere = kube.list_all("v1", "ConfigMap", label_selector="odd=1")
    assert {item["metadata"]["name"] for item in everywhere if item["metadata"]["namespace"] == namespace} == {"item-1", "item-3", "item-5"}


def test_kinds_that_are_not_known_beforehand_are_asked_for_once(kube: Kube, namespace: str) -> None:
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed", "namespace": namespace}}
    kube.apply(policy | {"spec": {"podSelector": {}}})
    assert kube.requests == 2
    assert kube.get(policy["apiVersion"], "NetworkPolicy", "closed", namespace)["spec"]["podSelector"] == {}
    assert kube.requests == 3
    assert kube.list_all(policy["apiVersion"], "Ingress", namespace) == []
    assert kube.requests == 4, "the whole group is known"


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Unicorn"),
        ("unicorns.example/v1", "Unicorn"),
        ("hypershift.openshift.io/v9", "HostedCluster"),
        ("unicorns.example/v1", "Lease"),
    ],
)
def test_a_kind_that_is_not_there_is_not_found_and_says_what_to_do(api_version: str, kind: str, kube: Kube, namespace: str) -> None:
    with pytest.raises(NotFound, match="install its CRD"):
        kube.get(api_version, kind, "sparkle", namespace)
    with pytest.raises(NotFound, match="install its CRD"):
        kube.list_all(api_version, kind, namespace)


# Writing


def test_replacing_an_object_that_has_changed_since_is_a_conflict(kube: Kube, namespace: str) -> None:
    old = kube.create(config_map(namespace, a="1"))
    new = kube.replace(old | {"data": {"a": "2"}})
    with pytest.raises(Conflict, match="has been modified") as caught:
        kube.replace(old | {"data": {"a": "3"}})
    assert caught.value.retryable
    assert kube.get("v1", "ConfigMap", "settings", namespace) == new


def test_creating_what_is_there_already_is_a_conflict(kube: Kube, namespace: str) -> None:
    made = kube.create(config_map(namespace, a="1"))
    with pytest.raises(Conflict, match="already exists"):
        kube.create(config_map(namespace, a="2"))
    assert kube.get("v1", "ConfigMap", "settings", namespace) == made


def test_apply_creates_updates_and_skips_an_unchanged_object(kube: Kube, namespace: str) -> None:
    created = kube.apply(config_map(namespace, a="1", b="1"))
    assert [entry["manager"] for entry in created["metadata"]["managedFields"]] == [FIELD_MANAGER]
    changed = kube.apply(config_map(namespace, a="2"))
    assert changed["data"] == {"a": "2"}, "a field that is no longer applied is removed"
    assert changed["metadata"]["uid"] == created["metadata"]["uid"]
    again = kube.apply(config_map(namespace, a="2"))
    assert again["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"], "nothing was written"


def test_an_apply_conflict_names_the_other_manager_and_its_fields(hub: Access, kube: Kube, namespace: str) -> None:
    theirs = json.dumps(config_map(namespace, a="theirs", b="theirs"))
    hub.kubectl("apply", "--server-side", "--field-manager=gitops", "-f", "-", stdin=theirs)
    before = kube.get("v1", "ConfigMap", "settings", namespace)
    with pytest.raises(ApplyConflict, match=r"gitops owns \.data\.a, \.data\.b") as caught:
        kube.apply(config_map(namespace, a="ours", b="ours", c="ours"))
    assert caught.value.fields == {"gitops": [".data.a", ".data.b"]}
    assert not caught.value.retryable
    assert kube.get("v1", "ConfigMap", "settings", namespace) == before

    forced = kube.apply(config_map(namespace, a="ours", c="ours"), force=True)
    assert forced["data"] == {"a": "ours", "b": "theirs", "c": "ours"}


def test_what_we_wrote_otherwise_is_no_conflict_with_ourselves(hub: Access, kube: Kube, namespace: str) -> None:
    kube.create(config_map(namespace, a="1", b="1"))
    assert kube.apply(config_map(namespace, a="2"), dry_run=True)["data"]["a"] == "2"
    made = kube.apply(config_map(namespace, a="2"))
    assert made["data"]["a"] == "2"
    kube.patch(made, {"data": {"a": "3"}})
    assert kube.apply(config_map(namespace, a="4"))["data"]["a"] == "4"
    # But what is ours and also another's is still theirs.
    kube.patch(kube.get("v1", "ConfigMap", "settings", namespace), {"data": {"b": "2"}})
    hub.kubectl(
        "patch", "configmap", "settings", "-n", namespace, "--field-manager=gitops", "--type=merge", "-p", '{"data": {"c": "theirs"}}'
    )
    with pytest.raises(ApplyConflict, match="gitops"):
        kube.apply(config_map(namespace, a="5", b="5", c="5"))
    assert kube.get("v1", "ConfigMap", "settings", namespace)["data"] == {"a": "4", "b": "2", "c": "theirs"}


def test_a_dry_run_returns_the_result_and_changes_nothing(kube: Kube, namespace: str) -> None:
    assert kube.apply(config_map(namespace, a="1"), dry_run=True)["data"] == {"a": "1"}
    assert kube.find("v1", "ConfigMap", "settings", namespace) is None
    made = kube.apply(config_map(namespace, a="1"))
    assert kube.apply(config_map(namespace, a="2"), dry_run=True)["data"] == {"a": "2"}
    assert kube.delete(made, dry_run=True)
    assert kube.get("v1", "ConfigMap", "settings", namespace) == made
    with pytest.raises(Invalid):
        kube.apply(config_map(namespace, "Not A Name"), dry_run=True)


@pytest.mark.parametrize("changes", [{"data": {"a": "3"}}, [{"op": "replace", "path": "/data/a", "value": "3"}]], ids=["merge", "json"])
class TestPatch:
    def test_it_changes_only_what_it_names(self, changes: Any, kube: Kube, namespace: str) -> None:
        made = kube.create(config_map(namespace, a="1", b="1"))
        assert kube.patch(made, changes)["data"] == {"a": "3", "b": "1"}

    def test_an_object_that_has_changed_since_is_a_conflict(self, changes: Any, kube: Kube, namespace: str) -> None:
        old = kube.create(config_map(namespace, a="1"))
        new = kube.patch(old, {"data": {"a": "2"}})
        with pytest.raises(Conflict) as caught:
            kube.patch(old, changes)
        assert caught.value.retryable
        assert kube.get("v1", "ConfigMap", "settings", namespace) == new
        assert kube.patch(old, changes, checked=False)["data"] == {"a": "3"}

    def test_another_object_of_the_same_name_is_a_conflict(self, changes: Any, kube: Kube, namespace: str) -> None:
        old = kube.create(config_map(namespace, a="1"))
        kube.delete(old)
        new = kube.create(config_map(namespace, a="1"))
        with pytest.raises(Conflict):
            kube.patch(old, changes)
        assert kube.get("v1", "ConfigMap", "settings", namespace) == new

    def test_an_object_that_was_never_read_cannot_be_checked(self, changes: Any, kube: Kube, namespace: str) -> None:
        kube.create(config_map(namespace, a="1"))
        with pytest.raises(KeyError):
            kube.patch(config_map(namespace), changes)

    def test_a_missing_object_is_not_found(self, changes: Any, kube: Kube, namespace: str) -> None:
        old = kube.create(config_map(namespace, a="1"))
        kube.delete(old)
        with pytest.raises(NotFound):
            kube.patch(old, changes)
        assert kube.find("v1", "ConfigMap", "settings", namespace) is None


def test_a_wrong_json_patch_is_invalid_and_no_conflict(kube: Kube, namespace: str) -> None:
    made = kube.create(config_map(namespace, a="1"))
    with pytest.raises(Invalid):
        kube.patch(made, [{"op": "remove", "path": "/data/missing"}])


def test_deleting_another_object_of_the_same_name_is_refused(kube: Kube, namespace: str) -> None:
    old = kube.create(config_map(namespace, a="1"))
    assert kube.delete(old, checked=True)
    assert not kube.delete(old, checked=True), "it is deleted already"
    new = kube.create(config_map(namespace, a="1"))
    with pytest.raises(Conflict, match="UID"):
        kube.delete(old, checked=True)
    assert kube.get("v1", "ConfigMap", "settings", namespace) == new


def test_status_is_written_apart_from_the_rest(kube: Kube, namespace: str) -> None:
    order: Object = {
        "apiVersion": "cloudkit.openshift.io/v1alpha1",
        "kind": "ClusterOrder",
        "metadata": {"name": "demo", "namespace": namespace},
        "spec": {"templateID": "small"},
    }
    made = kube.create(order | {"status": {"phase": "Ready"}})
    assert "status" not in made
    made = kube.patch(made, {"status": {"phase": "Progressing"}, "spec": {"templateID": "big"}}, subresource="status")
    assert (made["status"]["phase"], made["spec"]["templateID"]) == ("Progressing", "small")
    changed = copy.deepcopy(made)
    changed["status"]["phase"] = "Ready"
    assert kube.replace(changed, subresource="status")["status"]["phase"] == "Ready"
    with pytest.raises(Conflict):
        kube.replace(changed, subresource="status")
    with pytest.raises(Invalid) as caught:
        kube.patch(made, {"status": {"phase": "Dreaming"}}, subresource="status", checked=False)
    assert "status.phase" in caught.value.fields


def test_what_the_server_finds_invalid_is_named_by_field(kube: Kube, namespace: str) -> None:
    item = hosted_cluster(namespace)
    item["spec"]["platform"]["type"] = "Unicorn"
    del item["spec"]["release"]
    with pytest.raises(Invalid, match=r"spec\.platform\.type") as caught:
        kube.apply(item)
    assert {"spec.platform.type", "spec.release"} <= set(caught.value.fields)
    assert kube.find(item["apiVersion"], "HostedCluster", "demo", namespace) is None


def test_a_field_that_a_kind_does_not_have_is_invalid_and_named(kube: Kube, namespace: str) -> None:
    """The server answers these as its own failure, which would be tried again for ever."""
    with pytest.raises(Invalid, match=r"\.spec\.typo: field not declared in schema") as caught:
        kube.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": namespace}, "spec": {"typo": 1}})
    assert caught.value.fields == ["spec.typo"]
    assert "\n" not in str(caught.value)
    with pytest.raises(Invalid) as caught:
        kube.apply(hosted_cluster(namespace) | {"spec": "a text"})
    assert caught.value.fields == ["spec"]


# Watching


def test_a_watch_receives_events_in_order(kube: Kube, namespace: str) -> None:
    start = kube.create(config_map(namespace, a="1"))
    changed = kube.patch(start, {"data": {"a": "2"}})
    kube.delete(changed)
    kube.create(config_map(namespace, "other"))
    received = []
    for event in kube.watch("v1", "ConfigMap", namespace, since=start["metadata"]["resourceVersion"], seconds=60):
        received.append((event.type, event.object["metadata"]["name"]))
        if event.object["metadata"]["name"] == "other":
            break
    ours = [entry for entry in received if entry[1] != "kube-root-ca.crt"]
    assert ours == [("MODIFIED", "settings"), ("DELETED", "settings"), ("ADDED", "other")]


def test_a_watch_receives_later_events_and_ends_in_time(kube: Kube, namespace: str) -> None:
    since = kube.create(config_map(namespace))["metadata"]["resourceVersion"]
    selectors = {"fieldSelector": "metadata.name=late"}
    following = kube.watch("v1", "ConfigMap", namespace, since=since, seconds=60, **selectors)
    writer = threading.Timer(0.5, lambda: kube.create(config_map(namespace, "late")))
    writer.start()
    assert next(following).object["metadata"]["name"] == "late"
    following.close()
    writer.join()
    events = kube.watch("v1", "ConfigMap", namespace, since=since, seconds=1, **selectors)
    assert {event.type for event in events} <= {"ADDED", "BOOKMARK"}


def test_a_watch_that_is_left_leaves_a_good_connection(kube: Kube, namespace: str) -> None:
    """Neither does the next request wait behind an open watch, nor do left watches use up the connections."""
    for number in range(CONNECTIONS + 2):
        made = kube.create(config_map(namespace, f"item-{number}"))
        kube.patch(made, {"data": {"a": "1"}})
        only = {"fieldSelector": f"metadata.name=item-{number}"}
        following = kube.watch("v1", "ConfigMap", namespace, since=made["metadata"]["resourceVersion"], seconds=60, **only)
        assert next(following).type == "MODIFIED"
        following.close()
        before = kube.requests
        assert kube.get("v1", "ConfigMap", f"item-{number}", namespace)["data"] == {"a": "1"}
        assert kube.requests == before + 1


def test_a_watch_from_too_far_back_is_gone(kube: Kube, namespace: str) -> None:
    """Version 1 is older than the kind itself, whose CRD came later."""
    with pytest.raises(Gone, match="too old") as caught:
        list(kube.watch("cloudkit.openshift.io/v1alpha1", "ClusterOrder", namespace, since="1", seconds=30))
    assert caught.value.retryable


# Who asks


def test_a_user_without_the_permission_is_forbidden_and_named(hub: Access, token: str, namespace: str, kubeconfig: dict[str, Any]) -> None:
    assert hub
    kubeconfig["users"][0]["user"] = {"token": token}
    kube = Kube.connect({"kubeconfig": kubeconfig})
    for work in (
        lambda: kube.list_all("v1", "ConfigMap", namespace),
        lambda: kube.create(config_map(namespace)),
        lambda: kube.apply(config_map(namespace)),
    ):
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:unprivileged.*grant the verb") as caught:
            work()
        assert not caught.value.retryable


def test_a_namespace_that_is_being_deleted_refuses_new_objects_and_no_permission_is_missing(kube: Kube, namespace: str) -> None:
    held = config_map(namespace, "held")
    kube.create(held | {"metadata": held["metadata"] | {"finalizers": ["example.com/held"]}})
    kube.delete(kube.get("v1", "Namespace", namespace))
    numbers = itertools.count()

    def refusal() -> NamespaceTerminating | None:
        """Of a creation; the server may learn of the deletion a moment after it."""
        try:
            kube.create(config_map(namespace, f"late-{next(numbers)}"))
        except NamespaceTerminating as error:
            return error
        return None

    try:
        message = str(until(refusal, "a creation is refused"))
        assert "the namespace is being deleted" in message and "grant" not in message
        assert kube.patch(held, {"data": {"a": "1"}}, checked=False)["data"] == {"a": "1"}, "what exists can be changed"
    finally:
        kube.patch(held, {"metadata": {"finalizers": None}}, checked=False)


def test_a_token_given_as_an_option_is_who_asks_though_the_kubeconfig_has_a_certificate(hub: Access, token: str, namespace: str) -> None:
    kube = Kube.connect({"kubeconfig": str(hub.kubeconfig), "api_key": token})
    with pytest.raises(Forbidden, match=f"system:serviceaccount:{namespace}:unprivileged"):
        kube.list_all("v1", "ConfigMap", namespace)


def test_impersonation_is_who_is_named(hub: Access, namespace: str) -> None:
    options = {"kubeconfig": str(hub.kubeconfig), "impersonate_user": "jane"}
    with pytest.raises(Forbidden, match='"jane"'):
        Kube.connect(options).list_all("v1", "ConfigMap", namespace)
    Kube.connect(options | {"impersonate_groups": ["staff", "system:masters"]}).list_all("v1", "ConfigMap", namespace)


def test_a_garbage_token_is_unauthorized_and_not_shown(namespace: str, kubeconfig: dict[str, Any]) -> None:
    kubeconfig["users"][0]["user"] = {"token": "garbage"}
    with pytest.raises(Unauthorized, match="check the kubeconfig or the token") as caught:
        Kube.connect({"kubeconfig": kubeconfig}).list_all("v1", "ConfigMap", namespace)
    assert "garbage" not in str(caught.value)


def plugin_of(tmp_path: Path, **status: str) -> dict[str, Any]:
    """A credential plugin that gives these credentials and counts its runs."""
    answer = json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
    (tmp_path / "answer").write_text(answer)
    script = (
        f"from pathlib import Path; open({str(tmp_path / 'runs')!r}, 'a').write('x'); print(Path({str(tmp_path / 'answer')!r}).read_text())"
    )
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", script]}}


def test_a_credential_plugins_certificate_is_accepted(tmp_path: Path, namespace: str, kubeconfig: dict[str, Any]) -> None:
    user = kubeconfig["users"][0]["user"]
    certificate, key = (base64.b64decode(user[f"client-{part}-data"]).decode() for part in ("certificate", "key"))
    kubeconfig["users"][0]["user"] = plugin_of(tmp_path, clientCertificateData=certificate, clientKeyData=key)
    kube = Kube.connect({"kubeconfig": kubeconfig})
    assert kube.apply(config_map(namespace, a="1"))["data"] == {"a": "1"}
    kube.in_parallel(lambda _number: kube.get("v1", "ConfigMap", "settings", namespace), range(20))
    assert (tmp_path / "runs").read_text() == "x"


def test_a_plugins_expired_credentials_are_renewed_in_mid_use(
    tmp_path: Path, token: str, namespace: str, kubeconfig: dict[str, Any]
) -> None:
    """First a token that the server does not know, then one that it does."""
    kubeconfig["users"][0]["user"] = plugin_of(tmp_path, token="worn-out")  # noqa: S106
    kube = Kube.connect({"kubeconfig": kubeconfig})
    plugin_of(tmp_path, token=token)
    with pytest.raises(Forbidden, match="unprivileged"):
        kube.list_all("v1", "ConfigMap", namespace)
    assert (tmp_path / "runs").read_text() == "xx"


def test_a_pods_service_account_is_used(
    tmp_path: Path, token: str, namespace: str, kubeconfig: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = kubeconfig["clusters"][0]["cluster"]
    (tmp_path / "token").write_text(token)
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    monkeypatch.setattr(kube_config, "SERVICE_ACCOUNT", tmp_path)
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    environment["KUBERNETES_SERVICE_PORT"] = cluster["server"].rpartition(":")[2]
    found = kube_config.target({}, environment)
    assert found.namespace == namespace
    with pytest.raises(Forbidden, match="unprivileged"):
        Kube(found).list_all("v1", "ConfigMap", namespace)


# The way there


class ConnectProxy(socketserver.ThreadingTCPServer):
    """An HTTP proxy that knows CONNECT only; `asked` has what it was asked for."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Tunnel)


class Tunnel(socketserver.StreamRequestHandler):
    server: ConnectProxy

    def handle(self) -> None:
        lines = []
        while line := self.rfile.readline().decode().strip():
            lines.append(line)
        self.server.asked += lines
        host, _colon, port = lines[0].split()[1].partition(":")
        with socket.create_connection((host, int(port))) as far, contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            ends = {self.request: far, far: self.request}
            while True:
                for ready in select.select(list(ends), [], [])[0]:
                    if not (data := ready.recv(65536)):
                        return
                    ends[ready].sendall(data)


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    with ConnectProxy() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_proxy_is_used_and_gets_its_credentials(hub: Access, proxy: ConnectProxy, namespace: str) -> None:
    options = {"kubeconfig": str(hub.kubeconfig), "proxy": f"http://me:mine@127.0.0.1:{proxy.server_address[1]}"}
    kube = Kube.connect(options)
    assert kube.apply(config_map(namespace, a="1"))["data"] == {"a": "1"}
    assert proxy.asked[0].startswith("CONNECT 127.0.0.1:")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:mine').decode()}".lower() in [line.lower() for line in proxy.asked]
    proxy.asked.clear()
    Kube.connect(options | {"no_proxy": "127.0.0.1"}).get("v1", "ConfigMap", "settings", namespace)
    assert proxy.asked == []


def test_a_certificate_that_is_not_trusted_is_said_so_at_once(tmp_path: Path, hub: Access, namespace: str) -> None:
    (tmp_path / "ca.crt").write_bytes(Authority("another").pem)
    options = {"kubeconfig": str(hub.kubeconfig), "ca_cert": str(tmp_path / "ca.crt")}
    kube = Kube.connect(options)
    with pytest.raises(Unreachable, match=r"the certificate of https://.* is not trusted .*set ca_cert"):
        kube.get("v1", "ConfigMap", "settings", namespace)
    assert kube.requests == 1, "it would not be trusted the next time either"
    assert Kube.connect(options | {"validate_certs": False}).find("v1", "ConfigMap", "settings", namespace) is None


def test_a_server_of_another_name_is_not_trusted_unless_that_name_is_given(hub: Access, kubeconfig: dict[str, Any]) -> None:
    assert hub
    cluster = kubeconfig["clusters"][0]["cluster"]
    cluster["tls-server-name"] = "someone.else"
    with pytest.raises(Unreachable, match="certificate"):
        Kube.connect({"kubeconfig": kubeconfig}).get("v1", "Namespace", "default")
    cluster["tls-server-name"] = "kubernetes.default"
    assert Kube.connect({"kubeconfig": kubeconfig}).get("v1", "Namespace", "default")


# Many at once, and in which order


def test_each_of_many_has_its_own_result_or_error(kube: Kube, namespace: str) -> None:
    items = [config_map(namespace, f"item-{number}" if number % 5 else f"Bad {number}", n=str(number)) for number in range(40)]
    results = kube.in_parallel(kube.apply, items)
    assert len(results) == len(items)
    for item, result in zip(items, results, strict=True):
        if item["metadata"]["name"].startswith("Bad"):
            assert isinstance(result, Invalid)
            assert item["metadata"]["name"] in str(result)
        else:
            assert not isinstance(result, KubeError)
            assert result["data"] == item["data"]
    assert kube.requests == len(items)
    assert kube.in_parallel(kube.apply, []) == []


def test_a_whole_set_is_applied_in_that_order(kube: Kube, namespace: str) -> None:
    inner = f"{namespace}-inner"
    items: list[Object] = [
        config_map(inner, "settings", a="1"),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "worker", "namespace": inner}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inner}},
    ]
    try:
        results = [result for group in in_apply_order(items) for result in kube.in_parallel(kube.apply, group)]
        assert not [result for result in results if isinstance(result, KubeError)]
    finally:
        kube.delete(items[2])


# Time


def test_the_time_is_the_servers(kube: Kube, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what the server writes into objects, whatever our own clock says."""

    class Wrong(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return cls(1999, 1, 1, tzinfo=tz)

    monkeypatch.setattr(transport.datetime, "datetime", Wrong)
    for number in range(5):
        created = kube.create(config_map(namespace, f"item-{number}"))["metadata"]["creationTimestamp"]
        now = kube.server_time()
        assert now is not None
        late = (now - datetime.datetime.fromisoformat(created)).total_seconds()
        assert -1 <= late < 30


def test_an_api_server_that_is_not_there_is_unreachable(kubeconfig: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"https://127.0.0.1:{closed.getsockname()[1]}"
    kubeconfig["clusters"][0]["cluster"]["server"] = address
    with pytest.raises(Unreachable, match=f"{address} does not answer"):
        Kube.connect({"kubeconfig": kubeconfig}).get("v1", "Namespace", "default")
