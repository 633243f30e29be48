"""How a kind of object is described: its fields, what is unique, what it refers to. The tables of kinds are in other files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ENCRYPTED = "$encrypted$"


@dataclass(frozen=True)
class Field:
    """A field of a kind; its default tells its type.

    `to` is the collection that an id refers to; when the object there is deleted, the field becomes null, or this object is deleted
    too if `cascade`. `as_text` takes an object and keeps it as a string of JSON. `shown` is false for what is only written.
    """

    name: str
    default: Any = ""
    required: bool = False
    read_only: bool = False
    to: str = ""
    cascade: bool = False
    choices: tuple[Any, ...] = ()
    as_text: bool = False
    shown: bool = True

    @property
    def type(self) -> str:
        if self.to:
            return "id"
        if self.choices:
            return "choice"
        names = {bool: "boolean", int: "integer", dict: "json", list: "list"}
        return names.get(type(self.default), "string")


@dataclass(frozen=True)
class Kind:
    """A kind of object, found at `collection`.

    `unique` are sets of fields that no two objects share. Kinds of one `table` share their ids. `links` are lists of other objects by
    relation, with their collection; `children` are lists of the objects that refer to this one, with their collection and field.
    `actions` are further addresses below an object. `roles` can be granted on it.
    """

    collection: str
    type: str
    label: str
    fields: tuple[Field, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    table: str = ""
    links: Mapping[str, str] = dataclasses.field(default_factory=dict)
    children: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    actions: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("GET", "POST", "PATCH", "PUT", "DELETE")

    @property
    def ids(self) -> str:
        return self.table or self.collection

    @property
    def model(self) -> str:
        """The name of AWX's class, which its messages contain."""
        return "".join(word.capitalize() for word in self.type.split("_"))

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


def text(*names: str, required: bool = False) -> tuple[Field, ...]:
    return tuple(Field(name, required=required) for name in names)


def flags(*names: str, default: bool = False) -> tuple[Field, ...]:
    return tuple(Field(name, default) for name in names)


def numbers(**defaults: int) -> tuple[Field, ...]:
    return tuple(Field(name, default) for name, default in defaults.items())


def references(**collections: str) -> tuple[Field, ...]:
    return tuple(Field(name, None, to=collection) for name, collection in collections.items())


def owner(name: str, collection: str) -> Field:
    """A reference without which the object does not exist."""
    return Field(name, None, required=True, to=collection, cascade=True)


def read_only(**defaults: Any) -> tuple[Field, ...]:
    return tuple(Field(name, default, read_only=True) for name, default in defaults.items())
