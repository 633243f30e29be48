# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the platform has: the objects of the kinds that a document or a ledger names, read in as few requests as possible.

Each kind is one paged list. Most of what objects refer to is in the lists already, as `summary_fields`; the rest is asked for many
objects at once. `Snapshot` is what was read; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..common.types import Object
from ..kube.errors import KubeError, NotFound
from .client import PlatformApi
from .document import NODE, Document, Item, Named
from .kinds import ACTIVATIONS, EDA_ORGANIZATIONS, EVENT_STREAMS, KINDS, RULEBOOKS, TEAMS
from .ledger import Ledger
from .model import Association, Kind, Reference

FilterKey = tuple[str, str]  # kind and association


@dataclass
class Snapshot:
    """Objects by kind and id. `lists` has the ids in associations that the objects themselves do not show."""

    objects: dict[str, dict[int, Object]] = field(default_factory=dict)
    lists: dict[FilterKey, dict[int, set[int]]] = field(default_factory=dict)
    surveys: dict[int, Object] = field(default_factory=dict)
    nodes: dict[int, list[Object]] = field(default_factory=dict)
    roles: dict[str, set[int]] = field(default_factory=dict)  # of a principal, as `teams/5`

    def has(self, kind: str) -> bool:
        return kind in self.objects

    def candidates(self, kind: Kind, name: str) -> list[Object]:
        return [found for found in self.objects.get(kind.key, {}).values() if found.get(kind.name_field) == name]

    def find(self, item: Item) -> list[Object]:
        """The objects that an item may be. More than one where the document does not say which."""
        found = self.candidates(item.kind, item.name)
        if not item.kind.scope or item.kind.unique or not item.scope:
            return found
        return [each for each in found if self.name_of(item.kind, item.kind.reference(item.kind.scope), each) == item.scope]

    def name_of(self, kind: Kind, reference: Reference, found: Object) -> str:
        """The name of what an object refers to; empty for nothing, or where it is not known."""
        summary = embedded(kind, reference, found)
        if name := summary.get("name"):
            return str(name)
        identity = reference_id(reference, found)
        for key in reference.kinds:
            if identity in self.objects.get(key, {}):
                return str(self.objects[key][identity].get(KINDS[key].name_field) or "")
        if reference.kinds == (EDA_ORGANIZATIONS,):
            return self._eda_organizations().get(identity or 0, "")
        return ""

    def _eda_organizations(self) -> dict[int, str]:
        """Organizations that some object of EDA shows with their names; other lists have only ids."""
        shown = [found.get("organization") for objects in self.objects.values() for found in objects.values()]
        return {each["id"]: str(each["name"]) for each in shown if isinstance(each, dict) and "id" in each and "name" in each}

    def eda_organization(self, name: str) -> int | None:
        known = {found: identity for identity, found in self._eda_organizations().items()}
        known |= {str(found.get("name")): identity for identity, found in self.objects.get(EDA_ORGANIZATIONS, {}).items()}
        return known.get(name)


def embedded(kind: Kind, reference: Reference, found: Object) -> Object:
    """What an object shows of what it refers to, at most its id, name and type."""
    name = reference.api_name.removesuffix("_id")
    shown = found.get("summary_fields") or {} if kind.api == "controller" else found
    value = shown.get(name)
    if isinstance(value, dict):
        return value
    if kind.key == ACTIVATIONS and reference.kinds == (RULEBOOKS,):
        return {"id": found.get("rulebook_id"), "name": found.get("rulebook_name") or ""}
    return {}


def reference_id(reference: Reference, found: Object) -> int | None:
    value = found.get(reference.api_name)
    if value is None:
        value = found.get(reference.api_name.removesuffix("_id"))
    if isinstance(value, dict):
        value = value.get("id")
    return value if isinstance(value, int) else None


@dataclass(frozen=True)
class _Filter:
    """A list of objects by what is in one of their associations."""

    key: FilterKey
    path: str
    related: str
    identities: list[int]
    named: bool


