"""A stand-in for MetalLB's CRDs of address pools: the fields that this collection writes, and no others."""

from __future__ import annotations

from typing import Any

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object

KINDS = ("IPAddressPool", "L2Advertisement")
_NAMES = {"type": "array", "items": {"type": "string"}}
_SPECS: dict[str, Object] = {
    "IPAddressPool": {"required": ["addresses"], "properties": {"addresses": _NAMES, "autoAssign": {"type": "boolean", "default": True}}},
    "L2Advertisement": {"properties": {"ipAddressPools": _NAMES}},
}


def stand_ins() -> list[dict[str, Any]]:
    return [_crd(kind) for kind in KINDS]


def _crd(kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", **_SPECS[kind]}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.metallb.io"},
        "spec": {
            "group": "metallb.io",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
