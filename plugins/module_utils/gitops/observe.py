# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads Flux's objects of one cluster, within a deadline and a limit on what is read. It decides nothing and writes nothing.

Where Flux of the hub applies, the objects are in the working namespace of the order. Such an order has no condition GitOpsInstalled.
"""

from __future__ import annotations

from collections.abc import Collection

from ..common.types import Object
from ..kube.client import Kube
from ..kube.connections import Limits
from ..kube.errors import NotFound
from ..providers.base import Provider
from ..providers.model import ConditionState, ObservedCluster
from .condition_types import INSTALLED, PROFILES_READY, SOURCE_READY, SYNCED
from .conditions import ObservedGitOps, gitops_conditions
from .kinds import HELM, KUSTOMIZE, NAME, NAMESPACE, SOURCE
from .objects import CONTROLLERS
from .profiles.lock_file import ProfilesLock

# Of one observation. A tenant administers the cluster, and may have anything in it.
LIMITS = Limits(response_bytes=2**22, total_bytes=2**23, total_seconds=10.0)
OURS = "openfleet.clusters/resource-set"  # the label of what this collection has created


def observe_conditions(
    provider: Provider, cluster: ObservedCluster, used: Collection[str], lock: ProfilesLock, *, is_applied: bool = True
) -> dict[str, ConditionState]:
    """The conditions that are used, as Flux's objects show them now. `is_applied`: a run has applied the profiles of the lock."""
    if INSTALLED in used:
        observed = read(provider.connect(cluster, LIMITS), used, NAMESPACE)
    else:
        observed = read(provider.ref.kube, used, provider.ref.namespace)
    return gitops_conditions(used, observed, lock, is_applied=is_applied)


def read(kube: Kube, used: Collection[str], namespace: str) -> ObservedGitOps:
    """The objects that the conditions need, by one request each."""
    return ObservedGitOps(
        controllers=_controllers(kube) if INSTALLED in used else (),
        deployments=_listed(kube, "apps/v1", "Deployment", namespace) if INSTALLED in used else (),
        source=kube.find(SOURCE, "GitRepository", NAME, namespace) if SOURCE_READY in used else None,
        sync=kube.find(KUSTOMIZE, "Kustomization", NAME, namespace) if SYNCED in used else None,
        releases=_listed(kube, HELM, "HelmRelease", namespace) if PROFILES_READY in used else (),
    )


def _controllers(kube: Kube) -> tuple[str, ...]:
    """The names that the installation has noted on Flux's namespace."""
    metadata = (kube.find("v1", "Namespace", NAMESPACE) or {}).get("metadata") or {}
    names = str((metadata.get("annotations") or {}).get(CONTROLLERS) or "")
    return tuple(name for name in names.split(",") if name)


def _listed(kube: Kube, api_version: str, kind: str, namespace: str) -> list[Object]:
    try:
        return kube.list_all(api_version, kind, namespace, label_selector=OURS)
    except NotFound:  # the cluster does not serve the kind, or not yet
        return []
