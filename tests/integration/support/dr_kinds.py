"""The kinds of Ramen and Open Cluster Management on a hub, for the tests of one module."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import NotFound

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def view_crd_standin() -> Object:
    """A stand-in for the CRD of ManagedClusterView, which no public Go module has: its names, and any fields."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    group, plural = "view.open-cluster-management.io", "managedclusterviews"
    version = {"name": "v1beta1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "ManagedClusterView", "listKind": "ManagedClusterViewList", "plural": plural, "singular": "managedclusterview"}
    return {
        "apiVersion": CRD[0],
        "kind": CRD[1],
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


@contextlib.contextmanager
def installed(hub: Access, crds: Sequence[Object]) -> Iterator[None]:
    """The CRDs on the hub. Those that it had before stay."""
    kube = hub.kube
    added = [crd for crd in crds if kube.find(*CRD, crd["metadata"]["name"]) is None]
    for crd in added:
        kube.create(crd)
    try:
        for crd in crds:
            until(lambda crd=crd: _is_served(hub, crd), f"{crd['spec']['names']['kind']} is served")  # type: ignore[misc]
        yield
    finally:
        for crd in added:
            kube.delete(crd)
        for crd in added:
            until(lambda crd=crd: kube.find(*CRD, crd["metadata"]["name"]) is None, "the CRD is deleted")  # type: ignore[misc]
            # Or the next test could take the last answers under this CRD for the first ones under its own.
            until(lambda crd=crd: not _is_served(hub, crd), f"{crd['spec']['names']['kind']} is not served")  # type: ignore[misc]


def _is_served(hub: Access, crd: Object) -> bool:
    version = next(each["name"] for each in crd["spec"]["versions"] if each["storage"])
    try:
        hub.kube.list_all(f"{crd['spec']['group']}/{version}", crd["spec"]["names"]["kind"])
    except NotFound:
        return False
    return True
