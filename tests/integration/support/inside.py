"""Clusters whose own API server is that of the hub: what is applied inside of them is real, and no further server starts."""

from __future__ import annotations

import base64
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

HYPERSHIFT = "hypershift.openshift.io/v1beta1"


def serve_by_hub(hub: Access, name: str, namespace: str) -> None:
    """Give a HostedCluster without processes the kubeconfig of the hub, once the stand-in has written the one that leads nowhere."""
    secret = ("v1", "Secret", f"{name}-admin-kubeconfig", namespace)

    def has_kubeconfig() -> bool:
        cluster = hub.kube.find(HYPERSHIFT, "HostedCluster", name, namespace) or {}
        return "kubeconfig" in (cluster.get("status") or {}) and hub.kube.find(*secret) is not None

    until(has_kubeconfig, f"{name} has a kubeconfig")
    content = base64.b64encode(hub.kubeconfig.read_bytes()).decode()
    hub.kube.patch(hub.kube.get(*secret), {"data": {"kubeconfig": content}}, checked=False)


def open_crd(group: str, version: str, kind: str, plural: str, *, namespaced: bool = True) -> Object:
    """The definition of a kind of another project, with any fields."""
    schema: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
