"""The objects of groups, bindings and the administrator's account."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.infrastructure.cluster_access import access_objects
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Invalid


def binding(role: str, namespace: str | None = None, groups: tuple[str, ...] = (), users: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"role": role, "namespace": namespace, "groups": list(groups), "users": list(users)}


def test_bindings_of_one_role_in_one_namespace_are_one_object() -> None:
    bindings = [
        binding("view", groups=("readers",)),
        binding("view", groups=("readers",), users=("ann",)),
        binding("edit", "shop", groups=("blue",)),
        binding("view", "shop", users=("bob",)),
    ]
    everywhere, edit, view = access_objects([], bindings, "")
    assert (everywhere["kind"], everywhere["metadata"]) == ("ClusterRoleBinding", {"name": "openfleet-view"})
    assert [(subject["kind"], subject["name"]) for subject in everywhere["subjects"]] == [("Group", "readers"), ("User", "ann")]
    assert (edit["kind"], edit["metadata"]) == ("RoleBinding", {"name": "openfleet-edit", "namespace": "shop"})
    assert edit["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    assert view["metadata"] == {"name": "openfleet-view", "namespace": "shop"}


def test_administrator_has_an_account_without_a_stored_token() -> None:
    group, account, admin = access_objects([{"name": "blue", "users": ["ann"]}], [], "robot")
    assert (group["kind"], group["users"]) == ("Group", ["ann"])
    assert account["metadata"] == {"name": "robot", "namespace": "kube-system"}
    assert (admin["metadata"]["name"], admin["roleRef"]["name"]) == ("openfleet-account-robot", "cluster-admin")
    assert admin["subjects"] == [{"kind": "ServiceAccount", "name": "robot", "namespace": "kube-system"}]


def test_a_binding_without_a_subject_is_refused() -> None:
    with pytest.raises(Invalid, match="Binding 1 of the role view has no groups and no users: give one of them"):
        access_objects([], [binding("view")], "")
