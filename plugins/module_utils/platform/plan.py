# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What has to change on the platform, field by field, and in which order. Pure functions of a document, a snapshot and a ledger."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..common.text import did_you_mean
from ..common.types import Object
from .compare import Comparison, compare, compare_streams, credential_type
from .document import Document, Grant, Item, Named
from .errors import InvalidDocument
from .kinds import ACTIVATIONS, EDA_ORGANIZATIONS, EVENT_STREAMS, KINDS, ORGANIZATIONS, PROJECTS, RULEBOOKS, TEAMS, TEMPLATES
from .ledger import Ledger
from .model import Kind
from .nodes import NodeChanges, compare_nodes
from .resolve import Resolver, Target, Unresolved
from .snapshot import Snapshot, survey_is_known
from .surveys import compare_survey
from .values import ENCRYPTED

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


def make_plan(document: Document, snapshot: Snapshot, ledger: Ledger) -> Plan:
    """The plan; InvalidDocument with everything that cannot be done."""
    return _Planner(document, snapshot, ledger).plan()


class _Planner:
    def __init__(self, document: Document, snapshot: Snapshot, ledger: Ledger) -> None:
        self._document, self._snapshot, self._ledger = document, snapshot, ledger
        self._resolver = Resolver(document, snapshot)
        self._problems: list[str] = []
        self._plan = Plan()
        self._needs: dict[Item, set[Item]] = {}

    def plan(self) -> Plan:
        changes = [change for item in self._document.items if (change := self._change(item))]
        self._plan.roles = self._roles()
        if self._problems:
            raise InvalidDocument(list(dict.fromkeys(self._problems)))
        self._plan.groups = self._in_groups([change for change in changes if change.action != "delete"])
        self._plan.deletions = in_reverse([*(change for change in changes if change.action == "delete"), *self._left()])
        return self._plan

    # One object

    def _change(self, item: Item) -> Change | None:
        found = self._snapshot.find(item)
        if len(found) > 1:
            self._problem(item, f"the platform has several {item.kind.title}s of that name: add {item.kind.scope}")
            return None
        current = found[0] if found else None
        if item.state == "absent":
            if current is None:
                return None
            return Change("delete", item.kind, item.name, item.scope, id=current["id"], current=current)
        if current is None:
            return self._create(item)
        self._check_organization(item, current)
        self._plan.matched[id(item)] = (item, current)
        change = self._compared(item, current)
        self._note_owner(item, current, equal=not [each for each in change.fields if not _is_unknown_secret(change, each)])
        if not change.fields:
            self._plan.unchanged += 1
            return None
        return change

    def _create(self, item: Item) -> Change:
        for name in item.kind.required:
            value = item.values.get(name)
            if value in (None, "") or (isinstance(value, Named) and not value.name):
                self._problem(item, f"it does not exist yet, and a new {item.kind.title} needs {name}")
        change = self._compared(item, None)
        if ENCRYPTED in change.compared.secrets.values():
            self._problem(item, f"it does not exist yet, and {ENCRYPTED} is not the value of a secret: set the value")
        return change

    def _compared(self, item: Item, current: Object | None) -> Change:
        targets = self._targets(item)
        compared = compare(item, current, targets, self._snapshot, self._ledger)
        identity = current["id"] if current else None
        change = Change("update" if current else "create", item.kind, item.name, item.scope, item, identity, current or {}, compared)
        change.fields = [FieldChange(*each) for each in compared.fields]
        self._compare_survey(change)
        self._compare_nodes(change)
        self._compare_activation(change)
        return change

    def _compare_survey(self, change: Change) -> None:
        item = change.item
        if item is None or item.survey is None or (change.id and survey_is_known(item, change.current, self._ledger)):
            return
        survey = compare_survey(item, change.id, self._snapshot.surveys.get(change.id or 0, {}), self._ledger)
        change.compared.secrets |= survey.secrets
        if survey.fields:
            change.survey = item.survey
            change.fields += [FieldChange(*each) for each in survey.fields]

    def _compare_nodes(self, change: Change) -> None:
        item = change.item
        if item is None or item.nodes is None:
            return
        nodes = compare_nodes(item, self._snapshot.nodes.get(change.id or 0, []), self._resolve, self._snapshot)
        for target in nodes.targets:
            self._need(item, target)
        if nodes.fields:
            change.nodes = nodes
            change.fields += [FieldChange(*each) for each in nodes.fields]

    def _compare_activation(self, change: Change) -> None:
        item = change.item
        if item is None or item.kind.key != ACTIVATIONS:
            return
        for stream in item.event_streams or ():
            if target := self._resolve(item, "event_streams", (EVENT_STREAMS,), Named(str(stream["event_stream"]))):
                self._need(item, target)
        if item.event_streams is not None and (streams := compare_streams(item, change.current or None)):
            change.streams = True
            change.fields.append(FieldChange(*streams))
        if "enabled" not in item.values and not change.current.get("is_enabled"):
            # An activation of a document runs, unless the document says otherwise; a killed run may have left it disabled.
            change.compared.body["is_enabled"] = True
            change.fields.append(FieldChange("enabled", False if change.current else None, True))

    def _targets(self, item: Item) -> dict[str, dict[Named, Target]]:
        """What each reference of the item means, by its field."""
        targets: dict[str, dict[Named, Target]] = {}
        found = self._snapshot.find(item)
        for member, named in item.named():
            kinds = getattr(member, "kinds", None) or (member.kind,)  # type: ignore[union-attr]
            if member.name == "rulebook":
                target = self._rulebook(item, named, found)
            elif found and not any(self._known(key) for key in kinds) and self._shows(item, member, named, found[0]):
                continue
            else:
                target = self._resolve(item, member.name, kinds, named)
            if target:
                targets.setdefault(member.name, {})[named] = target
                if not member.deferred:
                    self._need(item, target)
        if item.kind.key == TEMPLATES:
            self._check_project(item, targets)
        if item.kind.secrets == "inputs":
            self._check_inputs(item, targets)
        return targets

    def _known(self, key: str) -> bool:
        if key == EDA_ORGANIZATIONS:
            return True
        return self._snapshot.has(key)

    def _shows(self, item: Item, member: Any, named: Named, current: Object) -> bool:
        """Whether the object itself shows that it refers to this name, so that its list was not read."""
        if hasattr(member, "kinds"):
            return self._snapshot.name_of(item.kind, member, current) == named.name
        return True

    def _rulebook(self, item: Item, named: Named, found: list[Object]) -> Target | None:
        project = item.values.get("project") or Named("")
        if found and found[0].get("rulebook_name") == named.name and not self._snapshot.has(RULEBOOKS):
            return Target(RULEBOOKS, named.name, found[0].get("rulebook_id"))
        try:
            return self._resolver.rulebook(project, named)
        except Unresolved as error:
            self._problem(item, f"rulebook names {error}")
            return None

    def _resolve(self, item: Item, name: str, kinds: Iterable[str], named: Named) -> Target | None:
        try:
            return self._resolver.resolve(kinds, named, item.organization)
        except Unresolved as error:
            self._problem(item, f"{name} names {error}")
            return None

    def _need(self, item: Item, target: Target) -> None:
        if target.item is not None and target.item is not item:
            self._needs.setdefault(item, set()).add(target.item)

    # Owners

    def _check_organization(self, item: Item, current: Object) -> None:
        if not item.kind.unique or not item.organization:
            return
        other = self._snapshot.name_of(item.kind, item.kind.reference("organization"), current)
        if other and other != item.organization:
            self._problem(
                item,
                f"the name is taken by organization {other}, and two organizations cannot have a {item.kind.title} of the same name: "
                f"rename it, or set organization to {other}",
            )

    def _check_project(self, item: Item, targets: dict[str, dict[Named, Target]]) -> None:
        for target in targets.get("project", {}).values():
            if target.kind == PROJECTS and item.organization and target.organization not in ("", item.organization):
                self._problem(
                    item,
                    f"organization is {item.organization}, and its project belongs to {target.organization}: a job template is in the "
                    "organization of its project, so set the same",
                )

    def _check_inputs(self, item: Item, targets: dict[str, dict[Named, Target]]) -> None:
        description = credential_type(targets, self._snapshot)
        known = [str(each.get("id")) for each in ((description or {}).get("inputs") or {}).get("fields") or []]
        for name in item.values.get("inputs") or {}:
            if description is not None and name not in known:
                self._problem(item, f"inputs has {name}, which its credential type does not have{did_you_mean(name, known)}: remove it")

    def _note_owner(self, item: Item, current: Object, *, equal: bool) -> None:
        """An object that is not in the ledger belongs to us if a killed run was about to make it, or a lost ledger had it."""
        if self._ledger.entry(item.kind.key, current["id"]):
            return
        if (item.kind.key, item.scope, item.name) in self._ledger.pending or (equal and not self._ledger.exists):
            self._plan.owned.setdefault(item.kind.key, set()).add(current["id"])

    def _left(self) -> list[Change]:
        """What we made, and the document no longer has."""
        kept = {(item.kind.key, current["id"]) for item, current in self._plan.matched.values()}
        gone = {(item.kind.key, found["id"]) for item in self._document.items for found in self._snapshot.find(item)}
        left = []
        for key, entries in self._ledger.entries.items():
            for identity, entry in entries.items():
                current = self._snapshot.objects.get(key, {}).get(identity)
                if entry.owned and current and entry.created == created(current) and (key, identity) not in kept | gone:
                    left.append((KINDS[key], current, entry.scope))
        wanted = {(item.kind.key, item.scope, item.name) for item in self._document.items}
        for key, scope, name in self._ledger.pending - wanted:
            kind = KINDS[key]
            for current in self._snapshot.candidates(kind, name):
                found_scope = self._snapshot.name_of(kind, kind.reference(kind.scope), current) if kind.scope else ""
                if found_scope in ("", scope) and not self._ledger.entry(key, current["id"]) and (key, current["id"]) not in kept:
                    left.append((kind, current, scope))
        return [
            Change("delete", kind, str(current.get(kind.name_field)), scope, id=current["id"], current=current)
            for kind, current, scope in left
            if kind.deletable
        ]

    # Roles

    def _roles(self) -> list[RoleChange]:
        changes = [change for grant in self._document.grants if (change := self._role(grant))]
        wanted = {f"{change.id}/{change.principal}" for change in changes if change.id and change.action == "grant"} | self._granted
        changes += [
            RoleChange(
                "revoke", called, called.partition(": ")[2].partition(" on ")[0], key.partition("/")[2], id=int(key.partition("/")[0])
            )
            for key, called in self._ledger.grants.items()
            if key not in wanted
        ]
        return changes

    @property
    def _granted(self) -> set[str]:
        """Roles that the document has and that are granted already."""
        return {f"{identity}/{principal}" for grant in self._document.grants for identity, principal in self._present(grant)}

    def _present(self, grant: Grant) -> list[tuple[int, str]]:
        if grant.state == "absent":
            return []
        found = [(role_id(current, grant.role), principal) for current, principal in self._parties(grant)]
        return [
            (identity, principal) for identity, principal in found if identity in self._snapshot.roles.get(principal, set()) and identity
        ]

    def _parties(self, grant: Grant) -> list[tuple[Object, str]]:
        principal = self._principal(grant, quiet=True)
        target = self._target(grant, quiet=True)
        if not principal or not target or target.id is None:
            return []
        return [(self._snapshot.objects[target.kind][target.id], principal)]

    def _role(self, grant: Grant) -> RoleChange | None:
        principal, target = self._principal(grant), self._target(grant)
        if not principal or not target:
            return None
        if target.id is None:
            return None if grant.state == "absent" else RoleChange("grant", grant.called, grant.role, principal, target)
        current = self._snapshot.objects[target.kind][target.id]
        identity = role_id(current, grant.role)
        if identity is None:
            known = ", ".join(sorted(name.removesuffix("_role") for name in _object_roles(current))) or "none"
            self._problems.append(
                f"{grant.where}: {KINDS[target.kind].title} {target.name} has no role {grant.role}; its roles are {known}."
            )
            return None
        has = identity in self._snapshot.roles.get(principal, set())
        if grant.state == "absent":
            return RoleChange("revoke", grant.called, grant.role, principal, target, identity) if has else None
        return None if has else RoleChange("grant", grant.called, grant.role, principal, target, identity)

    def _principal(self, grant: Grant, *, quiet: bool = False) -> str:
        target = self._party(grant, (grant.principal_kind,), grant.principal, quiet=quiet)
        return f"{'teams' if grant.principal_kind == TEAMS else 'users'}/{target.id}" if target else ""

    def _target(self, grant: Grant, *, quiet: bool = False) -> Target | None:
        return self._party(grant, (grant.target_kind,), grant.target, quiet=quiet)

    def _party(self, grant: Grant, kinds: tuple[str, ...], named: Named, *, quiet: bool) -> Target | None:
        try:
            return self._resolver.resolve(kinds, named, "")
        except Unresolved as error:
            if not quiet:
                self._problems.append(f"{grant.where} names {error}.")
            return None

    # Order

    def _in_groups(self, changes: list[Change]) -> list[list[Change]]:
        by_item = {change.item: change for change in changes if change.item}
        sorter = graphlib.TopologicalSorter({item: self._needs.get(item, set()) for item in self._document.wanted()})
        sorter.prepare()
        groups = []
        while sorter.is_active():
            ready = sorter.get_ready()
            if group := [by_item[item] for item in ready if item in by_item]:
                groups.append(group)
            sorter.done(*ready)
        return groups

    def _problem(self, item: Item, text: str) -> None:
        self._problems.append(f"{item.where}: {text}.")


def kind_order() -> list[str]:
    """The kinds, each after those that it refers to."""
    graph = {key: {target for target in kind.targets() if target != key} for key, kind in KINDS.items()}
    graph[EDA_ORGANIZATIONS] = {ORGANIZATIONS}
    graph[ACTIVATIONS].add(EVENT_STREAMS)
    return list(graphlib.TopologicalSorter(graph).static_order())


def in_reverse(deletions: list[Change]) -> list[list[Change]]:
    """Deletions, those first that others are not referred to by: a group for each kind."""
    order = kind_order()
    groups = {key: [change for change in deletions if change.kind.key == key] for key in reversed(order)}
    return [group for group in groups.values() if group]


def created(current: Object) -> str:
    return str(current.get("created") or current.get("created_at") or "")


def role_id(current: Object, role: str) -> int | None:
    found = _object_roles(current).get(f"{role.removesuffix('_role')}_role") or {}
    return found.get("id")


def _object_roles(current: Object) -> Object:
    return dict((current.get("summary_fields") or {}).get("object_roles") or {})


def _is_unknown_secret(change: Change, changed: FieldChange) -> bool:
    """A secret that may be the same; the platform does not show it, and a lost ledger does not know it."""
    return changed.field in change.compared.secrets and changed.before is not None
