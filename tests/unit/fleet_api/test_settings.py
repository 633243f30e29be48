"""Settings of the fleet API: defaults, the environment, and messages that name the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.fleet_api.app import build_services
from ansible_collections.openfleet.clusters.extensions.fleet_api.settings import BadSettings, Settings, load
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder

ISSUER = {"url": "https://issuer.example", "audiences": ["fleet"], "username_prefix": "oidc:"}


def written(folder: Path, content: Any) -> Path:
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_nothing_has_to_be_set() -> None:
    assert load(None, {}) == Settings()


@pytest.mark.parametrize(
    ("given", "state", "namespace"),
    [({}, "Ready", False), ({"controller": "self"}, "Ready", False), ({"controller": "external"}, "Progressing", True)],
)
def test_single_hub_decides_by_the_rules_of_its_controller(tmp_path: Path, given: Any, state: str, namespace: bool) -> None:
    """Another controller reports an order as ready, and the engine has written nothing of it yet."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "hub",
        "clusters": [{"name": "hub", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "api", "user": {"token": "made up"}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "api"}}],
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")
    settings = load(written(tmp_path, {"kubeconfig": str(kubeconfig), "single_hub": given}), {})
    services = build_services(settings)
    try:
        order = {
            "metadata": {"name": "demo", "namespace": "team", "uid": "u", "generation": 1},
            "spec": {"templateID": "small"},
            "status": {"phase": "Ready", "clusterReference": {"namespace": "cluster-demo-x7k2p"}},
        }
        assert services.source.shown(order)["status"]["state"] == state
        assert settings.single_hub
        parsed = ClusterOrder.from_object(order, settings.single_hub.names)
        assert (parsed.working_namespace == "cluster-demo-x7k2p") is namespace
    finally:
        services.home.close()


def test_environment_comes_before_the_file(tmp_path: Path) -> None:
    found = load(written(tmp_path, {"port": 1, "host": "::1"}), {"FLEET_API_PORT": "7", "FLEET_API_KUBECONFIG": "k"})
    assert (found.port, found.host, found.kubeconfig) == (7, "::1", "k")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"prot": 1}, "prot: Extra inputs are not permitted"),
        ({"port": 70000}, "port: Input should be less than or equal to 65535"),
        ([], None),
        ([1], "are not a mapping"),
        ({"issuers": [ISSUER | {"url": "http://issuer.example"}]}, "url is an address that begins with https://"),
        ({"issuers": [ISSUER | {"jwks_uri": "http://issuer.example/keys"}]}, "jwks_uri is an address that begins with https://"),
        ({"issuers": [ISSUER | {"algorithms": ["HS256"]}]}, "issuers.0.algorithms.0: Input should be 'RS256'"),
        ({"issuers": [ISSUER | {"algorithms": ["none"]}]}, "issuers.0.algorithms.0: Input should be 'RS256'"),
        ({"issuers": [ISSUER | {"audiences": []}]}, "issuers.0.audiences"),
        ({"issuers": [ISSUER | {"username_prefix": "system:"}]}, "do not begin with system:"),
        ({"issuers": [ISSUER | {"groups_claim": "groups"}]}, "groups_claim needs a groups_prefix"),
        ({"issuers": [ISSUER, ISSUER]}, "issuers have different urls"),
        ({"single_hub": {"controller": "osac"}}, "single_hub.controller: Input should be 'self' or 'external'"),
        ({"tls": {"certfile": "hunter2"}}, "tls.keyfile: Field required"),
    ],
)
def test_mistake_is_named(tmp_path: Path, content: Any, message: str | None) -> None:
    if message is None:
        assert load(written(tmp_path, content), {}) == Settings()
        return
    with pytest.raises(BadSettings) as refused:
        load(written(tmp_path, content), {})
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_file_that_is_missing_or_no_yaml_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [", encoding="utf-8")
    for path in (tmp_path / "none.yaml", broken):
        with pytest.raises(BadSettings, match=path.name):
            load(path, {})
