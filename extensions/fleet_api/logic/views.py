"""How objects of the home cluster are shown, and which of their fields lists can be filtered and ordered by. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....plugins.module_utils.common.timestamps import parse_time
from ....plugins.module_utils.common.types import Object
from ....plugins.module_utils.fleet.kinds import CREATED_BY
from ....plugins.module_utils.fleet.model import PENDING, Hub, node_sets_of
from .filter_nodes import BOOL, INT, MAP, STRING, TIMESTAMP, Field
from .paging import Listed


def _text(*path: str, default: str = "") -> Field:
    if path[0] == "metadata":  # which is always there: it is read for each object of a list
        name = path[1]
        return Field(STRING, lambda item: item["metadata"][name])
    return Field(STRING, lambda item: str(_at(item, path) or default))


def _time(*path: str) -> Field:
    return Field(TIMESTAMP, lambda item: parse_time(_at(item, path)), nullable=True)


def _at(item: Object, path: tuple[str, ...]) -> Any:
    value: Any = item
    for name in path:
        value = (value or {}).get(name)
    return value


def _created_by(item: Object) -> str:
    return str((item["metadata"].get("annotations") or {}).get(CREATED_BY, ""))


def _labels(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def _kept(**entries: Any) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value not in (None, "")}


# Clusters


def cluster_view(item: Object) -> dict[str, Any]:
    metadata = item["metadata"]
    return _kept(
        id=metadata["uid"],
        name=metadata["name"],
        tenant=metadata["namespace"],
        created=metadata["creationTimestamp"],
        createdBy=_created_by(item),
        deletionRequested=metadata.get("deletionTimestamp"),
        resourceVersion=metadata["resourceVersion"],
        generation=metadata.get("generation"),
        labels=_shown_labels(item),
        spec=item["spec"],
        status={"state": PENDING} | (item.get("status") or {}),
    )


def event_view(item: Object) -> dict[str, Any]:
    """An Event of Kubernetes about a cluster."""
    return _kept(
        type=str(item.get("type") or "Normal"),
        reason=str(item.get("reason") or ""),
        message=str(item.get("message") or ""),
        count=int(item.get("count") or 1),
        first=item.get("firstTimestamp") or item["metadata"]["creationTimestamp"],
        last=item.get("lastTimestamp") or item["metadata"]["creationTimestamp"],
    )


OWN_PREFIX = "api.fleet.openfleet.io/"  # labels and annotations of this service


def _shown_labels(item: Object) -> dict[str, str]:
    return {name: value for name, value in _labels(item).items() if not name.startswith(OWN_PREFIX)}


CLUSTERS = Listed(
    "clusters",
    {
        "id": _text("metadata", "uid"),
        "name": _text("metadata", "name"),
        "tenant": _text("metadata", "namespace"),
        "created": Field(TIMESTAMP, lambda item: parse_time(item["metadata"]["creationTimestamp"])),
        "createdBy": Field(STRING, _created_by),
        "deleting": Field(BOOL, lambda item: "deletionTimestamp" in item["metadata"]),
        "labels": Field(MAP, _shown_labels),
        "template": _text("spec", "template"),
        "region": _text("spec", "placement", "region"),
        "priority": Field(INT, lambda item: int(item["spec"].get("priority") or 0)),
        "expiresAt": _time("spec", "expiresAt"),
        "nodes": Field(INT, lambda item: sum(each.size for each in node_sets_of(item["spec"]).values())),
        "state": _text("status", "state", default=PENDING),
        "hub": _text("status", "hub"),
        "version": _text("status", "version"),
    },
    "name",
    frozenset(
        (
            "id",
            "name",
            "tenant",
            "created",
            "createdBy",
            "deletionRequested",
            "resourceVersion",
            "generation",
            "labels",
            "spec",
            "status",
        )
    ),
    cluster_view,
)


# Records of deleted clusters


def record_view(item: Object) -> dict[str, Any]:
    spec = {name: value for name, value in item["spec"].items() if name != "uid"}
    return {"id": item["metadata"]["uid"], "cluster": item["spec"]["uid"], "tenant": item["metadata"]["namespace"], **spec}


RECORDS = Listed(
    "records",
    {
        "id": _text("metadata", "uid"),
        "cluster": _text("spec", "uid"),
        "tenant": _text("metadata", "namespace"),
        "name": _text("spec", "name"),
        "template": _text("spec", "template"),
        "hub": _text("spec", "hub"),
        "owner": _text("spec", "owner"),
        "reason": _text("spec", "reason"),
        "created": _time("spec", "created"),
        "deleted": _time("spec", "deleted"),
    },
    "deleted desc",
    frozenset(
        (
            "id",
            "cluster",
            "tenant",
            "name",
            "template",
            "created",
            "deleted",
            "reason",
            "owner",
            "hub",
            "state",
            "version",
            "nodeSets",
            "nodeHours",
        )
    ),
    record_view,
)


# Hubs, for operators


def hub_view(item: Object) -> dict[str, Any]:
    hub, status = Hub.from_object(item), item.get("status") or {}
    return _kept(
        id=hub.name,
        name=hub.name,
        created=item["metadata"].get("creationTimestamp"),
        resourceVersion=item["metadata"]["resourceVersion"],
        labels=dict(hub.labels),
        spec=item["spec"],
        ready=hub.ready,
        clusters=len(hub.reservations),
        free={"clusters": hub.free_clusters(), "nodes": {name: hub.free_nodes(name) for name in sorted(hub.nodes)}},
        heartbeat=status.get("heartbeat"),
        versions=status.get("versions"),
        templates=sorted(each["name"] for each in status.get("templates") or ()),
        conditions=status.get("conditions") or [],
    )


def _hub(read: Callable[[Hub], Any]) -> Callable[[Object], Any]:
    return lambda item: read(Hub.from_object(item))


HUBS = Listed(
    "hubs",
    {
        "name": _text("metadata", "name"),
        "region": _text("spec", "region"),
        "schedulable": Field(BOOL, _hub(lambda hub: hub.schedulable)),
        "ready": Field(BOOL, _hub(lambda hub: hub.ready)),
        "clusters": Field(INT, _hub(lambda hub: len(hub.reservations))),
        "labels": Field(MAP, _labels),
        "heartbeat": _time("status", "heartbeat"),
    },
    "name",
    frozenset(
        (
            "id",
            "name",
            "created",
            "resourceVersion",
            "labels",
            "spec",
            "ready",
            "clusters",
            "free",
            "heartbeat",
            "versions",
            "templates",
            "conditions",
        )
    ),
    hub_view,
)
