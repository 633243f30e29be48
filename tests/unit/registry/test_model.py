"""The model of a registry: what errors say of a cluster, what becomes of a status, both forms. And kubeconfigs of others."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, load_crd
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import errors as kube_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.untrusted import (
    BadKubeconfig,
    Expiry,
    expiry_of,
    kubeconfig_of,
    target_of,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.registry import model as registry
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import (
    CONFIG_MAP,
    HEALTHY,
    REGISTRY,
    BadRegistry,
    ClusterHealth,
    ClusterRegistry,
    RegisteredCluster,
    SecretNotFound,
    next_status,
    with_clusters,
    without_times,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
WELL = ClusterHealth(HEALTHY, reachable=True, authenticated=True, version="v1.36.3")
DOWN = ClusterHealth.of_error(kube_errors.Unreachable("no answer"))
Object = dict[str, Any]


def cluster(name: str, **changes: str) -> RegisteredCluster:
    return replace(RegisteredCluster(name, f"{name}-kubeconfig"), **changes)


def stored(*names: str, kind: str = REGISTRY, status: Object | None = None) -> ClusterRegistry:
    """A registry as it is read from a hub."""
    made = ClusterRegistry("dr", "peers", kind, tuple(map(cluster, names)))
    item = made.to_object()
    item["metadata"] |= {"generation": 3, "uid": "1", "resourceVersion": "2"}
    if status:
        for part, value in made.status_change(status).items():
            item[part] = item.get(part, {}) | value
    return ClusterRegistry.from_object(item)


@pytest.mark.parametrize(
    ("error", "reason", "reachable", "authenticated"),
    [
        (kube_errors.Unreachable("x"), "Unreachable", False, None),
        (kube_errors.Untrusted("x"), "Untrusted", True, None),
        (kube_errors.Unauthorized("x"), "Unauthorized", True, False),
        (kube_errors.Forbidden('User "system:anonymous" cannot get'), "Unauthorized", True, False),
        (kube_errors.Forbidden("User ramen cannot get"), "Forbidden", True, True),
        (SecretNotFound("x"), "SecretNotFound", None, None),
        (BadKubeconfig("x"), "BadKubeconfig", None, None),
        (kube_errors.ServerError("x"), "ServerError", True, None),
        (kube_errors.TooManyRequests("x"), "ServerError", True, None),
    ],
)
def test_only_silence_is_called_unreachable(
    error: kube_errors.KubeError, reason: str, reachable: bool | None, authenticated: bool | None
) -> None:
    found = ClusterHealth.of_error(error)
    assert (found.reason, found.reachable, found.authenticated, found.healthy) == (reason, reachable, authenticated, False)
    assert found.message == str(error)


def test_crd_knows_every_reason_and_no_other() -> None:
    schema = load_crd(COLLECTION_CRDS / "clusterregistries.yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    reasons = schema["properties"]["status"]["properties"]["clusters"]["items"]["properties"]["reason"]["enum"]
    ours = {value for name, value in vars(registry).items() if name.isupper() and isinstance(value, str) and value in reasons}
    assert sorted(reasons) == sorted(ours)
    assert {"Healthy", "Unreachable", "Unauthorized"} <= ours


@pytest.mark.parametrize(
    ("days", "reason", "said"),
    [(15, "Healthy", ""), (13.9, "CredentialsExpiring", "The token expires on 2026-05-15"), (-1, "CredentialsExpiring", "2026-04-30")],
)
def test_expiry_is_told_two_weeks_ahead(days: float, reason: str, said: str) -> None:
    found = WELL.with_expiry(Expiry(NOW + timedelta(days=days), "token"), NOW)
    assert (found.reason, found.healthy) == (reason, True)
    assert said in found.message
    assert found.credentials_expire == NOW + timedelta(days=days)


def test_refused_credentials_that_have_expired_are_said_to_have() -> None:
    refused = ClusterHealth.of_error(kube_errors.Unauthorized("check the kubeconfig"))
    assert (
        "The client certificate expired on 2026-04-30"
        in refused.with_expiry(Expiry(NOW - timedelta(days=1), "client certificate"), NOW).message
    )
    assert refused.with_expiry(Expiry(NOW + timedelta(days=1), "token"), NOW).message == "check the kubeconfig"


@pytest.mark.parametrize("kind", [REGISTRY, CONFIG_MAP])
def test_same_findings_are_no_change_and_are_written_once_a_minute(kind: str) -> None:
    found = {"east": WELL, "west": DOWN}
    first = next_status(stored("east", "west", kind=kind), found, NOW)
    assert stored("east", "west", kind=kind, status=first).status == first
    again = next_status(stored("east", "west", kind=kind, status=first), found, NOW + timedelta(seconds=59))
    assert again == first
    later = next_status(stored("east", "west", kind=kind, status=first), found, NOW + timedelta(seconds=60))
    assert later != first
    assert without_times(later) == without_times(first)


def test_cluster_that_went_silent_keeps_its_version_and_when_it_was_seen() -> None:
    before = next_status(stored("east"), {"east": WELL}, NOW)
    after = next_status(stored("east", status=before), {"east": DOWN}, NOW + timedelta(hours=1))
    assert after["clusters"] == [
        {
            "name": "east",
            "reachable": False,
            "version": "v1.36.3",
            "lastSeen": "2026-05-01T12:00:00Z",
            "reason": "Unreachable",
            "message": "no answer",
        }
    ]
    assert after["conditions"][0]["status"] == "False"
    assert after["conditions"][0]["lastTransitionTime"] == "2026-05-01T13:00:00Z"


def test_summary_counts_and_names() -> None:
    expiring = replace(WELL, reason="CredentialsExpiring")
    status = next_status(stored("a", "b", "c", "d"), {"a": WELL, "b": DOWN, "c": DOWN, "d": expiring}, NOW)
    assert status["conditions"][0]["message"] == "2 of 4 healthy; Unreachable: b, c; CredentialsExpiring: d"
    assert status["observedGeneration"] == 3
    well = next_status(stored("a", "d", status=status), {"a": WELL, "d": expiring}, NOW)
    assert (well["conditions"][0]["status"], well["conditions"][0]["reason"]) == ("True", "AllHealthy")


def test_cluster_that_is_registered_while_others_are_looked_at_is_left_out_and_one_that_went_is_gone() -> None:
    status = next_status(stored("east", "new"), {"east": WELL, "gone": WELL}, NOW)
    assert [entry["name"] for entry in status["clusters"]] == ["east"]
    assert status["conditions"][0]["message"] == "1 of 2 healthy"


def test_what_is_left_open_stays_as_it_is() -> None:
    present = (cluster("east", region="a", endpoint="https://east:6443"), cluster("west"))
    wanted = [{"name": "east", "region": "b", "endpoint": None, "kubeconfig_secret": None}, {"name": "new", "region": None}]
    assert with_clusters(present, wanted, "it") == (
        cluster("east", region="b", endpoint="https://east:6443"),
        cluster("west"),
        cluster("new"),
    )


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "East"},
        {"name": "a" * 64},
        {"name": "a.b"},
        {"name": ""},
        {"name": "a", "region": "-"},
        {"name": "a", "endpoint": "http://a"},
        {"name": "a", "endpoint": "https://user@a"},
        {"name": "a", "endpoint": "https://a:port"},
        {"name": "a", "endpoint": "https://"},
        {"name": "a", "endpoint": "https://a b"},
        {"name": "a", "kubeconfig_secret": "../x"},
    ],
)
def test_bad_cluster_is_named(entry: Object) -> None:
    with pytest.raises(BadRegistry, match=r"^it: ") as caught:
        with_clusters((), [entry], "it")
    assert repr(next(iter(entry.values()))) in str(caught.value) or "cluster a" in str(caught.value)


def test_cluster_that_is_named_twice_is_refused() -> None:
    with pytest.raises(BadRegistry, match="east is named twice"):
        with_clusters((), [{"name": "east"}, {"name": "east"}], "it")


@pytest.mark.parametrize(
    "data",
    [
        {"clusters": "a: b: c"},
        {"clusters": "text"},
        {"clusters": "{a: 1}"},
        {"clusters": "- text"},
        {"clusters": "- name: a"},
        {"clusters": "- {name: 1, kubeconfigSecret: {name: a}}"},
        {"clusters": "- {name: a, kubeconfigSecret: b}"},
        {"clusters": "- &a {name: a, kubeconfigSecret: {name: b}}\n- *a"},
        {"clusters": "[]", "status": "- a"},
        {"clusters": "[]", "status": "clusters: {}"},
        {"clusters": "[" * 5000},
    ],
)
def test_config_map_that_is_no_registry_is_said_to_be_none(data: dict[str, str]) -> None:
    with pytest.raises(BadRegistry, match=r"^ConfigMap dr/peers "):
        ClusterRegistry.from_object({"kind": CONFIG_MAP, "metadata": {"name": "peers", "namespace": "dr"}, "data": data})


def test_status_that_somebody_wrote_by_hand_is_read_as_far_as_it_goes() -> None:
    data = {"status": "clusters: [{name: a, lastSeen: 2026-01-02T03:04:05Z, version: 1}, {x: 1}, text]"}
    found = ClusterRegistry.from_object({"kind": CONFIG_MAP, "metadata": {"name": "peers", "namespace": "dr"}, "data": data})
    assert found.clusters == ()
    assert found.health["a"].last_seen == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


# ---------------------------------------------------------------------------------------------------- kubeconfigs of others

KUBECONFIG: Object = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    "clusters": [{"name": "k", "cluster": {"server": "https://east:6443"}}],
    "users": [{"name": "u", "user": {"token": "hunter2"}}],
}


def secret(content: Any, key: str = "kubeconfig") -> Object:
    text = content if isinstance(content, bytes) else (content if isinstance(content, str) else yaml.safe_dump(content)).encode()
    return {"metadata": {"name": "east", "namespace": "dr"}, "data": {key: base64.b64encode(text).decode()}}


def with_user(user: Any) -> Object:
    return KUBECONFIG | {"users": [{"name": "u", "user": user}]}


def with_cluster(values: Any) -> Object:
    return KUBECONFIG | {"clusters": [{"name": "k", "cluster": values}]}


def test_good_kubeconfig_is_used_as_it_is_and_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_AUTH_HOST", "https://hub")
    monkeypatch.setenv("K8S_AUTH_API_KEY", "of-the-hub")
    found = target_of(kubeconfig_of(secret(KUBECONFIG)))
    assert (found.server, found.token) == ("https://east:6443", "hunter2")
    assert target_of(kubeconfig_of(secret(KUBECONFIG), "https://other")).server == "https://other"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no key kubeconfig"),
        ("hunter2", "has no kubeconfig in the key"),
        ("{hunter2", "has no kubeconfig in the key"),
        (b"\xff\xfe\x00hunter2\x80", "has no kubeconfig in the key"),
        ("[" * 5000, "has no kubeconfig in the key"),
        ("[hunter2]", "has no kubeconfig in the key"),
        ({}, "no current context"),
        (KUBECONFIG | {"users": "hunter2"}, "users are not a list"),
        (KUBECONFIG | {"clusters": ["hunter2"]}, "clusters are not a list"),
        (with_user("hunter2"), "users are invalid"),
        (with_user({}), "has no credentials"),
        (with_user({"client-certificate-data": "hunter2!"}), "not base64"),
        (with_user({"exec": {"command": "touch"}, "token": "hunter2"}), "runs a command"),
        (with_user({"auth-provider": {"name": "oidc"}, "token": "hunter2"}), "runs a command"),
        (with_user({"tokenFile": "/etc/hostname"}), "names files"),
        (with_user({"client-certificate": "/etc/hostname", "token": "hunter2"}), "names files"),
        (with_user({"client-key": "/etc/hostname", "token": "hunter2"}), "names files"),
        (with_cluster({"server": "https://a", "certificate-authority": "/etc/hostname"}), "names files"),
        (with_cluster({}), "no server address"),
        (with_cluster({"server": "https://a:port"}), "is not valid; it looks like"),
        (KUBECONFIG | {"current-context": "other"}, "no context other"),
    ],
)
def test_kubeconfig_that_is_of_no_use_is_refused_without_a_word_of_it(content: Any, said: str) -> None:
    with pytest.raises(BadKubeconfig, match=said) as caught:
        target_of(kubeconfig_of(secret(content)))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None or "hunter2" not in str(caught.value.__cause__)


def test_kubeconfig_below_another_key_is_none() -> None:
    with pytest.raises(BadKubeconfig, match="has no key kubeconfig"):
        kubeconfig_of(secret(KUBECONFIG, "value"))


def test_command_of_a_kubeconfig_is_not_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    kubeconfig = with_user({"exec": {"command": "touch", "args": [str(trace)]}})
    for refusing in (lambda: kubeconfig_of(secret(kubeconfig)), lambda: target_of(kubeconfig)):
        with pytest.raises(BadKubeconfig, match="runs a command"):
            refusing()
    assert not trace.exists()


def token(claims: Any) -> str:
    body = base64.urlsafe_b64encode(claims if isinstance(claims, bytes) else json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (token({"exp": 1777636800}), datetime(2026, 5, 1, 12, tzinfo=UTC)),
        (token({}), None),
        (token({"exp": "soon"}), None),
        (token({"exp": 10**30}), None),
        (token({"exp": None}), None),
        (token([]), None),
        (token(b"{"), None),
        ("e30.%%%.x", None),
        ("opaque", None),
        ("a.b.c.d", None),
        ("", None),
    ],
)
def test_expiry_of_a_token(text: str, moment: datetime | None) -> None:
    found = expiry_of(Target("https://a", token=text))
    assert (found.moment if found else None) == moment


def test_expiry_of_a_certificate_and_the_sooner_of_two() -> None:
    certificate, key = Authority("test").client("somebody", valid=timedelta(days=10))
    credentials = Target("https://a", certificate=certificate, key=key)
    found = expiry_of(credentials)
    assert found is not None
    assert found.what == "client certificate"
    assert timedelta(days=9) < found.moment - datetime.now(UTC) <= timedelta(days=10)
    later = token({"exp": int((datetime.now(UTC) + timedelta(days=20)).timestamp())})
    assert expiry_of(replace(credentials, token=later)) == found
    sooner = token({"exp": int((datetime.now(UTC) + timedelta(days=5)).timestamp())})
    assert getattr(expiry_of(replace(credentials, token=sooner)), "what", None) == "token"
    assert expiry_of(Target("https://a", certificate=b"garbage")) is None
