"""A tenant on a hub: a user who has the shipped role for tenants in one namespace, and no other permission."""

from __future__ import annotations

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import DEFAULT_GROUP
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import Forbidden

from .manifests import manifest

RBAC = "rbac.authorization.k8s.io"
TENANT = "tenant"


def tenant_of(hub: Access, namespace: str, group: str = DEFAULT_GROUP, user: str = TENANT) -> Kube:
    """The connection of a tenant of this namespace, for orders of this API group."""
    role = manifest("tenant_cluster_role")
    name = role["metadata"]["name"] if group == DEFAULT_GROUP else f"{role['metadata']['name']}.{group}"
    rules = [rule | {"apiGroups": [group if it == DEFAULT_GROUP else it for it in rule["apiGroups"]]} for rule in role["rules"]]
    binding = manifest("tenant/role_binding")
    hub.kube.apply(role | {"metadata": {"name": name}, "rules": rules}, force=True)
    hub.kube.apply(
        binding
        | {
            "metadata": {"name": f"{name}-{user}", "namespace": namespace},
            "roleRef": binding["roleRef"] | {"name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        },
        force=True,
    )
    tenant = connect_as(hub, user)

    def is_known() -> bool:
        try:
            tenant.list_all(f"{group}/v1alpha1", "ClusterOrder", namespace)
        except Forbidden:
            return False
        return True

    until(is_known, f"the server knows the permissions of {user}")
    return tenant


def connect_as(hub: Access, user: str, *groups: str) -> Kube:
    return Kube.connect(
        {"kubeconfig": str(hub.kubeconfig), "impersonate_user": user, "impersonate_groups": [*groups, "system:authenticated"]}
    )
