"""Access to one cluster of the sandbox by its kubeconfig: the library's client to read and apply, and kubectl for all that it can do."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from ...plugins.module_utils.kube.client import Kube
from ...plugins.module_utils.kube.config import target
from ...plugins.module_utils.kube.errors import KubeError
from ...plugins.module_utils.kube.transport import Transport
from . import gobuild
from .screen import UserError

POLL_SECONDS = 0.2
FIELD_MANAGER = "kubectl"  # that of `kubectl apply --server-side`: another one than that of the collection, which the objects are for
Result = TypeVar("Result")
# What `get` reads over one connection, by kubectl's resource name: group, version and kind. A kubectl process costs
# twenty times as much, and `until` reads several times a second.
KINDS = {
    "clusterorder": ("cloudkit.openshift.io", "v1alpha1", "ClusterOrder"),
    "configmap": ("", "v1", "ConfigMap"),
    "deployment": ("apps", "v1", "Deployment"),
    "drcluster": ("ramendr.openshift.io", "v1alpha1", "DRCluster"),
    "drplacementcontrol": ("ramendr.openshift.io", "v1alpha1", "DRPlacementControl"),
    "hostedcluster": ("hypershift.openshift.io", "v1beta1", "HostedCluster"),
    "lease": ("coordination.k8s.io", "v1", "Lease"),
    "namespace": ("", "v1", "Namespace"),
    "node": ("", "v1", "Node"),
    "nodepool": ("hypershift.openshift.io", "v1beta1", "NodePool"),
    "persistentvolumeclaim": ("", "v1", "PersistentVolumeClaim"),
    "rolebinding": ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    "secret": ("", "v1", "Secret"),
    "serviceaccount": ("", "v1", "ServiceAccount"),
    "volumereplicationgroup": ("ramendr.openshift.io", "v1alpha1", "VolumeReplicationGroup"),
}

_ARGUMENTS = argparse.ArgumentParser(add_help=False)
_ARGUMENTS.add_argument("kinds")
_ARGUMENTS.add_argument("name", nargs="?")
_ARGUMENTS.add_argument("-n", dest="namespace", default="default")
_ARGUMENTS.add_argument("-l", dest="selector", default="")
_ARGUMENTS.add_argument("-A", dest="everywhere", action="store_true")


@dataclass(frozen=True)
class Access:
    kubeconfig: Path

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [str(gobuild.programs(gobuild.KUBERNETES)["kubectl"]), f"--kubeconfig={self.kubeconfig}", *arguments]
        result = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if check and result.returncode:
            raise UserError(f"kubectl {' '.join(arguments)} failed: {result.stderr.strip() or result.stdout.strip()}")
        return result

    @cached_property
    def kube(self) -> Kube:
        return Kube.connect({"kubeconfig": str(self.kubeconfig)})

    def get(self, *arguments: str) -> Any:
        """The object or list that `kubectl get` prints for these arguments, or None where the object does not exist."""
        parsed, unknown = _ARGUMENTS.parse_known_args(arguments)
        kinds = [kind for kind in map(_kind, parsed.kinds.split(",")) if kind]
        if unknown or len(kinds) <= parsed.kinds.count(",") or (parsed.name and len(kinds) > 1):
            return self._get_by_kubectl(*arguments)
        namespace = None if parsed.everywhere else parsed.namespace
        try:
            if parsed.name:
                return self.kube.find(*kinds[0], parsed.name, namespace)
            items = [item for kind in kinds for item in self.kube.list_all(*kind, namespace, parsed.selector)]
        except KubeError as error:
            raise UserError(str(error)) from error
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _get_by_kubectl(self, *arguments: str) -> Any:
        # Not by --ignore-not-found, which prints nothing for an empty list either.
        result = self.kubectl("get", *arguments, "-o", "json", check=False)
        if result.returncode and "(NotFound)" in result.stderr:
            return None
        if result.returncode:
            raise UserError(f"kubectl get {' '.join(arguments)} failed: {result.stderr.strip()}")
        return json.loads(result.stdout)

    def apply(self, *objects: dict[str, Any]) -> None:
        """What `kubectl apply --server-side --force-conflicts` does for these objects, one after the other."""
        try:
            for item in objects:
                self._apply(item)
        except KubeError as error:
            raise UserError(str(error)) from error

    def _apply(self, item: dict[str, Any]) -> None:
        metadata = item["metadata"]
        if "namespace" not in metadata and self._writer.namespaced(item["apiVersion"], item["kind"]):
            item = item | {"metadata": metadata | {"namespace": "default"}}
        self._writer.apply(item, force=True)

    @cached_property
    def _writer(self) -> Kube:
        return Kube(target({"kubeconfig": str(self.kubeconfig)}), field_manager=FIELD_MANAGER)

    def install_crds(self, *crds: dict[str, Any]) -> None:
        """Apply the CRDs and return when their kinds are served, which is a little after their conditions Established."""
        self.apply(*crds)
        transport = Transport(self.kube.target, timeout=None, tries=1, connections=1)
        for crd in crds:
            group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
            version = next(version["name"] for version in crd["spec"]["versions"] if version["served"])
            until(partial(self._serves, transport, group, version, kind), f"{crd['metadata']['name']} is served")

    def _serves(self, transport: Transport, group: str, version: str, kind: str) -> bool:
        try:
            # Until its schema is published, kubectl validates objects by itself, with other rules than the server's.
            published = transport.request("GET", f"/openapi/v3/apis/{group}/{version}", f"get the schemas of {group}/{version}")
            self.kube.list_all(f"{group}/{version}", kind)
        except KubeError:
            return False
        return f'"kind":"{kind}"'.encode() in published.data

    def wait(self, *arguments: str, timeout: str = "300s") -> None:
        self.kubectl("wait", f"--timeout={timeout}", *arguments)


def _kind(name: str) -> tuple[str, str] | None:
    """The API version and the kind of a resource name of kubectl, with its group after a dot or without."""
    resource, _dot, group = name.partition(".")
    known = KINDS.get(resource) or KINDS.get(resource.removesuffix("s"))
    if known is None:
        return None
    api = "/".join(filter(None, (group or known[0], known[1])))
    return api, known[2]


def until(condition: Callable[[], Result], what: str, seconds: float = 300) -> Result:
    """Poll until the condition returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise UserError(f"Not within {seconds} s: {what}.")
        time.sleep(POLL_SECONDS)
    return result
