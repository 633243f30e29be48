"""Settings of the fleet API: defaults, the environment, and messages that name the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.fleet_api.settings import BadSettings, Settings, load

ISSUER = {"url": "https://issuer.example", "audiences": ["fleet"], "username_prefix": "oidc:"}


def written(folder: Path, content: Any) -> Path:
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_nothing_has_to_be_set() -> None:
    assert load(None, {}) == Settings()


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
