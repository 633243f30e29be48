"""Flux's install manifest for tests and demos: one YAML stream and its checksum.

The CRDs are Flux's own, from its Go modules. The rest is written here, with the names, images and permissions that a site finds in the
manifest of a Flux release: what applies this one can apply that one.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from ....plugins.module_utils.common.types import Object
from .. import gobuild
from ..crds import crds_in
from ..processes import write_private

NAMESPACE = "flux-system"
GROUPS = [f"{name}.toolkit.fluxcd.io" for name in ("source", "kustomize", "helm", "notification", "image")]
# A dependency that is not ready is checked again after this time rather than after half a minute.
REQUEUE = "--requeue-dependency=2s"
EVENTS = f"--events-addr=http://notification-controller.{NAMESPACE}.svc.cluster.local./"
STORAGE = f"source-controller.{NAMESPACE}.svc.cluster.local."


@dataclass(frozen=True)
class Manifest:
    """A manifest as a site pins it: the file, its SHA-256 and Flux's version. The checksum is also in `<path>.sha256`."""

    path: Path
    sha256: str
    version: str


def write(folder: Path, version: str = gobuild.FLUX_VERSION) -> Manifest:
    """Write the manifest of this version to the folder. The controllers are always the compiled ones: only labels differ."""
    text = yaml.safe_dump_all(objects(version), sort_keys=False, width=1000)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    path = folder / f"flux-{version}.yaml"
    write_private(path, text)
    write_private(folder / f"{path.name}.sha256", f"{checksum}  {path.name}\n")
    return Manifest(path, checksum, version)


def write_beside_controllers() -> Manifest:
    """The manifest in the user's cache. Compiles Flux where that is missing."""
    return write(gobuild.programs(gobuild.FLUX)["source-controller"].parent)


def objects(version: str) -> list[Object]:
    config = gobuild.programs(gobuild.FLUX)["source-controller"].parent / "config"
    versions = _versions()
    crds = [crd for name in gobuild.FLUX_CONTROLLERS for crd in crds_in(config / name / "crd" / "bases")]
    accounts = [_object("v1", "ServiceAccount", name) for name in gobuild.FLUX_CONTROLLERS]
    deployments = [_deployment(name, versions[name]) for name in gobuild.FLUX_CONTROLLERS]
    everything = [_object("v1", "Namespace", NAMESPACE), *crds, *accounts, *_permissions(), *_services(), *deployments]
    for each in everything:
        labels = {"app.kubernetes.io/instance": NAMESPACE, "app.kubernetes.io/part-of": "flux", "app.kubernetes.io/version": version}
        each["metadata"].setdefault("labels", {}).update(labels)
        if each["kind"] in ("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"):
            each["metadata"].pop("namespace", None)
    return everything


def _versions() -> dict[str, str]:
    """The version of each controller, as `go.mod` pins it."""
    text = (gobuild.FLUX.sources / "go.mod").read_text(encoding="utf-8")
    found = re.findall(r"^\s*github\.com/fluxcd/([a-z]+-controller) (v\S+)", text, re.MULTILINE)
    return dict(found)


def _object(api_version: str, kind: str, name: str, **fields: object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **fields}


def _permissions() -> list[Object]:
    """All controllers may do everything with Flux's own kinds; two of them apply what others have written, and so may do everything."""
    rules = [
        {"apiGroups": GROUPS, "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["namespaces", "secrets", "configmaps", "serviceaccounts"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch", "create", "update", "patch"]},
    ]
    return [
        _object("rbac.authorization.k8s.io/v1", "ClusterRole", f"crd-controller-{NAMESPACE}", rules=rules),
        _binding(f"crd-controller-{NAMESPACE}", f"crd-controller-{NAMESPACE}", gobuild.FLUX_CONTROLLERS),
        _binding(f"cluster-reconciler-{NAMESPACE}", "cluster-admin", ("kustomize-controller", "helm-controller")),
    ]


def _binding(name: str, role: str, accounts: tuple[str, ...]) -> Object:
    return _object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE} for account in accounts],
    )


def _services() -> list[Object]:
    def service(name: str, app: str, port: str) -> Object:
        ports = [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": port}]
        return _object("v1", "Service", name, spec={"type": "ClusterIP", "selector": {"app": app}, "ports": ports})

    return [
        service("source-controller", "source-controller", "http"),
        service("notification-controller", "notification-controller", "http"),
        service("webhook-receiver", "notification-controller", "http-webhook"),
    ]


def _deployment(name: str, version: str) -> Object:
    flags = ["--watch-all-namespaces=true", "--log-level=info", "--log-encoding=json", "--enable-leader-election"]
    ports = [{"name": "http-prom", "containerPort": 8080}, {"name": "healthz", "containerPort": 9440}]
    if name == "notification-controller":
        ports += [{"name": "http", "containerPort": 9090}, {"name": "http-webhook", "containerPort": 9292}]
    else:
        flags += [EVENTS, REQUEUE]
    if name == "source-controller":
        flags += ["--storage-path=/data", f"--storage-adv-addr={STORAGE}"]
        ports.append({"name": "http", "containerPort": 9090})
    container = {
        "name": "manager",
        "image": f"ghcr.io/fluxcd/{name}:{version}",
        "args": flags,
        "env": [{"name": "RUNTIME_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "ports": [{**port, "protocol": "TCP"} for port in ports],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "healthz"}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "healthz"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "temp", "mountPath": "/tmp"}],  # noqa: S108 - of a container
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    pod = {
        "serviceAccountName": name,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"fsGroup": 1337},
        "containers": [container],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "temp", "emptyDir": {}}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "strategy": {"type": "Recreate"}, "template": template}
    deployment = _object("apps/v1", "Deployment", name, spec=spec)
    deployment["metadata"]["labels"] = {"app.kubernetes.io/component": name}
    return deployment
