"""The objects of the stand-in, of every kind, with their ids, references and lists. It knows no HTTP and no API's wording."""

from __future__ import annotations

import datetime
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ....plugins.module_utils.common.types import Object
from .kinds import Field, Kind

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Invalid(Exception):
    """A field has a value that it does not take."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class Duplicate(Exception):
    """Another object has the same values in fields that are unique together."""

    def __init__(self, kind: Kind, fields: tuple[str, ...]) -> None:
        super().__init__(f"{kind.label}: {fields}")
        self.kind, self.fields = kind, fields


@dataclass(frozen=True)
class Link:
    """A list of other objects below an object."""

    collection: str
    id: int
    relation: str


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Store:
    """Objects by collection and id. A collection with the name of a table, such as unified_job_templates, has those of all its kinds."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = {kind.collection: kind for kind in kinds}
        self.rows: dict[str, dict[int, Object]] = {name: {} for name in self.kinds}
        self.links: dict[Link, list[int]] = defaultdict(list)
        self._ids: dict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))

    def in_collection(self, collection: str) -> list[Kind]:
        """The kinds of a collection: one, or those that share a table."""
        if collection in self.kinds:
            return [self.kinds[collection]]
        return [kind for kind in self.kinds.values() if kind.table == collection]

    def all(self, collection: str) -> list[tuple[Kind, Object]]:
        found = [(kind, row) for kind in self.in_collection(collection) for row in self.rows[kind.collection].values()]
        return sorted(found, key=lambda item: int(item[1]["id"]))

    def find(self, collection: str, number: Any) -> tuple[Kind, Object] | None:
        for kind in self.in_collection(collection):
            if row := self.rows[kind.collection].get(number):
                return kind, row
        return None

    def named(self, collection: str, **values: Any) -> Object:
        """The one object with these values, for what comes with the platform and for tests."""
        found = [row for row in self.rows[collection].values() if all(row.get(key) == value for key, value in values.items())]
        if len(found) != 1:
            raise LookupError(f"{len(found)} objects in {collection} have {values}")
        return found[0]

    def create(self, kind: Kind, given: Mapping[str, Any], fixed: Mapping[str, Any] = NOTHING) -> Object:
        """A new object. `fixed` sets fields that a client cannot; unknown fields are ignored."""
        values = {**{field.name: self._initial(field, given) for field in kind.fields}, **fixed}
        self._check_unique(kind, values, None)
        time = now()
        row = {"id": next(self._ids[kind.ids]), "created": time, "modified": time, **values}
        self.rows[kind.collection][row["id"]] = row
        return row

    def change(self, kind: Kind, row: Object, given: Mapping[str, Any], fixed: Mapping[str, Any] = NOTHING) -> None:
        changes = {**{field.name: self.clean(field, given[field.name]) for field in kind.fields if _is_given(field, given)}, **fixed}
        self._check_unique(kind, {**row, **changes}, row["id"])
        row |= {**changes, "modified": now()}

    def delete(self, kind: Kind, row: Object) -> None:
        """Delete an object, what cannot be without it, and every mention of it."""
        self.rows[kind.collection].pop(row["id"], None)
        for link in [link for link in self.links if link.collection == kind.collection and link.id == row["id"]]:
            del self.links[link]
        for link, members in self.links.items():
            target = self.kinds[link.collection].links[link.relation]
            if target in (kind.collection, kind.table) and row["id"] in members:
                members.remove(row["id"])
        for other, field in self._references_to(kind):
            for referrer in [item for item in self.rows[other.collection].values() if item[field.name] == row["id"]]:
                if field.cascade:
                    self.delete(other, referrer)
                else:
                    referrer[field.name] = None

    def is_referred_to(self, kind: Kind, row: Object) -> bool:
        return any(
            item[field.name] == row["id"] for other, field in self._references_to(kind) for item in self.rows[other.collection].values()
        )

    def linked(self, kind: Kind, row: Object, relation: str) -> list[tuple[Kind, Object]]:
        members = self.links.get(Link(kind.collection, row["id"], relation), [])
        return [found for member in members if (found := self.find(kind.links[relation], member))]

    def children(self, kind: Kind, row: Object, relation: str) -> list[tuple[Kind, Object]]:
        collection, field = kind.children[relation]
        return [(child, item) for child, item in self.all(collection) if item[field] == row["id"]]

    def clean(self, field: Field, value: Any) -> Any:
        """The value that is kept for what a client sent."""
        if field.to:
            return self._clean_reference(field, value)
        if value is None:
            if field.default is None:
                return None
            if "" in field.choices:
                return ""
            raise Invalid(field.name, "This field may not be null.")
        if field.choices and value not in field.choices:
            raise Invalid(field.name, f'"{value}" is not a valid choice.')
        if field.required and value == "":
            raise Invalid(field.name, "This field may not be blank.")
        if field.as_text and isinstance(value, dict):
            return json.dumps(value)
        return _clean_plain(field, value)

    def _initial(self, field: Field, given: Mapping[str, Any]) -> Any:
        if _is_given(field, given):
            return self.clean(field, given[field.name])
        if field.required and not field.read_only:
            raise Invalid(field.name, "This field is required.")
        return field.default.copy() if isinstance(field.default, dict | list) else field.default

    def _clean_reference(self, field: Field, value: Any) -> int | None:
        if value in (None, ""):
            if field.required:
                raise Invalid(field.name, "This field may not be null.")
            return None
        if isinstance(value, bool) or not str(value).isdigit():
            raise Invalid(field.name, f"Incorrect type. Expected pk value, received {type(value).__name__}.")
        if not self.find(field.to, int(value)):
            raise Invalid(field.name, f'Invalid pk "{value}" - object does not exist.')
        return int(value)

    def _check_unique(self, kind: Kind, values: Object, own: int | None) -> None:
        for fields in kind.unique:
            wanted = [values[name] for name in fields]
            for other in self.rows[kind.collection].values():
                if other["id"] != own and [other[name] for name in fields] == wanted:
                    raise Duplicate(kind, fields)

    def _references_to(self, kind: Kind) -> list[tuple[Kind, Field]]:
        targets = (kind.collection, kind.table or kind.collection)
        return [(other, field) for other in self.kinds.values() for field in other.fields if field.to in targets]


def _is_given(field: Field, given: Mapping[str, Any]) -> bool:
    return field.name in given and not field.read_only


def _clean_plain(field: Field, value: Any) -> Any:
    match field.type:
        case "boolean":
            if str(value).lower() not in ("true", "false"):
                raise Invalid(field.name, "Must be a valid boolean.")
            return str(value).lower() == "true"
        case "integer":
            if isinstance(value, bool) or not str(value).lstrip("-").isdigit():
                raise Invalid(field.name, "A valid integer is required.")
            return int(value)
        case "json":
            if not isinstance(value, dict):
                raise Invalid(field.name, f"Expected a dictionary, got {type(value).__name__}.")
        case "string":
            if field.default is not None and not isinstance(value, str | int | float):
                raise Invalid(field.name, "Not a valid string.")
            return str(value) if field.default is not None else value
    return value
