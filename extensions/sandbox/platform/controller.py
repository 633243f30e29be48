"""The controller's API: collections, objects and lists below them, and the actions that are neither."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ....plugins.module_utils.common.types import Object
from .accounts import Accounts, forbidden, may_write
from .controller_kinds import JOBS, TEMPLATES
from .exchange import Refused, Request, Response, not_allowed, not_found
from .jobs import Jobs
from .kinds import Field, Kind
from .queries import Found, filtered, page
from .rules import Rules
from .store import Duplicate, Invalid, Link, Store
from .surveys import Surveys
from .views import Views

VERSION = "24.6.1"
HEADERS = {"X-API-Product-Name": "AWX", "X-API-Product-Version": VERSION}
LICENCE = {"license_type": "open", "valid_key": True, "compliant": True, "subscription_name": "OPEN", "product_name": "AWX"}
MANAGED_BY_GATEWAY = ("organizations", "teams", "users")
COMBINED = ("projects", "job_templates", "workflow_job_templates", "inventory_sources")
# Where AWX's index calls a collection otherwise.
INDEX = {"inventories": "inventory"}


@dataclass
class Controller:
    """`licensed` and `behind_gateway` can be set: without a licence no job starts, and a gateway keeps organizations to itself."""

    store: Store
    accounts: Accounts
    surveys: Surveys
    jobs: Jobs
    playbooks: Callable[[Object], list[str]]
    licensed: bool = True
    behind_gateway: bool = False
    rules: Rules = field(init=False)

    def __post_init__(self) -> None:
        self.rules = Rules(self.store, self.playbooks)

    def handle(self, request: Request) -> Response:
        parts = request.parts
        if parts == ["ping"]:
            return Response(200, {"ha": False, "version": VERSION, "active_node": "standin", "install_uuid": "", "instances": []})
        if not parts and request.method == "GET":
            return Response(200, self._index(request))
        user = self.accounts.user(request)
        match parts:
            case ["config"]:
                return Response(200, {"version": VERSION, "license_info": LICENCE if self.licensed else {}, "time_zone": "UTC"})
            case ["me"]:
                me = (self.store.kinds["users"], user)
                return Response(200, page(request, [me], Views(self.store, request.base, user).render))
            case ["tokens", *number]:
                return self.accounts.handle(request, user, number[0] if number else None)
            case ["users", _name, "personal_tokens"]:
                return self.accounts.handle(request, user, None)
            case ["settings", *_rest]:
                return Response(200, {"TOWER_URL_BASE": "https://standin.invalid"})
            case [collection, *rest]:
                return _Call(self, request, user, collection).answer(rest)
        raise not_found()

    def _index(self, request: Request) -> Object:
        names = [*self.store.kinds, TEMPLATES, JOBS, "ping", "config", "me", "tokens", "settings"]
        return {INDEX.get(name, name): f"{request.base}{name}/" for name in names}

    def delete_pending(self) -> None:
        """What AWX does in the background: inventories whose deletion was asked for disappear."""
        kind = self.store.kinds["inventories"]
        for row in [row for row in self.store.rows["inventories"].values() if row["pending_deletion"]]:
            self.store.delete(kind, row)


class _Call:
    """One request to a collection or to something below it."""

    def __init__(self, api: Controller, request: Request, user: Object, collection: str) -> None:
        self._api, self._store, self._request, self._user = api, api.store, request, user
        self._collection = collection
        self._kinds = api.store.in_collection(collection)
        self._views = Views(api.store, request.base, user)
        if not self._kinds:
            raise not_found()

    def answer(self, rest: list[str]) -> Response:
        request = self._request
        if request.is_write and not may_write(self._user):
            raise forbidden()
        match rest:
            case []:
                return self._list_or_create(self._store.all(self._collection), {})
            case [key]:
                return self._object(*self._find(key))
            case [key, relation]:
                return self._below(*self._find(key), relation)
        raise not_found()

    # A collection

    def _list_or_create(self, found: list[Found], fixed: Object) -> Response:
        kind = self._kinds[0]
        methods = kind.methods if len(self._kinds) == 1 else ("GET",)
        match self._request.method:
            case "GET":
                response = self._page(found, self._kinds)
                self._api.delete_pending()
                return response
            case "OPTIONS":
                return self._options(kind, "POST" if "POST" in methods else "", attach=False)
            case "POST" if "POST" in methods:
                return self._create(kind, self._request.fields | fixed)
        raise not_allowed(self._request.method)

    def _page(self, found: list[Found], kinds: list[Kind]) -> Response:
        kept = filtered(self._store, kinds, found, self._request.query)
        return Response(200, page(self._request, kept, self._views.render))

    def _create(self, kind: Kind, given: Object) -> Response:
        if self._api.behind_gateway and kind.collection in MANAGED_BY_GATEWAY and self._request.base.startswith("/api/controller"):
            raise Refused(403, {"detail": "Creation of this resource is not allowed. Create this resource via the platform ingress."})
        if kind.type == "host" and not self._api.licensed:
            raise _unlicensed()
        row = self._write(kind, given, None)
        self._create_roles(kind, row)
        if kind.type == "project" and row["scm_type"]:
            self._api.jobs.update(kind, row)
        return Response(201, self._views.render((kind, row)))

    def _write(self, kind: Kind, given: Object, row: Object | None) -> Object:
        given, fixed = self._api.rules.completed(kind, given, row)
        try:
            if row is None:
                return self._store.create(kind, given, fixed)
            self._store.change(kind, row, given, fixed)
        except Invalid as error:
            raise Refused(400, {error.field: [error.reason]}) from error
        except Duplicate as error:
            raise Refused(400, duplicate(error)) from error
        return row

    def _create_roles(self, kind: Kind, row: Object) -> None:
        for role in kind.roles:
            fixed = {"name": role.replace("_", " ").title(), "role_field": f"{role}_role", "description": f"Has {role} permission"}
            fixed |= {"content_collection": kind.collection, "object_id": row["id"]}
            self._store.create(self._store.kinds["roles"], {}, fixed)

    # An object

    def _find(self, key: str) -> Found:
        if key.isdigit():
            found = self._store.find(self._collection, int(key))
        else:
            found = next((item for item in self._store.all(self._collection) if self._named_url(*item) == unquote(key)), None)
        if not found:
            raise not_found()
        return found

    def _named_url(self, kind: Kind, row: Object) -> str:
        """name++organization, as AWX addresses objects without their ids."""
        own = str(row.get("name") or row.get("username") or row.get("identifier"))
        parent = kind.field("organization") or kind.field("inventory") or kind.field("workflow_job_template")
        if kind.type == "credential":
            credential_type = self._store.rows["credential_types"][row["credential_type"]]
            own = f"{own}++{credential_type['name']}+{credential_type['kind']}"
        if not parent or kind.type in ("execution_environment",):
            return own
        found = self._store.find(parent.to, row[parent.name])
        return f"{own}++{self._named_url(*found) if found else ''}"

    def _object(self, kind: Kind, row: Object) -> Response:
        method = self._request.method
        if method == "GET":
            response = Response(200, self._views.render((kind, row)))
            self._api.delete_pending()
            return response
        if method == "OPTIONS":
            return self._options(kind, "PUT" if "PUT" in kind.methods else "", attach=False)
        if method not in kind.methods or method == "POST":
            raise not_allowed(method)
        if method == "DELETE":
            return self._delete(kind, row)
        given = self._request.fields
        if method == "PUT":
            given = {item.name: item.default for item in kind.fields if not item.required and item.name not in given} | given
        self._write(kind, given, row)
        return Response(200, self._views.render((kind, row)))

    def _delete(self, kind: Kind, row: Object) -> Response:
        self._api.rules.check_delete(kind, row)
        if kind.type == "inventory":
            if row["pending_deletion"]:
                raise Refused(400, {"error": "Inventory is already pending deletion."})
            row["pending_deletion"] = True
            return Response(202)
        for role in [
            role
            for role in self._store.rows["roles"].values()
            if (role["content_collection"], role["object_id"]) == (kind.collection, row["id"])
        ]:
            self._store.delete(self._store.kinds["roles"], role)
        self._store.delete(kind, row)
        self._api.surveys.forget(kind, row)
        return Response(204)

    # Below an object

    def _below(self, kind: Kind, row: Object, relation: str) -> Response:
        if relation == "object_roles" and kind.roles:
            roles = [(self._store.kinds["roles"], role) for role in self._store.rows["roles"].values()]
            own = [found for found in roles if (found[1]["content_collection"], found[1]["object_id"]) == (kind.collection, row["id"])]
            return self._page(own, [self._store.kinds["roles"]])
        if relation in kind.actions:
            return self._act(kind, row, relation)
        if relation in kind.children:
            collection, reference = kind.children[relation]
            self._kinds = self._store.in_collection(collection)
            return self._list_or_create(self._store.children(kind, row, relation), {reference: row["id"]})
        if relation in kind.links:
            return self._linked(kind, row, relation)
        raise not_found()

    def _linked(self, kind: Kind, row: Object, relation: str) -> Response:
        target = self._store.in_collection(kind.links[relation])
        match self._request.method:
            case "GET":
                return self._page(self._granted(kind, row, relation) or self._store.linked(kind, row, relation), target)
            case "OPTIONS":
                return self._options(target[0], "POST", attach=True)
            case "POST":
                return self._associate(kind, row, relation)
        raise not_allowed(self._request.method)

    def _granted(self, kind: Kind, row: Object, relation: str) -> list[Found]:
        """The roles of a user or a team, which are kept with the role."""
        if relation != "roles":
            return []
        roles = self._store.kinds["roles"]
        return [
            (roles, role)
            for role in self._store.rows["roles"].values()
            if row["id"] in self._store.links[Link("roles", role["id"], kind.collection)]
        ]

    def _associate(self, kind: Kind, row: Object, relation: str) -> Response:
        given, target = self._request.fields, kind.links[relation]
        if "id" not in given:
            created = self._create_label(given) if relation == "labels" else self._create(self._store.in_collection(target)[0], given)
            self._members(kind, row, relation, created.body["id"]).append(created.body["id"])
            return created
        found = self._store.find(target, given["id"])
        if not found:
            raise Refused(400, {"id": [f'Invalid pk "{given["id"]}" - object does not exist.']})
        members = self._members(kind, row, relation, given["id"])
        number = row["id"] if relation == "roles" else given["id"]
        if given.get("disassociate"):
            if number in members:
                members.remove(number)
            if relation == "labels" and self._api.rules.unused_label(number):
                self._store.delete(*found)
            return Response(204)
        self._api.rules.check_link(kind, row, relation, found[1])
        if number not in members:
            members.append(number)
        return Response(204)

    def _members(self, kind: Kind, row: Object, relation: str, other: int) -> list[int]:
        link = Link("roles", other, kind.collection) if relation == "roles" else Link(kind.collection, row["id"], relation)
        return self._store.links[link]

    def _create_label(self, given: Object) -> Response:
        """A label that exists already is the one that is meant."""
        kind = self._store.kinds["labels"]
        same = [
            row
            for row in self._store.rows["labels"].values()
            if (row["name"], row["organization"]) == (given.get("name"), given.get("organization"))
        ]
        return Response(201, self._views.render((kind, same[0]))) if same else self._create(kind, given)

    # Actions

    def _act(self, kind: Kind, row: Object, action: str) -> Response:
        api, request = self._api, self._request
        match action, request.method:
            case "survey_spec", "OPTIONS":
                return self._options(kind, "POST", attach=False)
            case "survey_spec", _:
                return api.surveys.handle(request, kind, row)
            case _, "GET":
                return self._read_action(kind, row, action)
            case "cancel", "POST":
                return api.jobs.cancel(kind, row)
            case "launch", "POST":
                return self._launch(kind, row)
            case "create_approval_template", "POST":
                return self._create_approval(row)
            case "update", "POST":
                job_kind, job = api.jobs.update(kind, row)
                return Response(202, {**self._views.render((job_kind, job)), job_kind.type: job["id"]})
        raise not_allowed(request.method)

    def _read_action(self, kind: Kind, row: Object, action: str) -> Response:
        match action:
            case "playbooks":
                return Response(200, self._api.playbooks(row))
            case "stdout":
                text = self._api.jobs.output(row)
                is_text = self._request.query.get("format", ["json"])[0].startswith("txt")
                return Response(200, text, content_type="text/plain") if is_text else Response(200, {"content": text})
            case "cancel":
                return Response(200, {"can_cancel": not row["finished"]})
            case "launch":
                return Response(200, self._launch_form(kind, row))
        return Response(200, {f"can_{action}": True})

    def _create_approval(self, node: Object) -> Response:
        """The step of a workflow that waits for a person, which its node alone has."""
        kind = self._store.kinds["workflow_approval_templates"]
        row = self._write(kind, self._request.fields, None)
        node["unified_job_template"] = row["id"]
        return Response(201, self._views.render((kind, row)))

    def _launch_form(self, kind: Kind, row: Object) -> Object:
        prompts = {item.name: row[item.name] for item in kind.fields if item.name.startswith("ask_")}
        survey = self._api.surveys.of(kind, row)
        needed = [question["variable"] for question in survey.get("spec", []) if question["required"]]
        return prompts | {
            "can_start_without_user_input": not needed,
            "survey_enabled": row["survey_enabled"],
            "variables_needed_to_start": needed,
        }

    def _launch(self, kind: Kind, row: Object) -> Response:
        if not self._api.licensed:
            raise _unlicensed()
        job_kind, job, ignored = self._api.jobs.launch(kind, row, self._request)
        return Response(201, {job_kind.type: job["id"], "ignored_fields": ignored, **self._views.render((job_kind, job))})

    # Descriptions

    def _options(self, kind: Kind, write: str, attach: bool) -> Response:
        allowed = ["GET", "HEAD", "OPTIONS", *([write] if write else [])]
        actions: Object = {"GET": {item.name: _described(item) for item in kind.fields}}
        if write and may_write(self._user):
            actions[write] = {item.name: _described(item) for item in kind.fields if not item.read_only}
            if attach:
                actions[write]["id"] = {"type": "integer", "required": False, "label": "Database ID"}
        body = {
            "name": kind.label,
            "description": f"# {kind.label}",
            "types": [kind.type],
            "actions": actions,
            "search_fields": [name for name in ("description", "name", "username") if kind.field(name)],
            "related_search_fields": [],
            "max_page_size": 200,
        }
        return Response(200, body, {"Allow": ", ".join(allowed)})


def duplicate(error: Duplicate) -> Any:
    """AWX's three ways to say that a name is taken."""
    if error.fields == ("username",):
        return {"username": ["A user with that username already exists."]}
    if len(error.fields) == 1:
        return {error.fields[0]: [f"{error.kind.label} with this {_label(error.fields[0])} already exists."]}
    if error.kind.collection in COMBINED:
        return {"__all__": [f"{error.kind.model} with this ({', '.join(error.fields)}) combination already exists."]}
    *first, last = (_label(name) for name in error.fields)
    return {"__all__": [f"{error.kind.label} with this {', '.join(first)} and {last} already exists."]}


def _label(name: str) -> str:
    return re.sub("_", " ", name).capitalize()


def _described(item: Field) -> Object:
    described: Object = {"type": item.type, "required": item.required, "label": _label(item.name), "help_text": "", "filterable": True}
    if not item.required:
        described["default"] = item.default
    if item.choices:
        described["choices"] = [[choice, str(choice)] for choice in item.choices]
    return described


def _unlicensed() -> Refused:
    return Refused(403, {"detail": "License is missing."})


def playbooks_of(checkout: Path) -> list[str]:
    """The playbooks that a project with this checkout has."""
    return sorted(str(file.relative_to(checkout)) for file in checkout.glob("playbooks/*.yml"))
