# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of Flux for the profiles of a lock file. A pure function: the same lock gives the same objects.

Flux starts a release when those that it depends on are Ready for their current generation. That is not enough for an upgrade: objects are
written at the same time, and a release could be upgraded in the moment before the one below it has its new spec. So each dependency also
demands the revision of the release below, which is a hash of that release and of all below it. The name of an OCIRepository ends with its
digest for the same reason: a release has another generation whenever it has another chart.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from ...common.types import Object
from ...kube.kinds import register
from .lock_file import LockedProfile, LockedRepository, ProfilesLock

HELM_GROUP, SOURCE_GROUP = "helm.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"
HELM_API, SOURCE_API = f"{HELM_GROUP}/v2", f"{SOURCE_GROUP}/v1"
HELM_RELEASE, HELM_REPOSITORY, OCI_REPOSITORY = "HelmRelease", "HelmRepository", "OCIRepository"
NAMESPACE = "flux-system"
LAYER_LABEL, REVISION_LABEL = "openfleet.clusters/layer", "openfleet.clusters/profile-revision"
CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
RETRY_INTERVAL = "1m"
REQUEST = "reconcile.fluxcd.io/requestedAt"  # with another value Flux reconciles at once

register(HELM_GROUP, HELM_RELEASE, "helmreleases")
register(SOURCE_GROUP, HELM_REPOSITORY, "helmrepositories")
register(SOURCE_GROUP, OCI_REPOSITORY, "ocirepositories")


def render(
    lock: ProfilesLock, interval: str = "10m", namespace: str = NAMESPACE, kubeconfig: Mapping[str, str] | None = None
) -> list[Object]:
    """Repositories first, then releases from the lowest layer to the highest.

    With `kubeconfig`, the name and the key of a Secret in the namespace, Flux runs on the hub and installs the releases from there.
    """
    used = {item.repository for item in lock.profiles}
    objects: list[Object] = []
    for name, repository in sorted(lock.repositories.items()):
        if name in used:
            objects += _certificates(name, repository, namespace)
            if not repository.is_oci:
                objects.append(_helm_repository(name, repository, lock, interval, namespace))
    for item in lock.profiles:
        repository = lock.repositories[item.repository]
        if repository.is_oci:
            objects.append(_oci_repository(item, repository, interval, namespace))
    return [*objects, *(_release(item, lock, interval, namespace, kubeconfig) for item in lock.profiles)]


def certificates_name(repository: str) -> str:
    return f"{repository}-ca"


def source_name(item: LockedProfile) -> str:
    """The name of a profile's OCIRepository."""
    return f"{item.name}-{item.digest.removeprefix('sha256:')[:10]}"


def _metadata(name: str, namespace: str, labels: Mapping[str, str] | None = None) -> Object:
    return {"name": name, "namespace": namespace} | ({"labels": dict(labels)} if labels else {})


def _certificates(name: str, repository: LockedRepository, namespace: str) -> list[Object]:
    if not repository.ca:
        return []
    metadata = _metadata(certificates_name(name), namespace)
    data = {"ca.crt": base64.b64encode(repository.ca.encode()).decode()}
    return [{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}]


def _trust(name: str, repository: LockedRepository) -> Object:
    return {"certSecretRef": {"name": certificates_name(name)}} if repository.ca else {}


def _helm_repository(name: str, repository: LockedRepository, lock: ProfilesLock, interval: str, namespace: str) -> Object:
    """Other versions of its charts ask Flux to read the index again: they may be newer than the one it has."""
    spec = {"url": repository.url, "interval": interval} | _trust(name, repository)
    charts = sorted(f"{item.chart}@{item.version}" for item in lock.profiles if item.repository == name)
    metadata = _metadata(name, namespace) | {"annotations": {REQUEST: hashlib.sha256(",".join(charts).encode()).hexdigest()[:16]}}
    return {"apiVersion": SOURCE_API, "kind": HELM_REPOSITORY, "metadata": metadata, "spec": spec}


def _oci_repository(item: LockedProfile, repository: LockedRepository, interval: str, namespace: str) -> Object:
    spec = {
        "url": f"{repository.url.rstrip('/')}/{item.chart}",
        "interval": interval,
        "ref": {"digest": item.digest},
        "layerSelector": {"mediaType": CHART_LAYER, "operation": "copy"},
    }
    spec |= _trust(item.repository, repository) | ({"insecure": True} if repository.insecure else {})
    return {"apiVersion": SOURCE_API, "kind": OCI_REPOSITORY, "metadata": _metadata(source_name(item), namespace), "spec": spec}


def _release(item: LockedProfile, lock: ProfilesLock, interval: str, namespace: str, kubeconfig: Mapping[str, str] | None) -> Object:
    retry = {"name": "RetryOnFailure", "retryInterval": RETRY_INTERVAL}
    spec: Object = {
        "interval": interval,
        "releaseName": item.name,
        "targetNamespace": item.namespace or item.name,
        "install": {"createNamespace": True, "crds": "CreateReplace", "strategy": retry},
        "upgrade": {"crds": "CreateReplace", "strategy": dict(retry)},
    }
    if lock.repositories[item.repository].is_oci:
        spec["chartRef"] = {"kind": OCI_REPOSITORY, "name": source_name(item)}
    else:
        source = {"kind": HELM_REPOSITORY, "name": item.repository}
        spec["chart"] = {"spec": {"chart": item.chart, "version": item.version, "sourceRef": source, "interval": interval}}
    if item.dependsOn:
        spec["dependsOn"] = [{"name": name, "readyExpr": _ready_at(lock.revisions[name])} for name in item.dependsOn]
    if item.values:
        spec["values"] = dict(item.values)
    if kubeconfig:
        # Helm keeps its records in the cluster. Without this they would be in the namespace of the hub, which the
        # cluster has not.
        spec |= {"kubeConfig": {"secretRef": dict(kubeconfig)}, "storageNamespace": spec["targetNamespace"]}
    labels = {LAYER_LABEL: str(item.layer), REVISION_LABEL: lock.revisions[item.name]}
    return {"apiVersion": HELM_API, "kind": HELM_RELEASE, "metadata": _metadata(item.name, namespace, labels), "spec": spec}


def _ready_at(revision: str) -> str:
    """An expression of CEL that replaces Flux's own check of a dependency, with that check in it."""
    return (
        f"has(dep.metadata.labels) && '{REVISION_LABEL}' in dep.metadata.labels && dep.metadata.labels['{REVISION_LABEL}'] == '{revision}'"
        " && has(dep.status.observedGeneration) && dep.status.observedGeneration == dep.metadata.generation"
        " && has(dep.status.conditions) && dep.status.conditions.exists(it, it.type == 'Ready' && it.status == 'True')"
    )
