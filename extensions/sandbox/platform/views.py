"""What the controller's API shows of an object: its fields without secrets, addresses of related objects, and summaries of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....plugins.module_utils.common.types import Object
from .accounts import may_write
from .controller_kinds import JOBS, SECRET_SETTINGS
from .kinds import ENCRYPTED, Kind
from .store import Store

SUMMARIZED_LISTS = ("labels", "credentials")
# How an object says which of a table's kinds it refers to.
UNIFIED_TYPES = {
    "job_template": "job",
    "workflow_job_template": "workflow_job",
    "project": "project_update",
    "inventory_source": "inventory_update",
}


class Views:
    """Renders the objects of a store for one user, below the path at which they ask."""

    def __init__(self, store: Store, base: str, user: Object) -> None:
        self._store, self._base, self._user = store, base, user

    def url(self, kind: Kind, row: Object) -> str:
        return f"{self._base}{kind.collection}/{row['id']}/"

    def render(self, found: tuple[Kind, Object]) -> Object:
        kind, row = found
        shown = {field.name: row[field.name] for field in kind.fields if field.shown}
        shown |= self._special(kind, row)
        return {
            "id": row["id"],
            "type": kind.type,
            "url": self.url(kind, row),
            "related": self._related(kind, row),
            "summary_fields": self._summaries(kind, row),
            "created": row["created"],
            "modified": row["modified"],
            **shown,
        }

    def _special(self, kind: Kind, row: Object) -> Object:
        """The fields that are not shown as they are kept."""
        match kind.type:
            case "credential":
                credential_type = self._store.rows["credential_types"][row["credential_type"]]
                shown = {"inputs": without_secrets(row["inputs"], secret_inputs(credential_type["inputs"]))}
                return shown | {"kind": credential_type["namespace"], "cloud": credential_type["kind"] == "cloud"}
            case "user":
                return {"password": ENCRYPTED}
            case "notification_template":
                return {"notification_configuration": without_secrets(row["notification_configuration"], SECRET_SETTINGS)}
            case "workflow_job_template_node":
                relations = ("success_nodes", "failure_nodes", "always_nodes")
                return {relation: [node["id"] for _kind, node in self._store.linked(kind, row, relation)] for relation in relations}
            case "role":
                return {}
        return {}

    def _related(self, kind: Kind, row: Object) -> Object:
        url = self.url(kind, row)
        related = {relation: f"{url}{relation}/" for relation in (*kind.links, *kind.children, *kind.actions)}
        if kind.roles:
            related["object_roles"] = f"{url}object_roles/"
        for field in kind.fields:
            if field.to and field.shown and (found := self._store.find(field.to, row[field.name])):
                related[field.name] = self.url(*found)
        if kind.type == "role" and (found := self._store.find(row["content_collection"], row["object_id"])):
            related[found[0].type] = self.url(*found)
        return related

    def _summaries(self, kind: Kind, row: Object) -> Object:
        summaries: Object = {}
        for field in kind.fields:
            if field.to and field.shown and (found := self._store.find(field.to, row[field.name])):
                summaries[field.name] = self._summary(*found)
        for relation in SUMMARIZED_LISTS:
            if relation in kind.links:
                members = [self._summary(*found) for found in self._store.linked(kind, row, relation)]
                summaries[relation] = {"count": len(members), "results": members} if relation == "labels" else members
        if kind.roles:
            summaries["object_roles"] = self._object_roles(kind, row)
        if kind.type == "role" and (found := self._store.find(row["content_collection"], row["object_id"])):
            other, content = found
            summaries |= {"resource_name": content.get("name"), "resource_type": other.type, "resource_type_display_name": other.label}
            summaries["resource_id"] = content["id"]
        summaries["user_capabilities"] = {name: may_write(self._user) for name in ("edit", "delete", "start", "copy", "use")}
        return summaries

    def _summary(self, kind: Kind, row: Object) -> Object:
        summary = {"id": row["id"]} | {name: row[name] for name in ("name", "username", "description", "identifier", "kind") if name in row}
        if kind.type in UNIFIED_TYPES:
            summary["unified_job_type"] = UNIFIED_TYPES[kind.type]
        if kind.table == JOBS:
            summary |= {"status": row["status"], "type": kind.type}
        if kind.type == "credential":
            summary["kind"] = self._store.rows["credential_types"][row["credential_type"]]["namespace"]
        return summary

    def _object_roles(self, kind: Kind, row: Object) -> Object:
        own = [
            role
            for role in self._store.rows["roles"].values()
            if (role["content_collection"], role["object_id"]) == (kind.collection, row["id"])
        ]
        return {role["role_field"]: {"id": role["id"], "name": role["name"], "description": role["description"]} for role in own}


def secret_inputs(inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The inputs of a credential type that are secret."""
    return tuple(field["id"] for field in inputs.get("fields", []) if field.get("secret"))


def without_secrets(values: Mapping[str, Any], names: tuple[str, ...]) -> Object:
    return {name: ENCRYPTED if name in names and value else value for name, value in values.items()}
