# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The topology of a Cluster API Cluster: its machine deployments, and what other writers have added to it. Pure; it sends nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...common.types import Object
from ...kube.client import FIELD_MANAGER
from ..base import ClusterRef
from ..model import NodeRequest
from ..objects import node_set_name, resource_class_of


def topology_of(cluster: Object) -> Object:
    return (cluster.get("spec") or {}).get("topology") or {}


def entries_of(cluster: Object) -> list[Object]:
    return (topology_of(cluster).get("workers") or {}).get("machineDeployments") or []


def class_of_entry(entry: Object, class_label: str) -> str:
    return resource_class_of({"metadata": entry.get("metadata") or {}}, class_label)


def worker_entry(ref: ClusterRef, item: NodeRequest, worker_class: str) -> Object:
    """The nodes of one class in a topology; the label distinguishes them from an entry of another writer."""
    return {
        "name": node_set_name(item.resource_class),
        "class": worker_class,
        "replicas": item.number_of_nodes,
        "metadata": {"labels": {ref.class_label: item.resource_class}},
    }


def with_foreign_entries(wanted: Object, present: Object) -> Object:
    """The wanted Cluster with the entries that other writers have added to its lists: only to compare it with the present one."""
    topology, existing = wanted["spec"].get("topology"), topology_of(present)
    if not topology or not existing:
        return wanted
    owned = _owned_fields(present).get("f:spec", {}).get("f:topology", {})
    workers = _merged(
        (topology.get("workers") or {}).get("machineDeployments") or [],
        entries_of(present),
        owned.get("f:workers", {}).get("f:machineDeployments", {}),
    )
    variables = _merged(topology.get("variables") or [], existing.get("variables") or [], owned.get("f:variables", {}))
    merged = {
        **topology,
        **({"workers": {"machineDeployments": workers}} if workers else {}),
        **({"variables": variables} if variables else {}),
    }
    return {**wanted, "spec": {**wanted["spec"], "topology": merged}}


def _merged(wanted: Sequence[Object], present: Sequence[Object], owned: Mapping[str, Any]) -> list[Object]:
    """Both lists by name, in the present order. Of entries that are not wanted, those of other writers stay."""
    by_name = {item["name"]: item for item in wanted}
    names = {item["name"] for item in present}
    ours = {json.loads(key[2:])["name"] for key in owned if key.startswith("k:")}
    merged = [by_name.get(item["name"], item) for item in present if item["name"] in by_name or item["name"] not in ours]
    return [*merged, *(item for item in wanted if item["name"] not in names)]


def _owned_fields(item: Object) -> Mapping[str, Any]:
    entries = item["metadata"].get("managedFields") or []
    return next((each["fieldsV1"] for each in entries if (each["manager"], each["operation"]) == (FIELD_MANAGER, "Apply")), {})
