"""A hub with DRPolicies, under Ramen's CRDs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.upstream import ramen_crds
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.client import Kube
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.errors import NotFound
from ansible_collections.openfleet.clusters.plugins.module_utils.registry.model import API_VERSION

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
KINDS = ("DRPolicy", "DRCluster")


@contextlib.contextmanager
def policies(hub: Access) -> Iterator[None]:
    """The policy `metro` of the clusters dr1 and dr2, and the policy `broken` with a cluster that does not exist."""
    kube = hub.kube
    crds = [kube.apply(crd, force=True) for crd in ramen_crds() if crd["spec"]["names"]["kind"] in KINDS]
    try:
        for kind in KINDS:
            until(lambda kind=kind: _is_served(kube, kind), f"{kind} is served")  # type: ignore[misc]
        for name, region in (("dr1", "north"), ("dr2", "south")):
            _apply(kube, "DRCluster", name, {"region": region, "s3ProfileName": "none"})
        for name, members in (("metro", ["dr1", "dr2"]), ("broken", ["dr1", "dr3"])):
            _apply(kube, "DRPolicy", name, {"drClusters": members, "schedulingInterval": "5m"})
        yield
    finally:
        for crd in crds:
            kube.delete(crd)
        for crd in crds:
            until(lambda name=crd["metadata"]["name"]: kube.find(*CRD, name) is None, "the CRD is deleted")  # type: ignore[misc]
        for kind in KINDS:
            until(lambda kind=kind: not _is_served(kube, kind), f"{kind} is not served")  # type: ignore[misc]


def _is_served(kube: Kube, kind: str) -> bool:
    try:
        kube.list_all(API_VERSION, kind)
    except NotFound:
        return False
    return True


def _apply(kube: Kube, kind: str, name: str, spec: dict[str, Any]) -> None:
    kube.apply({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}, force=True)
