"""A hub with DRPolicies, under Ramen's CRDs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.upstream import ramen_crds

KINDS = ("DRPolicy", "DRCluster")


@contextlib.contextmanager
def policies(hub: Access) -> Iterator[None]:
    """The policy `metro` of the clusters dr1 and dr2, and the policy `broken` with one that is not there."""
    crds = [crd for crd in ramen_crds() if crd["spec"]["names"]["kind"] in KINDS]
    for crd in crds:
        hub.install_crd(crd)
    try:
        for name, region in (("dr1", "north"), ("dr2", "south")):
            _apply(hub, "DRCluster", name, {"region": region, "s3ProfileName": "none"})
        for name, members in (("metro", ["dr1", "dr2"]), ("broken", ["dr1", "dr3"])):
            _apply(hub, "DRPolicy", name, {"drClusters": members, "schedulingInterval": "5m"})
        yield
    finally:
        for crd in crds:
            hub.kubectl("delete", "crd", crd["metadata"]["name"])


def _apply(hub: Access, kind: str, name: str, spec: dict[str, Any]) -> None:
    hub.apply({"apiVersion": "ramendr.openshift.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
