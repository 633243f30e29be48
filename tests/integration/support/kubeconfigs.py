"""Kubeconfigs for tests of registered clusters: with other credentials, other addresses, and accounts of their own."""

from __future__ import annotations

import base64
import json
from typing import Any

import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import CONNECTIONS, TRIES, Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.transport import Transport

RBAC = "rbac.authorization.k8s.io"


def kubeconfig(access: Access) -> Object:
    content: Object = yaml.safe_load(access.kubeconfig.read_text())
    return content


def with_user(access: Access, **user: Any) -> Object:
    """The kubeconfig with other credentials."""
    content = kubeconfig(access)
    content["users"][0]["user"] = user
    return content


def with_server(access: Access, server: str) -> Object:
    """The kubeconfig with another address."""
    content = kubeconfig(access)
    content["clusters"][0]["cluster"]["server"] = server
    return content


def put_kubeconfig(kube: Kube, namespace: str, name: str, content: Any) -> None:
    """Create or update the Secret `name`."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    data = {"kubeconfig": base64.b64encode(text).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}
    kube.apply(secret, force=True)


def create_account(kube: Kube, namespace: str, name: str, role: str = "view") -> None:
    """Create a service account, with a role in the whole cluster that is in force."""
    kube.create(service_account(namespace, name))
    if role:
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{namespace}-{name}"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
        }
        kube.create(binding)
        until_granted(kube, namespace, name, kube.get(f"{RBAC}/v1", "ClusterRole", role))


def until_granted(kube: Kube, namespace: str, name: str, role: Object, where: str = "") -> None:
    """Wait until the server knows that the service account has the role, in one namespace or everywhere: at first it refuses requests."""
    rule, user = role["rules"][0], f"system:serviceaccount:{namespace}:{name}"
    attributes = {"group": rule["apiGroups"][0], "resource": rule["resources"][0], "verb": rule["verbs"][0], "namespace": where}
    spec = {"user": user, "resourceAttributes": attributes}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
    until(lambda: kube.create(review)["status"]["allowed"], f"the server knows the permissions of {name}")


def service_account(namespace: str, name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def create_token(kube: Kube, namespace: str, name: str, hours: int = 720) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": hours * 3600}}
    answer = Transport(kube.target, None, TRIES, CONNECTIONS).json("POST", path, f"token for {name}", body=request)
    return str(answer["status"]["token"])
