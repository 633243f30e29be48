# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A document with the variables of infra.aap_configuration, as objects. It checks what needs no platform, and talks to none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..common.text import did_you_mean
from ..common.types import Object
from .errors import InvalidDocument
from .kinds import DOCUMENT_KEYS, ENVIRONMENT, INVENTORY, KINDS, LAUNCHED, PROMPTS, ROLE_TARGETS, ROLES, TEAMS, TEMPLATES, USERS, WORKFLOWS
from .model import Association, Field, Kind, Reference

EDGES = ("success_nodes", "failure_nodes", "always_nodes")
STATES = ("present", "absent")
ACTIVATION_STATES = (*STATES, "enabled", "disabled")
NODE = Kind(
    "simplified_workflow_nodes",
    "node",
    "controller",
    "workflow_job_template_nodes",
    fields=(Field("all_parents_must_converge"), *PROMPTS),
    references=(Reference("unified_job_template", LAUNCHED), INVENTORY, ENVIRONMENT),
    name_field="identifier",
)
# What an export has beside the objects, and the type that it gives a launched object.
TYPES = {"job_template": "controller_templates", "workflow_job_template": "controller_workflows", "project": "controller_projects"}


@dataclass(frozen=True)
class Named:
    """The name of a referenced object, as far as the document tells it apart from others. An empty name is none."""

    name: str
    organization: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Node:
    """A node of a workflow: it launches something or waits for an approval, and continues with other nodes."""

    identifier: str
    values: Mapping[str, Any]
    approval: Object | None
    edges: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Item:
    """An object of the document. `values` has its fields, its references as Named and its lists as tuples of Named."""

    kind: Kind
    name: str
    where: str
    state: str = "present"
    values: Mapping[str, Any] = field(default_factory=dict)
    survey: Object | None = None
    nodes: tuple[Node, ...] | None = None
    event_streams: tuple[Object, ...] | None = None

    @property
    def scope(self) -> str:
        """The name of what the name is unique in."""
        named = self.values.get(self.kind.scope) if self.kind.scope else None
        return named.name if isinstance(named, Named) else ""

    @property
    def organization(self) -> str:
        named = self.values.get("organization")
        return named.name if isinstance(named, Named) else ""

    @property
    def called(self) -> str:
        return f"{self.kind.title} {self.name}"

    def named(self, *, deferred: bool | None = None) -> Iterator[tuple[Reference | Association, Named]]:
        """Every object that this one refers to. With `deferred`, only references that are, or are not, deferred."""
        members: list[Reference | Association] = [*self.kind.references, *self.kind.associations]
        for member in members:
            if member.name in self.values and deferred in (None, member.deferred):
                value = self.values[member.name]
                for named in value if isinstance(value, tuple) else (value,):
                    if named.name:
                        yield member, named


@dataclass(frozen=True)
class Grant:
    """A role of a user or a team on an object."""

    role: str
    principal_kind: str
    principal: Named
    target_kind: str
    target: Named
    where: str
    state: str = "present"

    @property
    def called(self) -> str:
        on = KINDS[self.target_kind].title
        return f"{KINDS[self.principal_kind].title} {self.principal.name}: {self.role} on {on} {self.target.name}"


@dataclass(frozen=True)
class Document:
    items: tuple[Item, ...]
    grants: tuple[Grant, ...] = ()

    def of(self, key: str) -> list[Item]:
        return [item for item in self.items if item.kind.key == key]

    def wanted(self) -> list[Item]:
        return [item for item in self.items if item.state != "absent"]


def read(content: Mapping[str, Any]) -> Document:
    """The document; InvalidDocument with everything that is wrong with it."""
    problems: list[str] = []
    items: list[Item] = []
    grants: list[Grant] = []
    for key, objects in content.items():
        if key not in DOCUMENT_KEYS:
            problems.append(f"{key} is not a key of a document{did_you_mean(str(key), DOCUMENT_KEYS)}: remove it, or correct its name.")
        elif not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
            problems.append(f"{key} is not a list of objects: write each of them as an entry that begins with a dash.")
        elif key == ROLES:
            for number, entry in enumerate(objects):
                grants += _grants(entry, f"{key}[{number}]", problems)
        else:
            for number, entry in enumerate(objects):
                if item := _item(KINDS[key], entry, f"{key}[{number}]", problems, grants):
                    items.append(item)
    problems += _duplicates(items)
    problems += [problem for item in items if item.nodes for problem in _node_problems(item)]
    problems += _cycles(items)
    if problems:
        raise InvalidDocument(problems)
    return Document(tuple(items), tuple(dict.fromkeys(grants)))


# Objects


