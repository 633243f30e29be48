"""The Deployment of the collection, without nodes to run it on: its objects on a hub, and its container's command as a plain process."""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.certificates import Authority
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port

from .engines import COLLECTIONS, TOKEN, Engine
from .manifests import MANIFESTS, manifest

SERVE = COLLECTIONS / "ansible_collections/openfleet/clusters/extensions/eda/serve.py"


def install(hub: Access) -> None:
    hub.kubectl("apply", "-k", str(MANIFESTS))


def account_kubeconfig(hub: Access, server: str, file: Path, account_manifest: str = "service_account") -> Path:
    """What a pod of a Deployment would connect with, as a kubeconfig: a token of its service account, and its own namespace."""
    account = manifest(account_manifest)["metadata"]
    token = hub.kubectl("create", "token", account["name"], "-n", account["namespace"]).stdout.strip()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pod",
        "clusters": [{"name": "hub", "cluster": {"server": server}}],
        "users": [{"name": "account", "user": {"token": token}}],
        "contexts": [{"name": "pod", "context": {"cluster": "hub", "user": "account", "namespace": account["namespace"]}}],
    }
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    file.chmod(0o600)
    return file


class Deployed(Engine):
    """The container: command, arguments, environment and settings are those of the manifests; each volume is a folder below `folder`."""

    def __init__(self, account: Access, folder: Path) -> None:
        super().__init__(account, folder)
        container = manifest("deployment")["spec"]["template"]["spec"]["containers"][0]
        self._volumes = {mount["mountPath"]: folder / mount["name"] for mount in container["volumeMounts"]}
        for volume in self._volumes.values():
            volume.mkdir()
        files = manifest("config_map")["data"]
        variables = yaml.safe_load(files["variables.yml"])
        webhook = variables["event_source"]["webhook"]
        self.health_port = free_port()
        webhook |= {name: self._here(webhook[name]) for name in ("certfile", "keyfile")}
        webhook |= {"port": self.port, "health_port": self.health_port}
        self.authority = Authority("issuer")
        for name, pem in zip(("certfile", "keyfile"), self.authority.server("engine", ["127.0.0.1"]), strict=True):
            Path(webhook[name]).write_bytes(pem)
        files["variables.yml"] = json.dumps(variables)
        for name, text in files.items():
            (self._volumes["/etc/openfleet"] / name).write_text(text, encoding="utf-8")
        self._command = [self._here(word) for word in (*container["command"], *container["args"])]
        self._folder = self._volumes[container["workingDir"]]
        own = {entry["name"]: self._here(entry["value"]) if "value" in entry else TOKEN for entry in container["env"]}
        self.environment |= own | {"TMPDIR": str(self._volumes["/tmp"]), "ANSIBLE_COLLECTIONS_PATH": self._collections(folder)}  # noqa: S108

    def post_with_tls(self, endpoint: str, order: Any) -> int:
        """The status of a webhook from a sender that verifies the certificate."""
        pool = urllib3.PoolManager(ssl_context=ssl.create_default_context(cadata=self.authority.pem.decode()), retries=False)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return pool.request("POST", f"https://127.0.0.1:{self.port}/{endpoint}", body=json.dumps(order), headers=headers).status

    def _collections(self, folder: Path) -> str:
        """The image's, and what a site would add to it."""
        return f"{folder / 'collections'}:{COLLECTIONS}"

    def _here(self, word: str) -> str:
        """What is a path in the container, as it is on this machine."""
        mounts: Mapping[str, Path | str] = {"/usr/share/ansible/collections": COLLECTIONS} | self._volumes
        for inside, outside in mounts.items():
            if f"{inside}/" in f"{word}/":
                return word.replace(inside, str(outside))
        return sys.executable if word == "python3" else word
