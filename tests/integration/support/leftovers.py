"""Finds what tests leave on a hub that they share: tests run in any order, so each must find it as the first one did."""

from __future__ import annotations

import os

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

# What one test could meet of another. Objects in a namespace of the test's own go with it, and Leases are kept by
# design.
CLUSTER_SCOPED = [
    ("v1", "Namespace"),
    ("v1", "PersistentVolume"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
]
IN_SHARED_NAMESPACES = [("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "ServiceAccount")]
SHARED_NAMESPACES = ("default", "kube-system", "openfleet-system")
OWN = f"test-{os.getpid()}-"  # in the name of a test's namespace, and of what is named after it: no other test meets that
# The first test with orders of OSAC's API group creates both.
KEPT = {"ClusterRole /openfleet-clusters-tenant.osac.openshift.io", "CustomResourceDefinition /clusterorders.osac.openshift.io"}
# What Kubernetes itself creates in each namespace, some time after the namespace.
KEPT |= {f"ConfigMap {namespace}/kube-root-ca.crt" for namespace in SHARED_NAMESPACES}
KEPT |= {f"ServiceAccount {namespace}/default" for namespace in SHARED_NAMESPACES}


class Leftovers:
    """Knows what a hub had at first."""

    def __init__(self, hub: Access) -> None:
        self._hub = hub
        self._known = self._census()

    def new(self) -> list[str]:
        """What was left since the last call; what is being deleted is not."""
        now = self._census()
        left = sorted(now - self._known - KEPT)
        self._known |= now
        return left

    def _census(self) -> set[str]:
        kube = self._hub.kube
        kinds = [(*kind, None) for kind in CLUSTER_SCOPED]
        kinds += [(*kind, namespace) for namespace in SHARED_NAMESPACES for kind in IN_SHARED_NAMESPACES]
        return {
            _called(kind, item) for version, kind, namespace in kinds for item in kube.list_all(version, kind, namespace) if _stays(item)
        }


def _stays(item: Object) -> bool:
    return "deletionTimestamp" not in item["metadata"] and OWN not in item["metadata"]["name"]


def _called(kind: str, item: Object) -> str:
    return f"{kind} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
