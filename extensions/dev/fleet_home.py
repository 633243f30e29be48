"""The home cluster of a fleet on this machine, with what is shipped for it, and the REST API as a process: for demo and benchmark."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml

from ...plugins.module_utils.common.types import Object
from ...plugins.module_utils.lock.lease import SITE_NAMESPACE
from ..sandbox.access import Access
from ..sandbox.crds import COLLECTION_CRDS
from ..sandbox.processes import free_port, write_json
from .demo_process import DemoProcess
from .rules_engine import ROOT

MANIFESTS = ROOT / "extensions" / "eda" / "deploy" / "kubernetes"
CRDS = ("fleetclusters", "hubs", "fleetquotas", "clusterassignments", "clusterrecords")
TENANT_MANIFESTS = ("tenant/role_binding", "tenant/resource_quota", "tenant/secrets_role_binding")
ENGINE, API = "openfleet-fleet", "openfleet-api"  # the accounts of the shipped manifests
FLEET_API = "ansible_collections.openfleet.clusters.extensions.fleet_api"
RBAC = "rbac.authorization.k8s.io"


class FleetHome:
    """One home cluster. Kubeconfigs of its accounts are in the folder."""

    def __init__(self, access: Access, folder: Path) -> None:
        self.access = access
        self._folder = folder

    def install(self) -> None:
        """The CRDs, roles and policies, as docs/fleet.md says."""
        files = [argument for name in CRDS for argument in ("-f", str(COLLECTION_CRDS / f"{name}.yaml"))]
        self.access.kubectl("apply", "--server-side", *files)
        self.access.kubectl("wait", "--for=condition=Established", "--timeout=60s", *files)
        for folder in (MANIFESTS, MANIFESTS / "fleet", MANIFESTS / "fleet" / "api"):
            self.access.kubectl("apply", "-k", str(folder))

    def add_tenant(self, name: str, user: str) -> None:
        """A namespace, an account in it, and the shipped role for tenants, which is bound to the accounts of the namespace."""
        objects = _manifests(TENANT_MANIFESTS, name)
        objects[0]["subjects"][0]["name"] = f"system:serviceaccounts:{name}"
        self.access.apply(_namespace(name), _account(name, user), *objects)

    def add_operator(self, user: str) -> None:
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "openfleet-fleet-operator"}
        subject = {"kind": "ServiceAccount", "name": user, "namespace": SITE_NAMESPACE}
        binding = {"kind": "ClusterRoleBinding", "metadata": {"name": user}, "roleRef": role, "subjects": [subject]}
        self.access.apply(_account(SITE_NAMESPACE, user), {"apiVersion": f"{RBAC}/v1", **binding})

    def token(self, namespace: str, account: str) -> str:
        """A token of an account, as the API server issues it."""
        return self.access.kubectl("create", "token", account, "-n", namespace, "--duration=1h").stdout.strip()

    def kubeconfig(self, namespace: str, account: str) -> Path:
        """A kubeconfig with a token of an account, which has the permissions of the shipped roles only."""
        content: Object = json.loads(self.access.kubeconfig.read_text(encoding="utf-8"))
        content["users"][0]["user"] = {"token": self.token(namespace, account)}
        file = self._folder / f"{namespace}.{account}.kubeconfig"
        write_json(file, content)
        return file


class FleetApi(DemoProcess):
    """The REST API, which is at `url`, and its page."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._port, self._health_port = free_port(), free_port()
        self.address = f"http://127.0.0.1:{self._port}/"  # of the page
        self.url = f"{self.address}api/fleet/v1"

    def start(self, kubeconfig: Path, **settings: Any) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        own = {"port": self._port, "health_port": self._health_port, "kubeconfig": str(kubeconfig)}
        write_json(self.folder / "settings.yaml", own | settings)
        self.execute([sys.executable, "-m", FLEET_API, f"--settings={self.folder / 'settings.yaml'}"], dict(os.environ))

    def is_ready(self) -> bool:
        return bool(page(self._health_port, "readyz"))


def page(port: int, path: str) -> bytes:
    """A page for probes; empty while it does not answer with OK."""
    with contextlib.suppress(urllib3.exceptions.HTTPError):
        answer = urllib3.request("GET", f"http://127.0.0.1:{port}/{path}", retries=False, timeout=5)
        return answer.data if answer.status == 200 else b""
    return b""


def _manifests(names: Sequence[str], namespace: str) -> list[Object]:
    """Shipped manifests as an overlay makes them."""
    found: list[Object] = [yaml.safe_load((MANIFESTS / "fleet" / f"{name}.yaml").read_text(encoding="utf-8")) for name in names]
    for item in found:
        item["metadata"]["namespace"] = namespace
        for subject in item.get("subjects", ()):
            if subject["kind"] == "ServiceAccount":
                subject.setdefault("namespace", namespace)
    return found


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _account(namespace: str, name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