def _item(kind: Kind, entry: Object, where: str, problems: list[str], grants: list[Grant]) -> Item | None:
    entry = _flattened(entry)
    name = entry.pop(kind.name_field, None)
    if not isinstance(name, str) or not name:
        problems.append(f"{where} has no {kind.name_field}: add one.")
        return None
    where = f"{where} ({name})"
    states = ACTIVATION_STATES if kind.key == "eda_rulebook_activations" else STATES
    state = str(entry.pop("state", "present"))
    if state not in states:
        problems.append(f"{where}: state is {state}; set one of {', '.join(states)}.")
    survey = _survey(kind, entry, where, problems)
    nodes = _nodes(kind, entry, where, problems)
    streams = entry.pop("event_streams", None) if kind.key == "eda_rulebook_activations" else None
    roles = entry.pop("roles", None)
    values = _values(kind, entry, where, problems)
    if state in ("enabled", "disabled"):
        values["enabled"] = state == "enabled"
    item = Item(kind, name, where, state, values, survey, nodes, _streams(streams, where, problems))
    if isinstance(roles, dict) and kind.key in ROLE_TARGETS.values():
        grants += _grants_on(item, roles)
    elif roles is not None:
        problems.append(f"{where}: roles cannot be set on a {kind.title}: remove them.")
    return item


def _flattened(entry: Object) -> Object:
    """An object of an export has its lists under `related`."""
    related = entry.get("related")
    flat = {name: value for name, value in entry.items() if name != "related"}
    return {**(related if isinstance(related, dict) else {}), **flat}


def _values(kind: Kind, entry: Object, where: str, problems: list[str]) -> Object:
    members = {alias: member for member in kind.members() for alias in (member.name, *member.aliases)}
    values: Object = {}
    for name, value in entry.items():
        if name in kind.ignored:
            continue
        member = members.get(name)
        if member is None:
            problems.append(f"{where}: a {kind.title} has no field {name}{did_you_mean(name, members)}: remove it, or correct its name.")
        elif isinstance(member, Field):
            values[member.name] = value
        elif isinstance(member, Reference):
            values[member.name] = _named(value, f"{where}: {name}", problems)
        elif isinstance(value, list):
            found = tuple(_named(each, f"{where}: {name}", problems) for each in value)
            values[member.name] = tuple(dict.fromkeys(named for named in found if named.name))
        elif value is not None:
            problems.append(f"{where}: {name} is not a list: write it as a list of names.")
    return values


def _named(value: Any, where: str, problems: list[str]) -> Named:
    if value is None or isinstance(value, str):
        return Named(value or "")
    if isinstance(value, dict) and isinstance(value.get("name") or value.get("username"), str):
        organization = value.get("organization") or ""
        if isinstance(organization, dict):
            organization = organization.get("name") or ""
        return Named(str(value.get("name") or value["username"]), str(organization), TYPES.get(str(value.get("type") or ""), ""))
    problems.append(f"{where} is not a reference: write the name of the object, or a dictionary with name and organization.")
    return Named("")


def _survey(kind: Kind, entry: Object, where: str, problems: list[str]) -> Object | None:
    if not kind.survey:
        return None
    given = [entry.pop(name) for name in ("survey_spec", "survey") if name in entry]
    if not given or given[0] is None:
        return None
    if not isinstance(given[0], dict):
        problems.append(f"{where}: survey_spec is not a dictionary with name, description and spec.")
        return None
    survey: Object = given[0]
    if survey and not survey.get("spec"):
        problems.append(f"{where}: survey_spec has no questions: add them as spec, or set survey_spec to an empty dictionary.")
    return survey


def _streams(streams: Any, where: str, problems: list[str]) -> tuple[Object, ...] | None:
    """The event streams of an activation, each in the place of a source of its rulebook."""
    if streams is None:
        return None
    found = [stream for stream in streams if isinstance(stream, dict)] if isinstance(streams, list) else []
    well = [stream for stream in found if stream.get("event_stream") and ("source_name" in stream) != ("source_index" in stream)]
    if not isinstance(streams, list) or len(well) != len(streams):
        problems.append(f"{where}: each of event_streams needs event_stream, and one of source_name and source_index.")
    return tuple(well)


# Workflows


def _nodes(kind: Kind, entry: Object, where: str, problems: list[str]) -> tuple[Node, ...] | None:
    if not kind.nodes:
        return None
    given = [entry.pop(name) for name in ("simplified_workflow_nodes", "workflow_nodes") if name in entry]
    if not given or given[0] is None:
        return None
    if not isinstance(given[0], list) or not all(isinstance(node, dict) and node.get("identifier") for node in given[0]):
        problems.append(f"{where}: its nodes are not a list of objects with an identifier.")
        return None
    return tuple(_node(node, f"{where}: node {node['identifier']}", problems) for node in given[0] if node.get("state") != "absent")


def _node(entry: Object, where: str, problems: list[str]) -> Node:
    entry = _flattened(entry)
    identifier = str(entry.pop("identifier"))
    for name in ("state", "workflow", "workflow_job_template"):
        entry.pop(name, None)
    edges = {edge: tuple(_identifier(each) for each in entry.pop(edge, None) or []) for edge in EDGES}
    approval, organization = entry.pop("approval_node", None), entry.pop("lookup_organization", "")
    template = entry.get("unified_job_template")
    if isinstance(template, dict) and template.get("type") == "workflow_approval":
        # An export has an approval as what is launched.
        approval = {name: template[name] for name in ("name", "description", "timeout") if name in template}
        entry.pop("unified_job_template")
    if approval is not None and not (isinstance(approval, dict) and approval.get("name")):
        problems.append(f"{where}: approval_node has no name: add one.")
        approval = None
    # Lists of an export that are empty say nothing.
    values = _values(NODE, {name: value for name, value in entry.items() if value != []}, where, problems)
    launched = values.get("unified_job_template")
    if isinstance(launched, Named) and organization:
        values["unified_job_template"] = Named(launched.name, str(organization), launched.kind)
    if approval is None and not (isinstance(launched, Named) and launched.name):
        problems.append(f"{where} launches nothing: set unified_job_template or approval_node.")
    return Node(identifier, values, approval, edges)


