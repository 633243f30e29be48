"""A hub with DRPolicies, under Ramen's own CRDs where these are to be had, and otherwise under open ones that stand in for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access
from ansible_collections.openfleet.clusters.extensions.sandbox.crds import load_crd
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import UPSTREAM

GROUP = "ramendr.openshift.io"
KINDS = {"drpolicies": "DRPolicy", "drclusters": "DRCluster"}


@contextlib.contextmanager
def policies(hub: Access) -> Iterator[None]:
    """The policy `metro` of the clusters dr1 and dr2, and the policy `broken` with one that is not there."""
    crds = [_crd(plural, kind) for plural, kind in KINDS.items()]
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
    hub.apply({"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})


def _crd(plural: str, kind: str) -> dict[str, Any]:
    own = UPSTREAM / "ramen" / f"{plural}.yaml"
    if own.is_file():
        return load_crd(own)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    }
