# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The home cluster's side of a hub: its namespace, the account of its agent, and the credential of that account."""

from __future__ import annotations

import base64
from pathlib import Path

from ..common.types import Object
from ..kube.client import Kube
from .kinds import hub_namespace
from .shipped_manifests import DEPLOY, Applied, ensure, read_manifests

ACCOUNT = "agent"
FOLDERS = ("fleet/hub", "fleet/api/hub")  # what the agent, the home engine and the REST API need in the namespace


def ensure_access(home: Kube, hub: str, *, check_mode: bool = False) -> list[Applied]:
    """Create the namespace of the hub with its account and permissions, as far as they do not exist."""
    namespace = hub_namespace(hub)
    files = [file for folder in FOLDERS for file in sorted((DEPLOY / folder).glob("*.yaml")) if file.name != "kustomization.yaml"]
    own: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    return ensure(home, [own, *read_manifests(files, namespace)], check_mode=check_mode)


def issue_kubeconfig(home: Kube, hub: str, seconds: int, server: str = "") -> tuple[Object, str]:
    """A kubeconfig with a new token of the agent's account, and when it expires.

    `server` is the address at which the hub reaches the home cluster, if that is another one than ours.
    """
    namespace = hub_namespace(hub)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}}
    token, expires = home.request_token(account, seconds)
    authority = _authority(home)
    cluster = {"server": server or home.target.server} | ({"certificate-authority-data": authority} if authority else {})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "home",
        "clusters": [{"name": "home", "cluster": cluster}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": "home", "context": {"cluster": "home", "user": ACCOUNT, "namespace": namespace}}],
    }
    return config, expires


def _authority(home: Kube) -> str:
    target = home.target
    text = target.ca_data or (Path(target.ca_file).read_text(encoding="utf-8") if target.ca_file else "")
    return base64.b64encode(text.encode()).decode()
