"""Flux's manifests with its own definitions and without images, profiles, and what its controllers would write into a status."""

from __future__ import annotations

import hashlib
from pathlib import Path

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.kinds import HELM, KUSTOMIZE, SOURCE
from ansible_collections.openfleet.clusters.plugins.module_utils.gitops.profiles.lock_file import (
    LockedProfile,
    LockedRepository,
    ProfilesLock,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import Names

NAMESPACE = "flux-system"
APIS = {"GitRepository": SOURCE, "Kustomization": KUSTOMIZE, "HelmRelease": HELM}

PROFILES = ProfilesLock(
    (
        LockedProfile("base", "base", "base", "registry", "1.0.0", f"sha256:{'1' * 64}"),
        LockedProfile("web", "web", "web", "http", "1.0.0", f"sha256:{'2' * 64}", layer=1, dependsOn=("base",)),
    ),
    {"registry": LockedRepository("oci://registry.example.com/charts"), "http": LockedRepository("https://charts.example.com")},
)


def with_profiles(order: Object, lock: ProfilesLock) -> Object:
    """The order, as a run has accepted it with these profiles."""
    annotations = (order["metadata"].get("annotations") or {}) | {Names().profiles_lock_annotation: lock.to_json()}
    return order | {"metadata": order["metadata"] | {"annotations": annotations}}


def pinned(folder: Path, *objects: Object, version: str = "v2.9.5") -> Object:
    """The option `manifests` for a file with these objects."""
    text = yaml.safe_dump_all(objects)
    file = folder / f"flux-{version}.yaml"
    file.write_text(text, encoding="utf-8")
    return {"path": str(file), "sha256": hashlib.sha256(text.encode()).hexdigest(), "version": version}


def deployment(name: str, image: str = "v1.0.0") -> Object:
    container = {"name": "manager", "image": f"ghcr.io/fluxcd/{name}:{image}"}
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def report_running(cluster: Access, *names: str) -> None:
    """What the controller of Deployments reports of a new version that runs."""
    for name in names:
        item = cluster.kube.get("apps/v1", "Deployment", name, NAMESPACE)
        condition = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "up"}
        numbers = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        status = {"observedGeneration": item["metadata"]["generation"], "conditions": [condition], **numbers}
        cluster.kube.patch(item, {"status": status}, subresource="status", checked=False)


def report(
    cluster: Access, kind: str, status: str, reason: str, message: str, *, name: str = NAMESPACE, namespace: str = NAMESPACE
) -> None:
    """What the controller of the kind reports of the generation at hand."""
    item = cluster.kube.get(APIS[kind], kind, name, namespace)
    generation = item["metadata"]["generation"]
    condition = {"type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": generation}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    seen = {"observedGeneration": generation} if status == "True" else {}
    cluster.kube.patch(item, {"status": {"conditions": [condition], **seen}}, subresource="status", checked=False)
