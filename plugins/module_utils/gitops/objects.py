# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects that make Flux follow a git repository and report to the engine. Pure; it sends nothing."""

from __future__ import annotations

import base64
from typing import Any

from ..common.types import Object
from .flux_manifests import FluxManifests
from .kinds import KUSTOMIZE, NAME, NAMESPACE, NOTIFICATION, SOURCE
from .request import GitOpsRequest, GitSource, Notifications

SOURCE_INTERVAL, SYNC_INTERVAL, RETRY_INTERVAL, TIMEOUT = "1m", "10m", "1m", "5m"
REPORTS = "openfleet"  # the Provider, the Alert and their Secrets
REPORTED_KINDS = ("GitRepository", "HelmRelease", "HelmRepository", "Kustomization", "OCIRepository")
KUBECONFIG = {"name": "gitops-kubeconfig", "key": "value"}  # the Secret by which Flux of the hub reaches the cluster
VERSION, DIGEST, CONTROLLERS = (f"openfleet.clusters/flux-{word}" for word in ("version", "digest", "controllers"))


def controller_objects(manifests: FluxManifests) -> list[Object]:
    """Flux's controllers. Their namespace says which version they are, and which of them there have to be."""
    names = sorted(item["metadata"]["name"] for item in manifests.controllers if item["kind"] == "Deployment")
    notes = {VERSION: manifests.version, DIGEST: manifests.digest, CONTROLLERS: ",".join(names)}
    others = [item for item in manifests.controllers if item["kind"] != "Namespace"]
    given = next((item for item in manifests.controllers if item["kind"] == "Namespace"), _object("v1", "Namespace", NAMESPACE))
    metadata = given["metadata"]
    return [given | {"metadata": metadata | {"annotations": (metadata.get("annotations") or {}) | notes}}, *others]


def sync_objects(request: GitOpsRequest, namespace: str = NAMESPACE, *, from_hub: bool = False) -> list[Object]:
    """The source with its Secret, what is applied of it, and the notifications."""
    items: list[Object] = []
    if request.source:
        items += [
            _repository(request.source, namespace, has_secret=bool(request.secret)),
            _kustomization(request.source, namespace, from_hub),
        ]
        if request.secret:
            items.append(_secret(NAME, namespace, dict(request.secret)))
    if request.notifications:
        items += _notification_objects(request.notifications, namespace)
    return items


def kubeconfig_secret(content: str, namespace: str) -> Object:
    """The access of the hub's Flux to the cluster."""
    return _secret(KUBECONFIG["name"], namespace, {KUBECONFIG["key"]: _encoded(content)})


def _repository(source: GitSource, namespace: str, *, has_secret: bool) -> Object:
    spec: Object = {"interval": SOURCE_INTERVAL, "timeout": "60s", "url": source.url, "ref": dict(source.ref)}
    if has_secret:
        spec["secretRef"] = {"name": NAME}
    return _object(SOURCE, "GitRepository", NAME, namespace, spec=spec)


def _kustomization(source: GitSource, namespace: str, from_hub: bool) -> Object:
    spec: Object = {
        "interval": SYNC_INTERVAL,
        "retryInterval": RETRY_INTERVAL,
        "timeout": TIMEOUT,
        "path": source.path,
        "prune": True,
        "wait": True,  # Ready means that what was applied works
        "sourceRef": {"kind": "GitRepository", "name": NAME},
    }
    if from_hub:
        spec["kubeConfig"] = {"secretRef": dict(KUBECONFIG)}
    return _object(KUSTOMIZE, "Kustomization", NAME, namespace, spec=spec)


def _notification_objects(notifications: Notifications, namespace: str) -> list[Object]:
    provider: Object = {"type": "generic-hmac", "address": notifications.address, "secretRef": {"name": REPORTS}}
    items = [_secret(REPORTS, namespace, {"token": _encoded(notifications.key)})]
    if notifications.ca:
        provider["certSecretRef"] = {"name": f"{REPORTS}-ca"}
        items.append(_secret(f"{REPORTS}-ca", namespace, {"ca.crt": _encoded(notifications.ca)}))
    alert = {
        "providerRef": {"name": REPORTS},
        "eventSeverity": "info",
        "eventSources": [{"kind": kind, "name": "*"} for kind in REPORTED_KINDS],
    }
    return [
        *items,
        _object(NOTIFICATION, "Provider", REPORTS, namespace, spec=provider),
        _object(NOTIFICATION, "Alert", REPORTS, namespace, spec=alert),
    ]


def _secret(name: str, namespace: str, data: dict[str, str]) -> Object:
    return _object("v1", "Secret", name, namespace, type="Opaque", data=data)


def _object(api_version: str, kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