class SnapshotReader:
    def __init__(self, api: PlatformApi) -> None:
        self._api = api
        self.snapshot = Snapshot()

    def read(self, document: Document, ledger: Ledger) -> Snapshot:
        """Everything that a plan for the document needs."""
        named = {item.kind.key for item in document.items} | ledger.kinds()
        named |= {grant.target_kind for grant in document.grants} | {grant.principal_kind for grant in document.grants}
        self._read_kinds(named & KINDS.keys())
        while missing := self._missing(document):
            self._read_kinds(missing)
        self._read_lists(document)
        self._read_nodes(document)
        self._read_surveys(document, ledger)
        self._read_roles(document)
        return self.snapshot

    def read_kinds(self, kinds: Iterable[str]) -> Snapshot:
        """All objects of these kinds, with their lists, surveys and nodes: for an export."""
        self._read_kinds(set(kinds))
        return self.snapshot

    def _read_kinds(self, kinds: set[str]) -> None:
        # One by itself: the first request to the controller also finds where it is.
        ordered = sorted(kinds, key=lambda key: (KINDS[key].api != "controller", key))
        results = [self._list(key) for key in ordered[:1]] + _checked(self._api.in_parallel(self._list, ordered[1:]))
        for key, found in zip(ordered, results, strict=True):
            self.snapshot.objects[key] = {each["id"]: each for each in found if not each.get("pending_deletion")}

    def _list(self, key: str) -> list[Object]:
        kind = KINDS[key]
        try:
            return self._api.list_all(kind.api, kind.path, f"list {kind.title}s")
        except NotFound as error:
            if kind.api == "controller":
                raise
            raise NotFound(
                f"list {kind.title}s: {self._api.access.url} has no EDA; set aap_hostname to the address of the gateway of AAP, or remove "
                "the keys with eda_ from the document."
            ) from error

    def _missing(self, document: Document) -> set[str]:
        """Kinds that are only referenced, and that a reference needs: the object does not exist yet, or refers to another one."""
        missing: set[str] = set()
        for item in document.wanted():
            found = self.snapshot.find(item)
            for member, named in item.named():
                missing |= self._needed(document, item, member, named, found)
            for node in item.nodes or ():
                for reference in NODE.references:
                    value = node.values.get(reference.name)
                    if isinstance(value, Named) and value.name:
                        missing |= self._unread(document, reference.kinds, value.name)
            for stream in item.event_streams or ():
                missing |= self._unread(document, (EVENT_STREAMS,), str(stream["event_stream"]))
            if item.kind.secrets == "inputs" and not found:
                missing |= {item.kind.reference("credential_type").kinds[0]}
        return {kind for kind in missing if not self.snapshot.has(kind)}

    def _needed(self, document: Document, item: Item, member: Reference | Association, named: Named, found: list[Object]) -> set[str]:
        if isinstance(member, Association):
            shown = len(found) == 1 and member.reading != "filter" and named.name in names_in(member, found[0])
            return set() if shown else {member.kind}
        if member.kinds == (EDA_ORGANIZATIONS,) and self.snapshot.eda_organization(named.name) is not None:
            return set()
        if member.kinds == (RULEBOOKS,):
            project = next(
                (each for each in document.items if each.kind.key == "eda_projects" and each.name == item.values["project"].name), None
            )
            if project and not self.snapshot.find(project):
                return set()  # the platform knows its rulebooks after the project was imported
        if len(found) == 1 and self.snapshot.name_of(item.kind, member, found[0]) == named.name:
            return set()
        return self._unread(document, member.kinds, named.name)

    def _unread(self, document: Document, kinds: Iterable[str], name: str) -> set[str]:
        known = any(item.name == name for key in kinds for item in document.of(key)) or any(
            self.snapshot.candidates(KINDS[key], name) for key in kinds
        )
        return set() if known else set(kinds)

    # What lists of objects do not show

    def _read_lists(self, document: Document) -> None:
        for item in document.wanted():
            for association in item.kind.associations:
                for found in self.snapshot.find(item) if association.name in item.values else ():
                    self._begin_list(item.kind, association, found)
        todo = [
            each
            for kind in KINDS.values()
            for association in kind.associations
            if association.reading == "filter" and (kind.key, association.name) in self.snapshot.lists
            for each in self._fewest(document, kind, association)
        ]

        def ask(each: _Filter) -> list[Object]:
            query = {f"{each.related}__in": ",".join(map(str, each.identities))}
            return self._api.list_all("controller", each.path, f"list {each.path} by {each.related}", query)

        for each, found in zip(todo, _checked(self._api.in_parallel(ask, todo)), strict=True):
            ours = self.snapshot.lists[each.key]
            for identity in {user["id"] for user in found} & ours.keys():
                if each.named:
                    ours[identity] |= set(each.identities)
                else:
                    self._read_list(each.key, identity)

    def _begin_list(self, kind: Kind, association: Association, found: Object) -> None:
        if association.reading == "filter":
            self.snapshot.lists.setdefault((kind.key, association.name), {})[found["id"]] = set()
        elif is_cut(association, found):
            self._read_list((kind.key, association.name), found["id"])

    def _fewest(self, document: Document, kind: Kind, association: Association) -> list[_Filter]:
        """Filters, unless it takes fewer requests to read the list of each object."""
        key = (kind.key, association.name)
        filters, users = self._filters(document, kind, association), list(self.snapshot.lists[key])
        if len(users) > len(filters):
            return filters
        for identity in users:
            self._read_list(key, identity)
        return []

    def _filters(self, document: Document, kind: Kind, association: Association) -> list[_Filter]:
        """A request for each object that the document names, and one for all others: a list with one of these differs."""
        key = (kind.key, association.name)
        names = {named.name for item in document.of(kind.key) for named in item.values.get(association.name, ())}
        objects = self.snapshot.objects.get(association.kind, {})
        wanted = [identity for identity, found in objects.items() if found.get("name") in names]
        others = [identity for identity in objects if identity not in wanted]
        asked = [_Filter(key, kind.path, association.related_name, [identity], True) for identity in wanted]
        return asked + ([_Filter(key, kind.path, association.related_name, others, False)] if others else [])

    def read_lists(self, kind: Kind, objects: list[Object]) -> None:
        """The lists of these objects that they do not show, each of them: for an export."""
        hidden = [each for each in kind.associations if each.reading == "filter"]
        todo = [((kind.key, each.name), found["id"]) for each in hidden for found in objects]
        todo += [((kind.key, each.name), found["id"]) for each in kind.associations for found in objects if is_cut(each, found)]
        _checked(self._api.in_parallel(lambda each: self._read_list(*each), todo))

    def _read_list(self, key: FilterKey, identity: int) -> None:
        kind = KINDS[key[0]]
        related = next(each.related_name for each in kind.associations if each.name == key[1])
        found = self._api.list_all("controller", f"{kind.path}/{identity}/{related}", f"list {related} of {kind.title} {identity}")
        self.snapshot.lists.setdefault(key, {})[identity] = {each["id"] for each in found}

    def _read_nodes(self, document: Document) -> None:
        wanted = [found[0]["id"] for item in document.wanted() if item.nodes is not None and (found := self.snapshot.find(item))]
        self.read_nodes(wanted)

    def read_nodes(self, workflows: list[int]) -> None:
        if not workflows:
            return
        self.snapshot.nodes |= {identity: [] for identity in workflows}
        query = {"workflow_job_template__in": ",".join(map(str, workflows))}
        for node in self._api.list_all("controller", NODE.path, "list nodes of workflows", query):
            self.snapshot.nodes.setdefault(node["workflow_job_template"], []).append(node)

    def _read_surveys(self, document: Document, ledger: Ledger) -> None:
        todo = []
        for item in document.wanted():
            found = self.snapshot.find(item)
            if item.survey is not None and len(found) == 1 and not survey_is_known(item, found[0], ledger):
                todo.append((item.kind, found[0]))
        self.read_surveys(todo)

    def read_surveys(self, templates: list[tuple[Kind, Object]]) -> None:
        def ask(each: tuple[Kind, Object]) -> Object:
            kind, found = each
            if not (found.get("survey_enabled") or (found.get("summary_fields") or {}).get("survey")):
                return {}
            return self._api.get("controller", f"{kind.path}/{found['id']}/survey_spec", f"read the survey of {kind.title} {found['name']}")

        for (_kind, found), survey in zip(templates, _checked(self._api.in_parallel(ask, templates)), strict=True):
            self.snapshot.surveys[found["id"]] = survey

    def _read_roles(self, document: Document) -> None:
        principals = {
            f"{'teams' if grant.principal_kind == TEAMS else 'users'}/{found['id']}"
            for grant in document.grants
            for found in self.snapshot.candidates(KINDS[grant.principal_kind], grant.principal.name)
        }

        def ask(principal: str) -> set[int]:
            return {each["id"] for each in self._api.list_all("controller", f"{principal}/roles", f"list roles of {principal}")}

        ordered = sorted(principals)
        self.snapshot.roles = dict(zip(ordered, _checked(self._api.in_parallel(ask, ordered)), strict=True))


