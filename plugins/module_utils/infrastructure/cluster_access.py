# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who may do what in a new cluster: groups, bindings of cluster roles, and an account for its administrator. Pure; it sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..common.types import Object
from ..kube.errors import Invalid

RESOURCE_SET = "access"
ADMIN_NAMESPACE = "kube-system"
RBAC = "rbac.authorization.k8s.io"
PREFIX = "openfleet"


def access_objects(groups: Sequence[Mapping[str, Any]], bindings: Sequence[Mapping[str, Any]], admin_account: str) -> list[Object]:
    """The objects of the set. Bindings of one role in one namespace are one object."""
    objects: list[Object] = [
        {"apiVersion": "user.openshift.io/v1", "kind": "Group", "metadata": {"name": group["name"]}, "users": list(group["users"] or [])}
        for group in groups
    ]
    if admin_account:
        subject = {"kind": "ServiceAccount", "name": admin_account, "namespace": ADMIN_NAMESPACE}
        objects.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": admin_account, "namespace": ADMIN_NAMESPACE}})
        objects.append(_binding(f"{PREFIX}-account-{admin_account}", "", "cluster-admin", [subject]))
    subjects: dict[tuple[str, str], list[Object]] = {}
    for number, binding in enumerate(bindings, 1):
        named = [("Group", name) for name in binding["groups"] or []] + [("User", name) for name in binding["users"] or []]
        if not named:
            raise Invalid(f"Binding {number} of the role {binding['role']} has no groups and no users: give one of them.", ["bindings"])
        known = subjects.setdefault((binding["namespace"] or "", binding["role"]), [])
        new = [{"apiGroup": RBAC, "kind": kind, "name": name} for kind, name in named]
        known += [subject for subject in new if subject not in known]
    return objects + [_binding(f"{PREFIX}-{role}", namespace, role, found) for (namespace, role), found in subjects.items()]


def _binding(name: str, namespace: str, role: str, subjects: Sequence[Object]) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }
