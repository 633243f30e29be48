"""`target` against the package kubernetes, by which kubernetes.core reads kubeconfigs: the same server, trust and credentials."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.config import Target, target
from kubernetes import client, config

CA, CERTIFICATE, KEY = b"the CA", b"the certificate", b"the key"
PLUGIN = """#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "of-the-plugin"}}'
"""


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def kubeconfig(name: str, cluster: dict[str, Any], user: dict[str, Any], current: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current or name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com:6443"} | cluster}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": user}],
    }


CASES: dict[str, list[dict[str, Any]]] = {
    "inline certificates": [
        kubeconfig(
            "a",
            {"certificate-authority-data": encoded(CA)},
            {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(KEY)},
        )
    ],
    "files beside the kubeconfig": [
        kubeconfig("a", {"certificate-authority": "ca.crt"}, {"client-certificate": "user.crt", "client-key": "user.key"})
    ],
    "inline data and files": [
        kubeconfig("a", {"certificate-authority": "other", "certificate-authority-data": encoded(CA)}, {"token": "of-the-user"})
    ],
    "token": [kubeconfig("a", {}, {"token": "of-the-user"})],
    "basic authentication": [kubeconfig("a", {}, {"username": "admin", "password": "of-the-user"})],
    "credential plugin": [
        kubeconfig("a", {}, {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}})
    ],
    "no verification, with a server name": [kubeconfig("a", {"insecure-skip-tls-verify": True, "tls-server-name": "api"}, {"token": "t"})],
    "proxy": [kubeconfig("a", {"proxy-url": "http://proxy.example.com:3128"}, {"token": "t"})],
    "server with a slash at the end": [kubeconfig("a", {"server": "https://api.example.com:6443/clusters/one/"}, {"token": "t"})],
    "two files, the context is in the second": [
        kubeconfig("a", {}, {"token": "first"}, current="b"),
        kubeconfig("b", {}, {"token": "second"}),
    ],
    "two files with the same names": [kubeconfig("a", {}, {"token": "first"}), kubeconfig("a", {}, {"token": "second"})],
}


def content(path: str | None) -> bytes:
    return Path(path).read_bytes() if path else b""


def read(files: list[dict[str, Any]], folder: Path) -> tuple[Target, client.Configuration]:
    """The files as the collection and as the package kubernetes reads them."""
    paths = []
    for number, file in enumerate(files):
        paths.append(folder / f"{number}.kubeconfig")
        paths[-1].write_text(json.dumps(file))
    named = os.pathsep.join(map(str, paths))
    theirs = client.Configuration()
    config.load_kube_config(config_file=named, client_configuration=theirs)
    return target({"kubeconfig": named}, {}), theirs


@pytest.mark.parametrize("files", CASES.values(), ids=CASES.keys())
def test_kubeconfig_means_the_same_to_kubernetes_core(files: list[dict[str, Any]], tmp_path: Path) -> None:
    for name, data in (("ca.crt", CA), ("user.crt", CERTIFICATE), ("user.key", KEY)):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "plugin").write_text(PLUGIN)
    (tmp_path / "plugin").chmod(0o755)
    ours, theirs = read(files, tmp_path)
    authorization = theirs.auth_settings().get("BearerToken", {}).get("value") or theirs.get_basic_auth_token()
    assert dict(ours.headers()).get("Authorization", "") == (authorization if theirs.api_key or theirs.username else "")
    assert ours.server == theirs.host
    assert (ours.ca_data.encode(), ours.certificate, ours.key) == (
        content(theirs.ssl_ca_cert),
        content(theirs.cert_file),
        content(theirs.key_file),
    )
    assert ours.verify == theirs.verify_ssl
    assert ours.server_name == (theirs.tls_server_name or "")
    assert ours.proxy == (theirs.proxy or "")


def test_first_current_context_counts_as_for_kubectl_and_not_the_last_as_for_kubernetes_core(tmp_path: Path) -> None:
    ours, theirs = read([kubeconfig("a", {}, {"token": "first"}), kubeconfig("b", {}, {"token": "second"})], tmp_path)
    assert ours.server == "https://a.example.com:6443"
    assert theirs.host == "https://b.example.com:6443"
