"""The model of a registry in both forms, the health that errors mean, and the status after a check."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import COLLECTION_CRDS, load_crd
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import errors as kube_errors
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.untrusted import BadKubeconfig, Expiry
from ansible_collections.openfleet.clusters.plugins.module_utils.registry import health as registry_health
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.health import HEALTHY, ClusterHealth, SecretNotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import (
    CONFIG_MAP,
    REGISTRY,
    BadRegistry,
    ClusterRegistry,
    RegisteredCluster,
    to_yaml,
    with_clusters,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.status import next_status, without_times

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
UP = ClusterHealth(HEALTHY, reachable=True, authenticated=True, version="v1.36.3")
DOWN = ClusterHealth.of_error(kube_errors.Unreachable("no answer"))


def cluster(name: str, **changes: str) -> RegisteredCluster:
    return replace(RegisteredCluster(name, f"{name}-kubeconfig"), **changes)


def stored(*names: str, kind: str = REGISTRY, status: Object | None = None) -> ClusterRegistry:
    """A registry as read from a hub."""
    registry = ClusterRegistry("dr", "peers", kind, tuple(map(cluster, names)))
    item = registry.to_object()
    item["metadata"] |= {"generation": 3, "uid": "1", "resourceVersion": "2"}
    if status:
        for part, value in registry.status_change(status).items():
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
def test_only_a_missing_answer_is_unreachable(
    error: kube_errors.KubeError, reason: str, reachable: bool | None, authenticated: bool | None
) -> None:
    health = ClusterHealth.of_error(error)
    assert (health.reason, health.reachable, health.authenticated, health.healthy) == (reason, reachable, authenticated, False)
    assert health.message == str(error)


def test_crd_has_every_reason_and_no_other() -> None:
    schema = load_crd(COLLECTION_CRDS / "clusterregistries.yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    reasons = schema["properties"]["status"]["properties"]["clusters"]["items"]["properties"]["reason"]["enum"]
    ours = {value for name, value in vars(registry_health).items() if name.isupper() and isinstance(value, str) and value in reasons}
    assert sorted(reasons) == sorted(ours)
    assert {"Healthy", "Unreachable", "Unauthorized"} <= ours


@pytest.mark.parametrize(
    ("days", "reason", "message"),
    [(15, "Healthy", ""), (13.9, "CredentialsExpiring", "The token expires on 2026-05-15"), (-1, "CredentialsExpiring", "2026-04-30")],
)
def test_expiry_is_reported_two_weeks_ahead(days: float, reason: str, message: str) -> None:
    health = UP.with_expiry(Expiry(NOW + timedelta(days=days), "token"), NOW)
    assert (health.reason, health.healthy) == (reason, True)
    assert message in health.message
    assert health.credentials_expire == NOW + timedelta(days=days)


def test_message_of_refused_credentials_has_their_expiry() -> None:
    refused = ClusterHealth.of_error(kube_errors.Unauthorized("check the kubeconfig"))
    assert (
        "The client certificate expired on 2026-04-30"
        in refused.with_expiry(Expiry(NOW - timedelta(days=1), "client certificate"), NOW).message
    )
    assert refused.with_expiry(Expiry(NOW + timedelta(days=1), "token"), NOW).message == "check the kubeconfig"


@pytest.mark.parametrize("kind", [REGISTRY, CONFIG_MAP])
def test_same_health_is_no_change_and_is_written_once_a_minute(kind: str) -> None:
    checked = {"east": UP, "west": DOWN}
    first = next_status(stored("east", "west", kind=kind), checked, NOW)
    assert stored("east", "west", kind=kind, status=first).status == first
    again = next_status(stored("east", "west", kind=kind, status=first), checked, NOW + timedelta(seconds=59))
    assert again == first
    later = next_status(stored("east", "west", kind=kind, status=first), checked, NOW + timedelta(seconds=60))
    assert later != first
    assert without_times(later) == without_times(first)


def test_cluster_that_stops_answering_keeps_its_version_and_last_seen() -> None:
    before = next_status(stored("east"), {"east": UP}, NOW)
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


def test_condition_counts_healthy_clusters_and_names_the_others() -> None:
    expiring = replace(UP, reason="CredentialsExpiring")
    status = next_status(stored("a", "b", "c", "d"), {"a": UP, "b": DOWN, "c": DOWN, "d": expiring}, NOW)
    assert status["conditions"][0]["message"] == "2 of 4 healthy; Unreachable: b, c; CredentialsExpiring: d"
    assert status["observedGeneration"] == 3
    healthy = next_status(stored("a", "d", status=status), {"a": UP, "d": expiring}, NOW)
    assert (healthy["conditions"][0]["status"], healthy["conditions"][0]["reason"]) == ("True", "AllHealthy")


def test_status_follows_clusters_that_change_during_a_check() -> None:
    status = next_status(stored("east", "new"), {"east": UP, "removed": UP}, NOW)
    assert [entry["name"] for entry in status["clusters"]] == ["east"]
    assert status["conditions"][0]["message"] == "1 of 2 healthy"


def test_omitted_fields_stay_unchanged() -> None:
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
def test_error_names_the_invalid_cluster(entry: Object) -> None:
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
        {"clusters": "- {name: a, kubeconfigSecret: 1}"},
        {"clusters": "- {name: a, kubeconfigSecret: true}"},
        {"clusters": "- &a {name: a, kubeconfigSecret: {name: b}}\n- *a"},
        {"clusters": "[]", "status": "- a"},
        {"clusters": "[]", "status": "clusters: {}"},
        {"clusters": "[" * 1000},
    ],
)
def test_invalid_config_map_is_refused(data: dict[str, str]) -> None:
    with pytest.raises(BadRegistry, match=r"^ConfigMap dr/peers "):
        ClusterRegistry.from_object({"kind": CONFIG_MAP, "metadata": {"name": "peers", "namespace": "dr"}, "data": data})


def test_valid_parts_of_a_status_written_by_hand_are_read() -> None:
    data = {"status": "clusters: [{name: a, lastSeen: 2026-01-02T03:04:05Z, version: 1}, {x: 1}, text]"}
    registry = ClusterRegistry.from_object({"kind": CONFIG_MAP, "metadata": {"name": "peers", "namespace": "dr"}, "data": data})
    assert registry.clusters == ()
    assert registry.health["a"].last_seen == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


SHORT = {"name": "east", "endpoint": "https://east", "region": "eu", "kubeconfigSecret": "east-admin", "status": "Ready"}


@pytest.mark.parametrize("kind", [REGISTRY, CONFIG_MAP])
def test_short_form_is_read_and_stays_as_it_was_written(kind: str) -> None:
    metadata = {"name": "peers", "namespace": "dr"}
    content: Object = {"data": {"clusters": to_yaml([SHORT])}} if kind == CONFIG_MAP else {"spec": {"clusters": [SHORT]}}
    registry = ClusterRegistry.from_object({"kind": kind, "metadata": metadata} | content)
    assert registry.clusters == (RegisteredCluster("east", "east-admin", "eu", "https://east"),)
    grown = replace(registry, clusters=with_clusters(registry.clusters, [{"name": "west"}], "it"))
    west = {"name": "west", "kubeconfigSecret": {"name": "west-kubeconfig"}}
    written = grown.spec_change()
    entries = yaml.safe_load(written["data"]["clusters"]) if kind == CONFIG_MAP else written["spec"]["clusters"]
    assert entries == [SHORT, west]
    moved = replace(registry, clusters=with_clusters(registry.clusters, [{"name": "east", "region": "us"}], "it")).spec_change()
    entries = yaml.safe_load(moved["data"]["clusters"]) if kind == CONFIG_MAP else moved["spec"]["clusters"]
    assert entries == [{"name": "east", "region": "us", "endpoint": "https://east", "kubeconfigSecret": {"name": "east-admin"}}]
