"""The objects that the service shows as clusters: FleetClusters of a fleet, or the ClusterOrders of a single hub in their form.

The rest of the service knows FleetClusters only. A source says what is stored instead, and converts both ways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.assigned_order import PROVISIONED, status_of
from ....plugins.module_utils.fleet.kinds import API_VERSION, CLUSTER, GROUP
from ....plugins.module_utils.fleet.model import ClusterAssignment, NodeSet, node_sets_of, nodes_by_class
from ....plugins.module_utils.orders.model import ClusterOrder, Names
from ..problems import invalid

ONLY_OF_FLEETS = ("placement", "priority", "expiresAt")


class ClusterSource(Protocol):
    """What is stored. `resource` and `group` are those that permissions are about."""

    api_version: str
    kind: str
    group: str
    resource: str

    def shown(self, stored: Object) -> Object:
        """The stored object as a FleetCluster. It keeps its own version and kind, with which it is written."""

    def stored(self, cluster: Object) -> Object:
        """The object to store for a new FleetCluster."""

    def changes(self, cluster: Object, changes: Object) -> Object:
        """The merge patch of a FleetCluster as one of the stored object."""


class FleetClusters:
    api_version, kind, group, resource = API_VERSION, CLUSTER, GROUP, "fleetclusters"

    def shown(self, stored: Object) -> Object:
        return stored

    def stored(self, cluster: Object) -> Object:
        return cluster

    def changes(self, cluster: Object, changes: Object) -> Object:  # noqa: ARG002 - the signature of a source
        return changes


class ClusterOrders:
    """The orders of one hub. A node set has the name of its class, which an order counts nodes by."""

    kind, resource = "ClusterOrder", "clusterorders"

    def __init__(self, names: Names) -> None:
        self._names = names
        self.api_version = names.api_version
        self.group = names.group

    def shown(self, stored: Object) -> Object:
        metadata, spec = stored["metadata"], stored.get("spec") or {}
        counts = {each["resourceClass"]: each["numberOfNodes"] for each in spec.get("nodeRequests") or ()}
        sets = {name: {"class": name, "size": count} for name, count in counts.items()}
        shown = {"template": spec.get("templateID", ""), "templateParameters": _parsed(spec.get("templateParameters")), "nodeSets": sets}
        identity = {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
        kept = {key: value for key, value in metadata.items() if key != "managedFields"}
        assignment = {
            "metadata": {"namespace": "", "name": metadata["uid"], "generation": metadata.get("generation", 1)}
            | {key: metadata[key] for key in ("deletionTimestamp",) if key in metadata},
            "spec": {"cluster": identity, **shown},
        }
        order = ClusterOrder.from_object(stored, self._names)
        status = status_of(ClusterAssignment.from_object(assignment), order, datetime.now(UTC))
        # The home cluster remembers so; the order itself does not have this condition.
        status["conditions"] = [each for each in status.get("conditions") or () if each["type"] != PROVISIONED]
        ready = sum(each["ready"] for each in (status.get("nodeSets") or {}).values())
        status["nodes"] = f"{ready}/{sum(counts.values())}"
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": kept, "spec": shown, "status": status}

    def stored(self, cluster: Object) -> Object:
        metadata, spec = cluster["metadata"], cluster["spec"]
        _refuse(spec)
        kept = {key: value for key, value in metadata.items() if key != "annotations"}
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": kept | {"annotations": _own(metadata.get("annotations") or {})},
            "spec": {"templateID": spec["template"], **_content(spec.get("templateParameters") or {}, spec.get("nodeSets") or {})},
        }

    def changes(self, cluster: Object, changes: Object) -> Object:
        wanted, spec = changes.get("spec") or {}, cluster["spec"]
        _refuse(wanted)
        changed: Object = {}
        if "nodeSets" in wanted:
            changed["nodeRequests"] = _content({}, _merged(spec["nodeSets"], wanted["nodeSets"] or {}))["nodeRequests"]
        if "templateParameters" in wanted:
            changed["templateParameters"] = json.dumps(
                _merged(spec["templateParameters"], wanted["templateParameters"] or {}), sort_keys=True
            )
        return {name: value for name, value in changes.items() if name != "spec"} | ({"spec": changed} if changed else {})


def _refuse(spec: Mapping[str, Any]) -> None:
    for name in ONLY_OF_FLEETS:
        if spec.get(name) is not None:
            raise invalid(f"spec.{name}", "is for clusters of a fleet; this service has a single hub")


def _own(annotations: Mapping[str, str]) -> dict[str, str]:
    """Without those of the fleet, whose values its admission policies verify."""
    return {name: value for name, value in annotations.items() if not name.startswith(f"{GROUP}/")}


def _content(parameters: Mapping[str, Any], sets: Mapping[str, Any]) -> Object:
    found: dict[str, NodeSet] = node_sets_of({"nodeSets": sets})
    requests = [{"resourceClass": name, "numberOfNodes": count} for name, count in nodes_by_class(found).items()]
    return ({"templateParameters": json.dumps(parameters, sort_keys=True)} if parameters else {}) | {"nodeRequests": requests}


def _merged(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch, as RFC 7386 describes it."""
    merged = dict(before)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            present = merged.get(name)
            merged[name] = _merged(present if isinstance(present, dict) else {}, value) if isinstance(value, dict) else value
    return merged


def _parsed(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
