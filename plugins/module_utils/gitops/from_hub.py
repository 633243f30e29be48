# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Flux of the hub for a cluster that has none: its objects are in the working namespace, and reach the cluster by a kubeconfig.

For clusters without an outbound network. Every object has the labels of the order, and one by which those that are no longer wanted are
found. When the cluster itself is deleted, Flux is suspended: its finalizers would wait for a cluster that is gone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..common.types import Object
from ..infrastructure.part_state import PartState
from ..kube.client import Kube
from ..kube.errors import NotFound
from ..providers.base import NotReadyYet, Provider
from ..providers.model import ObservedCluster
from .kinds import HELM, KUSTOMIZE, NOTIFICATION, SOURCE
from .objects import KUBECONFIG, kubeconfig_secret, sync_objects
from .observe import OURS
from .profiles.render import render
from .request import GitOpsRequest

SET = "gitops"
APPLIERS = ((HELM, "HelmRelease"), (KUSTOMIZE, "Kustomization"))  # they have finalizers that reach the cluster
OTHERS = (
    *((SOURCE, kind) for kind in ("GitRepository", "HelmRepository", "OCIRepository")),
    *((NOTIFICATION, kind) for kind in ("Alert", "Provider")),
    ("v1", "Secret"),
)


def apply_from_hub(provider: Provider, cluster: ObservedCluster, request: GitOpsRequest) -> PartState:
    """Apply everything, and delete what is no longer wanted. NotReadyYet where the hub has no Flux, or the cluster no kubeconfig."""
    kube, namespace = provider.ref.kube, provider.ref.namespace
    for api_version, kind in APPLIERS:
        if not kube.serves(api_version, kind):
            raise NotReadyYet(f"The hub does not serve {kind} of {api_version}: install Flux on the hub, which applies for its clusters.")
    items = [*sync_objects(request, namespace, from_hub=True), *render(request.lock, namespace=namespace, kubeconfig=KUBECONFIG)]
    wanted = [_owned(provider, item) for item in [_access(provider, cluster), *items]]
    provider.changes += provider.writer.apply(wanted)
    names = {_address(item) for item in wanted}
    provider.changes += provider.writer.delete(item for item in _present(kube, namespace) if _address(item) not in names)
    return PartState(True, "Applied", "Flux of the hub")


def remove_from_hub(provider: Provider, *, with_cluster: bool) -> PartState:
    """Delete the objects; ready once nothing is left. `with_cluster`: the cluster is deleted too, so nothing in it is."""
    kube, writer, namespace = provider.ref.kube, provider.writer, provider.ref.namespace
    appliers = _present(kube, namespace, APPLIERS)
    if with_cluster:
        provider.changes += [writer.patch(item, lambda _present: {"spec": {"suspend": True}}) for item in appliers]
    provider.changes += writer.delete(appliers)
    if not provider.ref.check_mode and (left := _present(kube, namespace, APPLIERS)):
        item = left[0]
        return PartState(False, "Removing", f"{item['kind']} {item['metadata']['name']}: Flux of the hub runs its finalizer")
    others = _present(kube, namespace, OTHERS)
    provider.changes += writer.delete(others)
    return PartState(True, "Removed")


def objects_of_hub(kube: Kube, namespace: str) -> list[Object]:
    """What Flux of the hub applies to the cluster of this working namespace: releases and Kustomizations."""
    return _present(kube, namespace, APPLIERS)


def _access(provider: Provider, cluster: ObservedCluster) -> Object:
    """The kubeconfig for the hub's Flux. Its provider has checked that it runs no command, and an address that a tenant has named."""
    return kubeconfig_secret(json.dumps(provider.kubeconfig(cluster).content, sort_keys=True), provider.ref.namespace)


def _owned(provider: Provider, item: Object) -> Object:
    labels = (item["metadata"].get("labels") or {}) | dict(provider.ref.labels) | {OURS: SET}
    return item | {"metadata": item["metadata"] | {"labels": labels}}


def _present(kube: Kube, namespace: str, kinds: Iterable[tuple[str, str]] = (*APPLIERS, *OTHERS)) -> list[Object]:
    found: list[Object] = []
    for api_version, kind in kinds:
        try:
            found += kube.list_all(api_version, kind, namespace, label_selector=f"{OURS}={SET}")
        except NotFound:  # the hub does not serve the kind
            continue
    return found


def _address(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]
