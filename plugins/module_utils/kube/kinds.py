# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kinds whose resource names need no discovery request, and the order to apply objects in. It sends nothing.

The kinds of Kubernetes itself are here. A package that owns further kinds registers them when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..common.types import Object

RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Resource:
    """A kind as it is in the path of a request."""

    plural: str
    namespaced: bool = True


Key = tuple[str, str]  # API group and kind; kinds of several groups share a name

BUILT_IN: dict[Key, Resource] = {
    ("", "ConfigMap"): Resource("configmaps"),
    ("", "Event"): Resource("events"),
    ("", "Namespace"): Resource("namespaces", namespaced=False),
    ("", "Node"): Resource("nodes", namespaced=False),
    ("", "Secret"): Resource("secrets"),
    ("", "ServiceAccount"): Resource("serviceaccounts"),
    ("coordination.k8s.io", "Lease"): Resource("leases"),
    (RBAC, "ClusterRole"): Resource("clusterroles", namespaced=False),
    (RBAC, "RoleBinding"): Resource("rolebindings"),
}
# Objects of an earlier stage are applied first. A kind without a stage comes after these three.
_stages: dict[Key, int] = {
    ("", "Namespace"): 0,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): 0,
    ("", "ServiceAccount"): 1,
    ("", "Secret"): 1,
    ("", "ConfigMap"): 1,
    (RBAC, "Role"): 2,
    (RBAC, "ClusterRole"): 2,
    (RBAC, "RoleBinding"): 2,
    (RBAC, "ClusterRoleBinding"): 2,
}
LAST_STAGE = 3
_registered = dict(BUILT_IN)


def register(group: str, kind: str, plural: str, *, namespaced: bool = True, after: str = "") -> None:
    """Make a kind known. `after` names a kind of the same group whose objects are applied first."""
    _registered[group, kind] = Resource(plural, namespaced)
    if after:
        _stages[group, kind] = _stages.get((group, after), LAST_STAGE) + 1


def known_resource(api_version: str, kind: str) -> Resource | None:
    return _registered.get(_key(api_version, kind))


def registered_kinds() -> dict[Key, Resource]:
    """Those of Kubernetes, and those of the packages that are imported."""
    return dict(_registered)


def in_apply_order(items: Iterable[Object]) -> list[list[Object]]:
    """The objects in groups: those of one group can be written at once, each group needs the ones before it."""
    groups: dict[int, list[Object]] = {}
    for item in items:
        groups.setdefault(_stages.get(_key(item["apiVersion"], item["kind"]), LAST_STAGE), []).append(item)
    return [groups[stage] for stage in sorted(groups)]


def _key(api_version: str, kind: str) -> Key:
    return api_version.rpartition("/")[0], kind