def names_in(association: Association, found: Object) -> list[str]:
    return [str(each.get("name")) for each in shown_list(association, found)]


def shown_list(association: Association, found: Object) -> list[Object]:
    """What an object shows of an association: objects with id and name."""
    shown: Any = found.get("summary_fields") or {} if association.reading == "summary" else found
    value: Any = shown.get(association.name) or []
    if isinstance(value, dict):
        value = value.get("results") or []
    return [each if isinstance(each, dict) else {"id": each} for each in value]


def is_cut(association: Association, found: Object) -> bool:
    """Whether an object shows only the beginning of a list."""
    value = (found.get("summary_fields") or {}).get(association.name)
    return isinstance(value, dict) and int(value.get("count") or 0) > len(value.get("results") or [])


def survey_is_known(item: Item, found: Object, ledger: Ledger) -> bool:
    """Whether the template has not been modified since this survey was written, so that nothing has to be read."""
    entry = ledger.entry(item.kind.key, found["id"])
    return bool(
        entry and entry.survey and entry.modified == str(found.get("modified")) and entry.survey == ledger.digest("survey", item.survey)
    )


def _checked(results: Iterable[Any]) -> list[Any]:
    found = list(results)
    for result in found:
        if isinstance(result, KubeError):
            raise result
    return found
