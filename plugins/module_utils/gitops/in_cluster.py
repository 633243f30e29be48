# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Flux inside of a cluster: applied and removed in the order that lets it work. It applies what it can now, and waits for nothing.

Four sets of objects: definitions, controllers, the source, the profiles. They are removed in the order that lets the finalizers of Flux
run: first what Flux reconciles, then the definitions, with which the API server deletes what users have created of them, and the
controllers, which all of these need, last.

All of it goes to the cluster itself, whatever its provider: a service such as OpenShift Cluster Manager gets no deploy key.
"""

from __future__ import annotations

import time

from ..common.types import Object
from ..infrastructure.part_state import PartState
from ..kube.client import Kube
from ..providers import resources
from ..providers.base import NotReadyYet, Provider
from ..providers.model import ObservedCluster, ResourceSet
from .flux_manifests import FluxManifests
from .objects import controller_objects, sync_objects
from .profiles.render import render
from .request import GitOpsRequest

DEFINITIONS, CONTROLLERS, SYNC, PROFILES = "gitops-definitions", "gitops-controllers", "gitops-sync", "gitops-profiles"
REMOVAL = {
    PROFILES: "The releases of the profiles are being uninstalled",
    SYNC: "Flux is deleting what it has applied of the git repository",
    DEFINITIONS: "Objects of Flux still exist in the cluster, and its controllers run their finalizers",
    CONTROLLERS: "The namespace flux-system is being deleted",
}
SERVED_SECONDS = 10.0  # an API server serves a new kind moments after it has accepted its definition


def apply_in_cluster(provider: Provider, cluster: ObservedCluster, manifests: FluxManifests, request: GitOpsRequest) -> PartState:
    """Apply everything. NotReadyYet where the cluster does not serve Flux's kinds yet: the same call continues later."""
    _apply(provider, cluster, DEFINITIONS, list(manifests.crds))
    _apply(provider, cluster, CONTROLLERS, controller_objects(manifests))
    synced, profiles = sync_objects(request), render(request.lock)
    if (synced or profiles) and not provider.ref.check_mode:
        _wait_for_kinds(provider.connect(cluster), [*synced, *profiles])
    _apply(provider, cluster, SYNC, synced)
    _apply(provider, cluster, PROFILES, profiles)
    return PartState(True, "Applied", f"Flux {manifests.version}".strip())


def remove_from_cluster(provider: Provider, cluster: ObservedCluster) -> PartState:
    """Remove what can be removed now; ready once nothing is left."""
    state = PartState(True, "Removed")
    for name, waiting in REMOVAL.items():
        if not resources.remove(provider, provider.connect(cluster), name) and state.ready:
            state = PartState(False, "Removing", waiting)
        if not state.ready and not provider.ref.check_mode:
            break
    return state


def _apply(provider: Provider, cluster: ObservedCluster, name: str, items: list[Object]) -> None:
    """An empty set leaves nothing in the cluster, not even its inventory."""
    kube = provider.connect(cluster)
    if items:
        resources.apply(provider, kube, ResourceSet(name, items))
    else:
        resources.remove(provider, kube, name)


def _wait_for_kinds(kube: Kube, items: list[Object]) -> None:
    deadline = time.monotonic() + SERVED_SECONDS
    for api_version, kind in sorted({(item["apiVersion"], item["kind"]) for item in items if "." in item["apiVersion"]}):
        while not kube.serves(api_version, kind):
            if time.monotonic() > deadline:
                raise NotReadyYet(f"The cluster does not serve {kind} of {api_version} yet; its definition is applied.")
            time.sleep(0.1)
