"""Rules of single kinds that the table of fields cannot express: AWX's refusals of what it accepts for no other kind."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import Any

from ....plugins.module_utils.common.types import Object
from .exchange import Refused
from .kinds import ENCRYPTED, Kind
from .store import Link, Store
from .views import secret_inputs

Playbooks = Callable[[Object], list[str]]
EDGES = ("success_nodes", "failure_nodes", "always_nodes")


class Rules:
    """`playbooks` lists the playbooks of a project."""

    def __init__(self, store: Store, playbooks: Playbooks) -> None:
        self._store, self._playbooks = store, playbooks

    def completed(self, kind: Kind, given: Object, row: Object | None) -> tuple[Object, Object]:
        """What a client gave, as it is kept, and the fields that it cannot set itself; Refused where it is not accepted."""
        given = dict(given)
        match kind.type:
            case "credential":
                self._credential(given, row)
            case "job_template":
                return given, self._job_template(given, row)
            case "workflow_job_template_node" if row is None:
                given["identifier"] = given.get("identifier") or str(uuid.uuid4())
            case "notification_template" if row and "notification_configuration" in given:
                given["notification_configuration"] = _kept(given["notification_configuration"], row["notification_configuration"])
            case "user" if row and given.get("password") in ("", ENCRYPTED):
                del given["password"]
            case "credential_type" if row:
                self._credential_type(given, row)
            case "application" | "o_auth2_application" if row is None:
                return given, {"client_id": secrets.token_urlsafe(16), "client_secret": secrets.token_urlsafe(16)}
        return given, {}

    def check_delete(self, kind: Kind, row: Object) -> None:
        if kind.type == "credential_type":
            if row["managed"]:
                raise Refused(403, {"detail": "Deletion not allowed for managed credential types"})
            if self._store.is_referred_to(kind, row):
                raise Refused(403, {"detail": "Credential types that are in use cannot be deleted"})
        if row.get("managed"):
            raise Refused(403, {"detail": "You do not have permission to perform this action."})

    def check_link(self, kind: Kind, row: Object, relation: str, other: Object) -> None:
        """May `other` be added to a list of `row`?"""
        if relation == "credentials":
            self._one_credential_a_type(kind, row, other)
        if relation in EDGES:
            if other["workflow_job_template"] != row["workflow_job_template"]:
                raise Refused(400, {"Error": "Nodes of different workflows cannot be linked."})
            if row["id"] in self._reachable(kind, other["id"]):
                raise Refused(400, {"Error": "Cycle detected."})

    def unused_label(self, label: int) -> bool:
        """AWX deletes a label that is on no object any more."""
        return not any(label in members for link, members in self._store.links.items() if link.relation == "labels")

    def _one_credential_a_type(self, kind: Kind, row: Object, other: Object) -> None:
        types = self._store.rows["credential_types"]
        for _kind, credential in self._store.linked(kind, row, "credentials"):
            same_vault = credential["inputs"].get("vault_id") == other["inputs"].get("vault_id")
            if credential["credential_type"] == other["credential_type"] and same_vault:
                raise Refused(400, {"error": f"Cannot assign multiple {types[other['credential_type']]['name']} credentials."})

    def _reachable(self, kind: Kind, start: int) -> set[int]:
        found: set[int] = set()
        waiting = [start]
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                for relation in EDGES:
                    waiting += self._store.links.get(Link(kind.collection, number, relation), [])
        return found

    def _credential(self, given: Object, row: Object | None) -> None:
        if row is None and not any(given.get(owner) for owner in ("organization", "user", "team")):
            raise Refused(400, {"detail": "Missing 'user', 'team', or 'organization'."})
        found = self._store.find("credential_types", {**(row or {}), **given}.get("credential_type"))
        if found is None or "inputs" not in given or not isinstance(given["inputs"], dict):
            return
        credential_type = found[1]
        known = [field["id"] for field in credential_type["inputs"].get("fields", [])]
        for name in given["inputs"]:
            if name not in known:
                raise Refused(400, {"inputs": [f"Additional properties are not allowed ('{name}' was unexpected)"]})
        for name in credential_type["inputs"].get("required", []):
            if not given["inputs"].get(name) and name not in secret_inputs(credential_type["inputs"]):
                raise Refused(400, {"inputs": {name: [f"required for {credential_type['name']}"]}})
        given["inputs"] = _kept(given["inputs"], row["inputs"] if row else {})

    def _credential_type(self, given: Object, row: Object) -> None:
        if row["managed"]:
            raise Refused(403, {"detail": "Modifications not allowed for managed credential types"})
        kind = self._store.kinds["credential_types"]
        if given.get("inputs", row["inputs"]) != row["inputs"] and self._store.is_referred_to(kind, row):
            raise Refused(403, {"detail": "Modifications to inputs are not allowed for credential types that are in use"})

    def _job_template(self, given: Object, row: Object | None) -> Object:
        """A job template has its project's organization, and only playbooks that its project has."""
        values = {**(row or {}), **given}
        number = values.get("project")
        found = self._store.find("projects", int(str(number)) if str(number).isdigit() else None)
        if found is None:
            if row is None and not values.get("ask_inventory_on_launch") and not values.get("inventory"):
                raise Refused(400, {"inventory": ["Job Template must provide 'inventory' or allow prompting for it."]})
            if number in (None, ""):
                raise Refused(400, {"project": ["This field is required."]})
            return {}
        if not values.get("inventory") and not values.get("ask_inventory_on_launch"):
            raise Refused(400, {"inventory": ["Job Template must provide 'inventory' or allow prompting for it."]})
        project = found[1]
        playbook, known = values.get("playbook"), self._playbooks(project)
        if not playbook:
            raise Refused(400, {"playbook": ["Must select playbook for project."]})
        if known and playbook not in known:
            raise Refused(400, {"playbook": ["Playbook not found for project."]})
        return {"organization": project["organization"]}


def _kept(given: Any, old: Object) -> Any:
    """A secret that comes back as it is shown keeps its value."""
    if not isinstance(given, dict):
        return given
    return {name: old.get(name, "") if value == ENCRYPTED else value for name, value in given.items()}