def _identifier(value: Any) -> str:
    return str(value.get("identifier")) if isinstance(value, dict) else str(value)


def _node_problems(item: Item) -> list[str]:
    nodes = item.nodes or ()
    known = [node.identifier for node in nodes]
    problems = [
        f"{item.where}: two nodes have the identifier {name}: rename one." for name in dict.fromkeys(known) if known.count(name) > 1
    ]
    problems += [
        f"{item.where}: node {node.identifier} continues with {following}, which is not one of its nodes{did_you_mean(following, known)}."
        for node in nodes
        for edge in EDGES
        for following in node.edges[edge]
        if following not in known
    ]
    following = {node.identifier: [next_one for edge in EDGES for next_one in node.edges[edge]] for node in nodes}
    if cycle := find_cycle(following, lambda name: following.get(name, [])):
        problems.append(f"{item.where} has a cycle: {' -> '.join(cycle)}. Remove one of these edges.")
    return problems


def _cycles(items: Iterable[Item]) -> list[str]:
    """Workflows that launch each other in a cycle."""
    workflows = {item.name: item for item in items if item.kind.key == WORKFLOWS and item.nodes}
    templates = {item.name for item in items if item.kind.key == TEMPLATES}

    def launched(name: str) -> list[str]:
        named = [node.values.get("unified_job_template") for node in workflows[name].nodes or ()]
        return [each.name for each in named if isinstance(each, Named) and each.name in workflows and each.name not in templates]

    cycle = find_cycle(workflows, launched)
    return [f"The launches of workflows form a cycle: {' -> '.join(cycle)}. Remove one of these nodes."] if cycle else []


def find_cycle(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> list[str]:
    """The first cycle in a graph, its first name also last; empty without one."""
    done: set[str] = set()
    for start in names:
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(following(start)))] if start not in done else []
        path = [start] if stack else []
        while stack:
            name, rest = stack[-1]
            after = next(rest, None)
            if after is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif after in path:
                return [*path[path.index(after) :], after]
            elif after not in done:
                stack.append((after, iter(following(after))))
                path.append(after)
    return []


# Roles


def _grants(entry: Object, where: str, problems: list[str]) -> list[Grant]:
    entry = dict(entry)
    state, organization = str(entry.pop("state", "present")), str(entry.pop("lookup_organization", "") or "")
    roles = _names(entry, "role", "roles")
    principals = [(USERS, name) for name in _names(entry, "user", "users")] + [(TEAMS, name) for name in _names(entry, "team", "teams")]
    targets = [
        (kind, name)
        for names, kind in ROLE_TARGETS.items()
        for name in _names(entry, {"inventories": "inventory"}.get(names, names.removesuffix("s")), names)
    ]
    if entry:
        allowed = ("role", "roles", "user", "users", "team", "teams", "lookup_organization", "state", *ROLE_TARGETS)
        problems += [f"{where}: a role has no field {name}{did_you_mean(name, allowed)}: remove it." for name in entry]
    missing = [what for what, found in (("a role", roles), ("a user or a team", principals), ("an object", targets)) if not found]
    if missing:
        problems.append(f"{where} names no role on an object: add {' and '.join(missing)}.")
    return [
        Grant(role, kind, Named(name), target_kind, Named(target, "" if target_kind == "aap_organizations" else organization), where, state)
        for role in roles
        for kind, name in principals
        for target_kind, target in targets
    ]


def _grants_on(item: Item, roles: Mapping[str, Any]) -> list[Grant]:
    """The roles that an object has as its own field."""
    return [
        Grant(role, kind, Named(str(name)), item.kind.key, Named(item.name, item.organization), item.where)
        for role, principals in roles.items()
        for kind, names in ((USERS, "users"), (TEAMS, "teams"))
        for name in (principals or {}).get(names) or []
    ]


def _names(entry: Object, one: str, many: str) -> list[str]:
    found = [entry.pop(one, None), *(entry.pop(many, None) or [])]
    return [str(name) for name in found if name]


def _duplicates(items: Iterable[Item]) -> list[str]:
    seen: dict[tuple[str, str, str], Item] = {}
    problems = []
    for item in items:
        key = (item.kind.key, "" if item.kind.unique else item.scope, item.name)
        first = seen.setdefault(key, item)
        if first is not item:
            problems.append(f"{item.where} and {first.where.partition(' ')[0]} are the same {item.kind.title}: remove or rename one.")
    return problems
