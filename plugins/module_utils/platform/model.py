# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What describes a kind of object of Automation Platform: its fields, references and lists. The kinds themselves are in `kinds`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Api = Literal["controller", "eda"]
# plain: the same value on both sides. variables: an object, or its YAML, in the document and JSON text in the API.
# yaml: text, compared by its content. inverted: a boolean that means the opposite in the API.
Form = Literal["plain", "variables", "yaml", "inverted"]
# summary: the list of the kind shows them in summary_fields. embedded: it shows them in the field itself. filter: the
# list is filtered by them, one request for each of them, however many objects have it.
Reading = Literal["summary", "embedded", "filter"]


@dataclass(frozen=True)
class Field:
    """A field with a value. `api` is its name in the API, where that is another."""

    name: str
    api: str = ""
    form: Form = "plain"
    aliases: tuple[str, ...] = ()

    @property
    def api_name(self) -> str:
        return self.api or self.name


@dataclass(frozen=True)
class Reference:
    """A field that names an object of another kind, or of one of several kinds.

    A `deferred` reference is written after all objects exist: it and the reference back would be a cycle. A `lookup` reference only
    tells which object is meant; the API does not accept it.
    """

    name: str
    kinds: tuple[str, ...]
    api: str = ""
    aliases: tuple[str, ...] = ()
    deferred: bool = False
    lookup: bool = False

    @property
    def api_name(self) -> str:
        return self.api or self.name


@dataclass(frozen=True)
class Association:
    """A list of objects of another kind. With the reading `embedded` it is written with the object, else to its own related list."""

    name: str
    kind: str
    reading: Reading
    related: str = ""
    aliases: tuple[str, ...] = ()
    deferred: bool = False

    @property
    def related_name(self) -> str:
        return self.related or self.name


@dataclass(frozen=True)
class Kind:
    """A kind of object. `key` is its variable in a document, `path` its collection in the API.

    Objects of a kind are told apart by their name and the reference `scope`; names of a kind without a scope are unique in the whole
    platform. A kind without `key` in a document (`read_only`) is only referenced.
    """

    key: str
    title: str
    api: Api
    path: str
    scope: str = ""
    unique: bool = False  # a name can exist once in the platform, although the object has an organization
    fields: tuple[Field, ...] = ()
    references: tuple[Reference, ...] = ()
    associations: tuple[Association, ...] = ()
    # Fields whose values are secrets in part, and which the API shows as $encrypted$ there.
    secrets: str = ""
    survey: bool = False
    nodes: bool = False
    ignored: tuple[str, ...] = ()  # accepted in documents, without effect
    required: tuple[str, ...] = ()
    name_field: str = "name"
    read_only: bool = False
    deletable: bool = True

    def members(self) -> Iterator[Field | Reference | Association]:
        yield from self.fields
        yield from self.references
        yield from self.associations

    def reference(self, name: str) -> Reference:
        return next(reference for reference in self.references if reference.name == name)

    def targets(self) -> set[str]:
        """The kinds that must exist before objects of this kind."""
        named = {kind for reference in self.references if not reference.deferred for kind in reference.kinds}
        return named | {association.kind for association in self.associations if not association.deferred}
