"""The fleet page for the hub of a sandbox, with an account of a tenant whose token users log in with: for `make serve`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import yaml

from ...plugins.module_utils.common.argument_specs import DEFAULT_GROUP
from ...plugins.module_utils.common.types import Object
from ..sandbox.access import Access, until
from ..sandbox.sandbox import Sandbox
from ..sandbox.screen import stage
from .fleet_home import MANIFESTS, RBAC, FleetApi
from .setup import VENV

NAMESPACE, ACCOUNT = "orders", "tenant"
START_SECONDS = 60


@contextlib.contextmanager
def running_page(sandbox: Sandbox) -> Iterator[str]:
    """The address of the page, until the end of the block."""
    access, api = Access(sandbox.kubeconfig()), FleetApi(sandbox.state / "page")
    with stage("Page for the orders of the hub"):
        access.apply(*_tenant())
        api.start(access.kubeconfig, single_hub={"collections_paths": [str(VENV / "collections")]})
        until(api.is_ready, "the page is served", START_SECONDS)
    try:
        yield api.address
    finally:
        api.stop()


def _tenant() -> list[Object]:
    """The shipped role for tenants, and the permission for kubeconfigs, for an account in a namespace."""
    role: Object = yaml.safe_load((MANIFESTS / "tenant_cluster_role.yaml").read_text(encoding="utf-8"))
    role["rules"].append({"apiGroups": [DEFAULT_GROUP], "resources": ["clusterorders/kubeconfig"], "verbs": ["create"]})
    metadata = {"name": ACCOUNT, "namespace": NAMESPACE}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]}
    subject = {"kind": "ServiceAccount", **metadata}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        role,
        {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": metadata, "roleRef": reference, "subjects": [subject]},
    ]
