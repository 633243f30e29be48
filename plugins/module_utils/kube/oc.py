# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""All objects of a namespace, through openshift-client with `oc`, or `kubectl` where that is missing. It only reads.

A support case needs every kind, and `oc` knows by itself which kinds a server has.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..common.types import Object
from .config import Target
from .errors import KubeError

try:
    import openshift_client
except ImportError:
    openshift_client = None

CLIENTS = ("oc", "kubectl")
SECONDS = 120


class ClientMissing(KubeError):
    """Neither `oc` nor `kubectl` is installed."""


class OcClient:
    """`oc` or `kubectl` for one cluster. What could not be read is in `problems`, a line each."""

    def __init__(self, program: str, kubeconfig: Path) -> None:
        self._program = program
        self._kubeconfig = kubeconfig
        self.problems: list[str] = []

    @classmethod
    @contextlib.contextmanager
    def connected(cls, kubeconfig: Object, program: str | None = None) -> Iterator[OcClient]:
        """A client with its kubeconfig in a private file, which is deleted at the end."""
        if openshift_client is None:
            raise ClientMissing("The Python library openshift_client is missing where Ansible runs: install openshift-client.")
        found = shutil.which(program) if program else next(filter(None, map(shutil.which, CLIENTS)), None)
        if not found:
            raise ClientMissing(
                f"There is no {program or ' and no '.join(CLIENTS)} where Ansible runs: install one of them, or set client."
            )
        with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig", encoding="utf-8") as file:
            json.dump(kubeconfig, file)
            file.flush()
            yield cls(found, Path(file.name))

    def everything(self, namespace: str) -> list[Object]:
        """All objects of a namespace, of every kind that can be listed."""
        kinds = self._run("api-resources", ["--namespaced", "--verbs=list", "--output=name"]).split()
        # The same events, in their older group.
        return self.get(",".join(kind for kind in kinds if kind != "events.events.k8s.io"), ["--namespace", namespace]) if kinds else []

    def get(self, kinds: str, options: Sequence[str]) -> list[Object]:
        text = self._run("get", [kinds, "--output=json", "--ignore-not-found", *options])
        found: Any = json.loads(text) if text.strip() else {}
        items: list[Object] = found.get("items", [found] if found else [])
        return items

    def _run(self, verb: str, arguments: Sequence[str]) -> str:
        with (
            openshift_client.client_path(self._program),
            openshift_client.api_server(kubeconfig_path=str(self._kubeconfig)),
            openshift_client.timeout(SECONDS),
        ):
            result = openshift_client.invoke(verb, list(arguments), no_namespace=True, auto_raise=False)
        self.problems += [line for line in result.err().splitlines() if line.strip()]
        return str(result.out())


def kubeconfig_of(target: Target) -> Object:
    """A target as a kubeconfig that contains its credentials."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "target",
        "contexts": [{"name": "target", "context": {"cluster": "target", "user": "target"}}],
        "clusters": [{"name": "target", "cluster": _cluster_of(target)}],
        "users": [{"name": "target", "user": _user_of(target)}],
    }


def _cluster_of(target: Target) -> Object:
    cluster: Object = {"server": target.server}
    if target.ca_data:
        cluster["certificate-authority-data"] = base64.b64encode(target.ca_data.encode()).decode()
    elif target.ca_file:
        cluster["certificate-authority"] = target.ca_file
    if not target.verify:
        cluster["insecure-skip-tls-verify"] = True
    if target.server_name:
        cluster["tls-server-name"] = target.server_name
    if target.proxy:
        cluster["proxy-url"] = target.proxy
    return cluster


def _user_of(target: Target) -> Object:
    user: Object = {}
    # A credential plugin runs when the headers are read, and not before.
    kind, _space, credential = dict(target.headers()).get("Authorization", "").partition(" ")
    if kind == "Bearer":
        user["token"] = credential
    elif kind == "Basic":
        user |= {"username": target.username, "password": target.password}
    if target.certificate:
        user["client-certificate-data"] = base64.b64encode(target.certificate).decode()
        user["client-key-data"] = base64.b64encode(target.key).decode()
    if target.impersonate_user:
        user |= {"as": target.impersonate_user, "as-groups": list(target.impersonate_groups)}
    return user
