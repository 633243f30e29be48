# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A plan: what has to change on the platform, field by field, in the order in which it is applied. `planner` makes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..common.types import Object
from .compare import Comparison
from .document import Item
from .model import Kind
from .nodes import NodeChanges
from .resolve import Target

Action = Literal["create", "update", "delete"]


@dataclass(frozen=True)
class FieldChange:
    """A field before and after, as a document has it and without secrets."""

    field: str
    before: Any
    after: Any


@dataclass
class Change:
    """What to do with one object."""

    action: Action
    kind: Kind
    name: str
    scope: str = ""
    item: Item | None = None
    id: int | None = None
    current: Object = field(default_factory=dict)
    compared: Comparison = field(default_factory=Comparison)
    survey: Object | None = None  # to write; empty to remove it
    nodes: NodeChanges | None = None
    streams: bool = False  # the event streams of an activation differ
    fields: list[FieldChange] = field(default_factory=list)

    @property
    def called(self) -> str:
        return f"{self.kind.title} {self.name}"


@dataclass(frozen=True)
class RoleChange:
    """A role to grant or to revoke. The role of an object that does not exist yet has no id."""

    action: Literal["grant", "revoke"]
    called: str
    role: str
    principal: str  # `teams/5`
    target: Target | None = None
    id: int | None = None


@dataclass
class Plan:
    """All changes: objects to write in groups that need the ones before them, then roles, then deletions."""

    groups: list[list[Change]] = field(default_factory=list)
    roles: list[RoleChange] = field(default_factory=list)
    deletions: list[list[Change]] = field(default_factory=list)
    unchanged: int = 0
    # What belongs to a run although it is not in the ledger, by kind and id: a killed run made it, or the ledger was lost.
    owned: dict[str, set[int]] = field(default_factory=dict)
    matched: dict[int, tuple[Item, Object]] = field(default_factory=dict)  # by id() of the item

    @property
    def changes(self) -> list[Change]:
        return [change for group in (*self.groups, *self.deletions) for change in group]

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.roles
