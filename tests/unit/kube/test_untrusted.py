"""Kubeconfigs from Secrets: only self-contained ones are used, errors do not quote them, and their expiry is known."""

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
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.untrusted import (
    BadKubeconfig,
    expiry_of,
    kubeconfig_of,
    target_of,
    with_address,
)

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


def test_valid_kubeconfig_is_used_without_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S_AUTH_HOST", "https://hub")
    monkeypatch.setenv("K8S_AUTH_API_KEY", "of-the-hub")
    found = target_of(kubeconfig_of(secret(KUBECONFIG)))
    assert (found.server, found.token) == ("https://east:6443", "hunter2")
    assert target_of(kubeconfig_of(secret(KUBECONFIG), "https://other")).server == "https://other"


@pytest.mark.parametrize(
    ("server", "address", "wanted"),
    [
        ("https://east:6443/path", "192.0.2.7", "https://192.0.2.7:6443/path"),
        ("https://EAST", "2001:db8::7", "https://[2001:db8::7]"),
        ("https://west:6443", "192.0.2.7", "https://west:6443"),
    ],
)
def test_the_address_of_a_server_takes_the_place_of_its_name(server: str, address: str, wanted: str) -> None:
    content = with_cluster({"server": server})
    found = target_of(with_address(content, "east", address))
    assert (found.server, found.server_name) == (wanted, "" if wanted == server else "east")
    assert content == with_cluster({"server": server})
    named = with_address(with_cluster({"server": server, "tls-server-name": "api"}), "east", address)
    assert target_of(named).server_name == "api"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no key kubeconfig"),
        ("hunter2", "has no kubeconfig in the key"),
        ("{hunter2", "has no kubeconfig in the key"),
        (b"\xff\xfe\x00hunter2\x80", "has no kubeconfig in the key"),
        ("[" * 1000, "has no kubeconfig in the key"),
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
        (with_cluster({"server": "https://a:port"}), "is not valid"),
        (KUBECONFIG | {"current-context": "other"}, "no context other"),
    ],
)
def test_invalid_kubeconfig_is_refused_without_its_content_in_the_error(content: Any, message: str) -> None:
    with pytest.raises(BadKubeconfig, match=message) as caught:
        target_of(kubeconfig_of(secret(content)))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None or "hunter2" not in str(caught.value.__cause__)


def test_kubeconfig_under_another_key_is_not_found() -> None:
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
    certificate, key = Authority("test").client("client", valid=timedelta(days=10))
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
