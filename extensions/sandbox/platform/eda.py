"""EDA's API: collections and objects, whose details contain what lists only refer to, and the actions of activations."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ....plugins.module_utils.common.types import Object
from .accounts import Accounts, forbidden, may_write
from .activations import Activations
from .exchange import Refused, Request, Response, not_allowed, not_found
from .kinds import ENCRYPTED, Kind
from .queries import Found, page
from .store import Duplicate, Invalid, Store
from .views import secret_inputs, without_secrets

VERSION = "1.1.0"
# These show what they refer to also in lists.
EMBEDDING = ("eda-credentials", "event-streams")
REFERENCE_FIELDS = ("id", "name", "description", "image_url", "managed", "kind", "namespace", "url")


@dataclass
class Eda:
    """`rulebooks` is the folder whose rulebooks every project has."""

    store: Store
    accounts: Accounts
    rulebooks: Path
    activations: Activations = field(default_factory=Activations)

    def handle(self, request: Request) -> Response:
        user = self.accounts.user(request)
        parts = request.parts
        if parts == ["config"]:
            return Response(200, {"time_zone": "UTC", "version": VERSION})
        if parts[:2] == ["users", "me"]:
            if not parts[2:]:
                return Response(200, {"id": user["id"], "username": user["username"], "is_superuser": user["is_superuser"]})
            parts = parts[2:]
        if not parts or parts[0] not in self.store.kinds:
            raise not_found()
        if request.is_write and not may_write(user):
            raise forbidden()
        kind = self.store.kinds[parts[0]]
        match parts[1:]:
            case []:
                return self._collection(request, kind, user)
            case [number]:
                return self._object(request, kind, self._find(kind, number))
            case [number, action] if action in kind.actions:
                return self._act(request, kind, self._find(kind, number), action)
        raise not_found()

    def _find(self, kind: Kind, number: str) -> Object:
        row = self.store.rows[kind.collection].get(int(number)) if number.isdigit() else None
        if row is None:
            raise not_found()
        return row

    def _row(self, collection: str, values: Object, name: str) -> Object | None:
        """What a field refers to."""
        found = self.store.find(collection, values.get(name))
        return found[1] if found else None

    def _collection(self, request: Request, kind: Kind, user: Object) -> Response:
        if request.method == "GET":
            found = [item for item in self.store.all(kind.collection) if _matches(item[1], request)]
            response = Response(
                200, page(request, found, lambda item: self._shown(item[0], item[1], kind.collection in EMBEDDING), eda=True)
            )
            self._step(self.store.all("projects") if kind.type == "rulebook" else found)
            return response
        if request.method == "OPTIONS":
            return Response(200, {"actions": {"POST": {}} if may_write(user) and "POST" in kind.methods else {}})
        if request.method != "POST" or "POST" not in kind.methods:
            raise not_allowed(request.method)
        row = self._write(kind, request.fields, None)
        self._created(kind, row, user)
        return Response(201, self._shown(kind, row, embed=True))

    def _object(self, request: Request, kind: Kind, row: Object) -> Response:
        match request.method:
            case "GET":
                response = Response(200, self._shown(kind, row, embed=True))
                self._step([(kind, row)])
                return response
            case "PATCH" if "PATCH" in kind.methods:
                return self._change(kind, row, request.fields)
            case "DELETE" if "DELETE" in kind.methods:
                return self._delete(request, kind, row)
        raise not_allowed(request.method)

    def _change(self, kind: Kind, row: Object, given: Object) -> Response:
        if kind.type == "activation":
            self.activations.check_change(row)
            enable = given.get("is_enabled", False)
            given = {**given, "is_enabled": False}
            self._write(kind, given, row)
            if enable:
                self.activations.enable(row)
        else:
            self._write(kind, given, row)
        return Response(200, self._shown(kind, row, embed=True))

    def _delete(self, request: Request, kind: Kind, row: Object) -> Response:
        if row.get("managed"):
            raise Refused(400, {"errors": "Managed resources cannot be deleted"})
        if kind.type == "activation":
            row["status"] = "deleting"
            return Response(204)
        if kind.type != "project" and request.query.get("force", ["false"])[0] != "true" and self._is_used(kind, row):
            detail = f"{kind.label.capitalize()} {row['name']} is being referenced by other resources and cannot be deleted."
            raise Refused(409, {"detail": f"{detail} If you want to force delete, please add /?force=true query param."})
        self.store.delete(kind, row)
        return Response(204)

    def _is_used(self, kind: Kind, row: Object) -> bool:
        activations = self.store.rows["activations"].values()
        if kind.type == "eda credential" and any(row["id"] in activation["eda_credentials"] for activation in activations):
            return True
        if kind.type == "event stream":
            return any(row["id"] in _streams(activation) for activation in activations)
        return self.store.is_referred_to(kind, row)

    def _act(self, request: Request, kind: Kind, row: Object, action: str) -> Response:
        match action, request.method:
            case "enable", "POST":
                return self.activations.enable(row)
            case "disable", "POST":
                return self.activations.disable(row)
            case "restart", "POST":
                return self.activations.restart(row)
            case "instances", "GET":
                return Response(200, page(request, self._instances(row), lambda item: item, eda=True))
            case "sync", "POST":
                row["import_state"] = "pending"
                return Response(202, self._shown(kind, row, embed=True))
            case "sources", "GET":
                return Response(200, page(request, sources(row["rulesets"]), lambda item: item, eda=True))
        raise not_allowed(request.method)

    # What a write does

    def _write(self, kind: Kind, given: Object, row: Object | None) -> Object:
        fixed = self._completed(kind, given, row)
        given = {**given, **fixed}
        try:
            if row is None:
                return self.store.create(kind, given, fixed)
            self.store.change(kind, row, given, fixed)
        except Invalid as error:
            reason = error.reason
            if reason.startswith("Invalid pk"):
                reason = f"{error.field.removesuffix('_id').replace('_', ' ').capitalize()} with id {given[error.field]} does not exist"
            raise Refused(400, {error.field: [reason]}) from error
        except Duplicate as error:
            raise Refused(400, {"name": [f"{kind.label} with this name already exists."]}) from error
        return row

    def _completed(self, kind: Kind, given: Object, row: Object | None) -> Object:
        """The fields that EDA sets, or keeps otherwise than they were sent."""
        values = {**(row or {}), **given}
        if kind.type == "eda credential" and "inputs" in given:
            return self._inputs(values, row)
        if kind.type == "event stream":
            credential = self._row("eda-credentials", values, "eda_credential_id")
            found = self._row("credential-types", credential, "credential_type_id") if credential else None
            return {"event_stream_type": found["kind"]} if found else {}
        if kind.type == "activation":
            rulebook = self._row("rulebooks", values, "rulebook_id")
            self._check_mappings(values, rulebook)
            return {"project_id": rulebook["project_id"], "rulebook_name": rulebook["name"]} if rulebook else {}
        return {}

    def _inputs(self, values: Object, row: Object | None) -> Object:
        credential_type = self._row("credential-types", values, "credential_type_id")
        if not credential_type or not isinstance(values["inputs"], dict):
            return {}
        known = [item["id"] for item in credential_type["inputs"].get("fields", [])]
        for name in values["inputs"]:
            if name not in known:
                raise Refused(
                    400, {f"inputs.{name}": [f"Input keys {{'{name}'}} are not defined in the schema. Allowed keys are: {known}"]}
                )
        old = row["inputs"] if row else {}
        return {"inputs": {name: old.get(name, "") if value == ENCRYPTED else value for name, value in values["inputs"].items()}}

    def _check_mappings(self, values: Object, rulebook: Object | None) -> None:
        known = {source["name"]: source["rulebook_hash"] for source in sources(rulebook["rulesets"])} if rulebook else {}
        for mapping in yaml.safe_load(values.get("source_mappings") or "") or []:
            if mapping.get("event_stream_id") not in self.store.rows["event-streams"]:
                raise Refused(400, {"source_mappings": [f"Event stream id {mapping.get('event_stream_id')} not found"]})
            if known.get(mapping.get("source_name")) != mapping.get("rulebook_hash"):
                raise Refused(
                    400, {"source_mappings": ["Rulebook has changed since the sources were mapped. Please reattach event streams."]}
                )

    def _created(self, kind: Kind, row: Object, user: Object) -> None:
        match kind.type:
            case "activation":
                self.activations.begin(row)
            case "event stream":
                number = str(uuid.uuid4())
                row |= {
                    "uuid": number,
                    "url": f"/eda-event-streams/api/eda/v1/external_event_stream/{number}/post/",
                    "owner": user["username"],
                }

    def _step(self, found: list[Found]) -> None:
        """What happens meanwhile: activations start and stop, projects are imported."""
        for kind, row in found:
            if kind.type == "activation" and not self.activations.step(row):
                self.store.delete(kind, row)
            if kind.type == "project" and row["import_state"] in ("pending", "running"):
                row["import_state"] = {"pending": "running", "running": "completed"}[row["import_state"]]
                if row["import_state"] == "completed":
                    self._import(row)

    def _import(self, project: Object) -> None:
        kind = self.store.kinds["rulebooks"]
        project["git_hash"] = "0" * 40
        known = {row["name"] for row in self.store.rows["rulebooks"].values() if row["project_id"] == project["id"]}
        for file in sorted(self.rulebooks.glob("*.yml")):
            if file.name not in known:
                given = {"name": file.name, "project_id": project["id"], "organization_id": project["organization_id"]}
                self.store.create(kind, given | {"rulesets": file.read_text(encoding="utf-8")})

    # What is shown

    def _shown(self, kind: Kind, row: Object, embed: bool) -> Object:
        shown = {"id": row["id"], "created_at": row["created"], "modified_at": row["modified"]}
        shown |= {item.name: row[item.name] for item in kind.fields if item.shown}
        if kind.type == "eda credential":
            credential_type = self.store.rows["credential-types"][row["credential_type_id"]]
            shown["inputs"] = without_secrets(row["inputs"], secret_inputs(credential_type["inputs"]))
        if kind.type == "activation":
            shown |= self._shown_activation(row)
        if not embed:
            return shown
        for item in kind.fields:
            if item.to and item.name in shown:
                found = self.store.find(item.to, shown.pop(item.name))
                shown[item.name.removesuffix("_id")] = (
                    {key: found[1][key] for key in REFERENCE_FIELDS if key in found[1]} if found else None
                )
        return shown

    def _shown_activation(self, row: Object) -> Object:
        credentials, streams = self.store.kinds["eda-credentials"], self.store.rows["event-streams"]
        known = self.store.rows["eda-credentials"]
        shown: Object = {
            "eda_credentials": [
                self._shown(credentials, known[number], embed=True) for number in row["eda_credentials"] if number in known
            ],
            "event_streams": [{"id": number, "name": streams[number]["name"]} for number in _streams(row) if number in streams],
            "instances": self._instances(row),
        }
        if row["extra_var"]:
            # EDA keeps the text and shows it as it would have written it.
            shown["extra_var"] = yaml.safe_dump(yaml.safe_load(row["extra_var"]))
        return shown

    def _instances(self, row: Object) -> list[Object]:
        if row["status"] in ("stopped", "pending"):
            return []
        return [{"id": row["id"], "name": row["name"], "status": row["status"], "activation_id": row["id"]}]


def sources(rulesets: str) -> list[Object]:
    """The sources of a rulebook by name, as event streams are mapped to them."""
    digest = hashlib.sha256(rulesets.encode()).hexdigest()
    found = [source for ruleset in yaml.safe_load(rulesets) or [] for source in ruleset.get("sources", [])]
    return [{"name": _source_name(source), "source_info": yaml.safe_dump(source), "rulebook_hash": digest} for source in found]


def _source_name(source: Object) -> str:
    return str(source.get("name") or next(key for key in source if key not in ("name", "filters")))


def _streams(activation: Object) -> list[int]:
    return [mapping["event_stream_id"] for mapping in yaml.safe_load(activation["source_mappings"] or "") or []]


def _matches(row: Object, request: Request) -> bool:
    """EDA filters names by their beginning, ids exactly, and ignores filters that it does not know."""
    checks: dict[str, Any] = {"name": lambda value, wanted: str(value).lower().startswith(wanted.lower())}
    for name, values in request.query.items():
        if name in row and name not in ("page", "page_size"):
            check = checks.get(name, lambda value, wanted: str(value) == wanted)
            if not all(check(row[name], wanted) for wanted in values):
                return False
    return True
