# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cluster templates: find them in installed collections, read what they say of themselves, check an order against one.

A template is a role with a `meta/template.yml`. Nothing here runs a role, talks to a cluster or asks Ansible for its settings: the
caller names the folders that collections are in, and runs the roles that a checked order names.

A template may extend another. Beside `extends`, its `meta/template.yml` then has only what it adds or changes: metadata, and parameters
below `parameters`. These are not in its argument spec, because argument specs cannot inherit: Ansible would refuse every
parameter of the base that is not repeated there. An entry point that the template lacks is its base's; one that it has takes the
place of its base's, and includes that where it wants to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..common.argument_checker import RULES, ArgumentChecker, Options, Problems
from ..common.argument_spec_reader import grouped, read_options
from ..common.argument_values import clip, show
from ..common.text import did_you_mean
from ..providers.model import NodeRequest
from .parameters import describe, parse, schema_of

COLLECTION = "openfleet.clusters"
INSTALL, POST_INSTALL, DELETE = "install", "post_install", "delete"
ENTRY_POINTS = (INSTALL, POST_INSTALL, DELETE)
DEFAULT_DELETE = f"{COLLECTION}.default_delete"  # the role that deletes a cluster through its provider
ID = re.compile(r"[a-zA-Z_][a-zA-Z0-9._]*")  # as the ClusterOrder's CRD has it
MAX_NODES = 1000
SHOWN_PROBLEMS = 20
CHECKER = ArgumentChecker("template")
SCHEMA = "https://json-schema.org/draft/2020-12/schema"

TEXTS = ("title", "description", "provider")
METADATA = (*TEXTS, "default_node_requests", "allowed_resource_classes")


class TemplateError(Exception):
    """The base of the family. The text says what is wrong and what to do; it never holds the value of a secret parameter."""


class UnknownTemplate(TemplateError):
    """No installed collection has a template of that name."""

    def __init__(self, template_id: str, templates: Collection[str]) -> None:
        if ID.fullmatch(template_id):
            full = {name.rpartition(".")[2]: name for name in templates}
            hint = did_you_mean(template_id, [*full, *templates], full)
        else:
            hint = " (the name of a template has letters, digits, dots and underscores)"
        super().__init__(
            f"There is no cluster template {clip(template_id)}{hint}. A name without dots means one of {COLLECTION}, any other template"
            f" is <namespace>.<collection>.<role> of a collection that Ansible finds; {COLLECTION}.cluster_template_info lists them all."
        )
        self.template_id = template_id


class BrokenTemplate(TemplateError):
    """The template itself has a mistake, which its author has to correct."""

    def __init__(self, template_id: str, problem: str) -> None:
        super().__init__(f"Cluster template {template_id} cannot be used: {problem}.")
        self.template_id = template_id
        self.problem = problem


class InvalidOrder(TemplateError):
    """The order asks for what its template does not offer. `problems` has every mistake, each as a sentence without its end."""

    def __init__(self, template_id: str, problems: Sequence[str]) -> None:
        self.template_id = template_id
        self.problems = list(problems)
        text = "; ".join(f"({number}) {problem}" for number, problem in enumerate(self.problems[:SHOWN_PROBLEMS], 1))
        if len(problems) > SHOWN_PROBLEMS:
            text += f"; and {len(problems) - SHOWN_PROBLEMS} more"
        text = f"{len(problems)} mistakes: {text}" if len(problems) > 1 else self.problems[0]
        super().__init__(f"The order does not fit its cluster template {template_id}: {text}.")


@dataclass(frozen=True)
class Checked:
    """What an order comes to: the role to run for the entry point, the parameters and the nodes to give it.

    Parameters are typed and have their defaults. `role` is None if the template has no such entry point. `ignored` has mistakes that
    were passed over, which happens on delete only.
    """

    parameters: dict[str, Any] = field(repr=False)
    node_requests: tuple[NodeRequest, ...]
    role: str | None = None
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Files:
    """What a role's own files say, its base left aside, and what is wrong with them."""

    metadata: Mapping[str, Any]
    extends: str | None
    additions: Mapping[str, Any]  # options and rules, as beside `options` of an argument spec
    entry_points: Mapping[str, Mapping[str, Any]]  # the declaration of template_parameters of each
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class EntryPoint:
    """Which role of a template's line runs, and what it is given: its own parameters of these, or all if it leaves that open."""

    role: str
    parameters: Options
    own: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Contents:
    """What a template comes to together with its bases."""

    title: str
    description: str
    provider: str
    default_node_requests: tuple[NodeRequest, ...]
    allowed_resource_classes: tuple[str, ...]
    entry_points: Mapping[str, EntryPoint]
    lineage: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """One template. Its files are read when something in them is asked for first; all but id, path and problem may raise BrokenTemplate."""

    id: str
    path: Path
    catalogue: Mapping[str, Template] = field(repr=False, compare=False)

    @property
    def title(self) -> str:
        return self._contents.title

    @property
    def description(self) -> str:
        return self._contents.description

    @property
    def provider(self) -> str:
        return self._contents.provider

    @property
    def default_node_requests(self) -> tuple[NodeRequest, ...]:
        return self._contents.default_node_requests

    @property
    def allowed_resource_classes(self) -> tuple[str, ...]:
        """Empty where any class is allowed."""
        return self._contents.allowed_resource_classes

    @property
    def entry_points(self) -> tuple[str, ...]:
        return tuple(self._contents.entry_points)

    @property
    def lineage(self) -> tuple[str, ...]:
        """The ids of this template and of what it extends, the last base first."""
        return self._contents.lineage

    def entry_point(self, entry: str) -> EntryPoint | None:
        return self._contents.entry_points.get(entry)

    def parameters(self, entry: str = INSTALL) -> Options:
        point = self.entry_point(entry)
        return point.parameters if point else Options()

    @property
    def problem(self) -> str | None:
        """What is wrong with the template itself, if anything."""
        return self._outcome if isinstance(self._outcome, str) else None

    @property
    def _contents(self) -> Contents:
        if isinstance(self._outcome, str):
            raise BrokenTemplate(self.id, self._outcome)
        return self._outcome

    @cached_property
    def files(self) -> Files:
        return _read_files(self)

    @cached_property
    def _line(self) -> tuple[list[Template], str | None]:
        """This template, what it extends, what that extends and so on; and why that came to no end, if it did not."""
        line, names = [self], [self.id]
        while (base_id := line[-1].files.extends) is not None:
            try:
                base = resolve(base_id, self.catalogue)
            except UnknownTemplate:
                return line, f"{line[-1].id} extends {clip(base_id)}, which is not installed{did_you_mean(base_id, self.catalogue)}"
            names.append(base.id)
            if base in line:
                return line, f"it extends itself: {' -> '.join(names)}"
            line.append(base)
        return line, None

    @cached_property
    def _outcome(self) -> Contents | str:
        line, problem = self._line
        problems = [text if template is self else f"{template.id}: {text}" for template in line for text in template.files.problems]
        if problem:
            problems.append(problem)
        contents = None if problems else _merge(line, problems)
        return contents if contents and not problems else "; ".join(problems)


# Finding them


def find_templates(collection_roots: Iterable[Path | str]) -> dict[str, Template]:
    """Every template of every collection below these folders, by its full id.

    The folders are those of Ansible's collections path, with or without `ansible_collections` at their end. As for Ansible, a
    collection that is in two of them is the one in the first, as a whole. No file is read here.
    """
    found: dict[str, Template] = {}
    seen: set[str] = set()
    for root in map(Path, collection_roots):
        for collection, folder in _collections(root if root.name == "ansible_collections" else root / "ansible_collections"):
            if collection not in seen:
                seen.add(collection)
                for role in _folders(folder / "roles"):
                    if _is_template(role):
                        name = f"{collection}.{role.name}"
                        found[name] = Template(name, role, found)
    return found


def _collections(root: Path) -> Iterator[tuple[str, Path]]:
    for namespace in _folders(root):
        # Beside collections there are folders such as amazon.aws-10.1.2.info, which ansible-galaxy writes.
        if namespace.name.isidentifier():
            for collection in _folders(namespace):
                if collection.name.isidentifier():
                    yield f"{namespace.name}.{collection.name}", collection


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return sorted(path / entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return []


def _is_template(role: Path) -> bool:
    try:
        return (role / "meta" / "template.yml").is_file()
    except OSError:
        return False


def resolve(template_id: str, templates: Mapping[str, Template]) -> Template:
    """The template that an order's `templateID` means. It may be a broken one, which says so when it is used."""
    full = template_id if "." in template_id else f"{COLLECTION}.{template_id}"
    if full not in templates:
        raise UnknownTemplate(template_id, templates)
    return templates[full]


# Reading them


def _read_files(template: Template) -> Files:
    problems: Problems = []
    if not ID.fullmatch(template.id):
        problems.append("the name of its role has characters that no order can name: use letters, digits and underscores")
    metadata = _load(template.path / "meta", "template.yml", problems)
    extends = metadata.pop("extends", None)
    if extends is not None and not isinstance(extends, str):
        problems.append("meta/template.yml: extends must be the name of a template")
        extends = None
    additions = {rule: metadata.pop(rule) for rule in RULES if extends and rule in metadata}
    additions["options"] = metadata.pop("parameters", None) if extends else None
    allowed = ("extends", *METADATA, "parameters", *RULES) if extends else ("extends", *METADATA)
    problems.extend(
        f"meta/template.yml: {clip(str(key))} is not known{did_you_mean(str(key), allowed)}" for key in metadata if key not in METADATA
    )
    if "parameters" in metadata:
        problems.append("meta/template.yml: parameters is for templates that extend another, all others have it in meta/argument_specs.yml")
    if not problems:
        problems.extend(_text_mistakes(metadata, extends is not None))
    return Files(metadata, extends, additions, _read_entry_points(template, extends is not None, problems), tuple(problems))


def _text_mistakes(metadata: Mapping[str, Any], derived: bool) -> Iterator[str]:
    for key in TEXTS:
        value = metadata.get(key)
        if value is None:
            if not derived:
                yield f"meta/template.yml: {key} is missing"
        elif not isinstance(value, str) or not value.strip():
            yield f"meta/template.yml: {key} must be a string"


def _read_entry_points(template: Template, derived: bool, problems: Problems) -> dict[str, dict[str, Any]]:
    """Those in the argument spec and those with tasks. A template that extends another needs no argument spec."""
    folder = template.path / "meta"
    specs: dict[str, Any] = {}
    if not derived or (folder / "argument_specs.yml").exists():
        specs = _mapping(_load(folder, "argument_specs.yml", problems).get("argument_specs"))
    result = {
        entry: _mapping(_mapping(_mapping(specs.get(entry)).get("options")).get("template_parameters"))
        for entry in ENTRY_POINTS
        if entry in specs or (template.path / "tasks" / f"{entry}.yml").is_file()
    }
    if INSTALL not in result and not derived and not problems:
        problems.append("meta/argument_specs.yml has no entry point install")
    return result


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _load(folder: Path, name: str, problems: Problems) -> dict[str, Any]:
    import yaml  # here, as ansible-test imports this file where there is nothing but Python

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is ten times faster, and not in every PyYAML
    try:
        loaded = yaml.load((folder / name).read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 both are safe
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problems.append(f"meta/{name} is not YAML: {error.problem or error.context}{where}")
        return {}
    except (yaml.YAMLError, UnicodeDecodeError):
        problems.append(f"meta/{name} is not YAML: it has characters that are not text")
        return {}
    except OSError as error:
        problems.append(f"meta/{name} cannot be read: {error.strerror}")
        return {}
    if not isinstance(loaded, dict):
        problems.append(f"meta/{name} must be a mapping")
        return {}
    return loaded


def _merge(line: Sequence[Template], problems: Problems) -> Contents:
    """A template and its bases as one. The line begins with the template itself."""
    metadata = {key: value for template in reversed(line) for key, value in template.files.metadata.items() if value is not None}
    classes = metadata.get("allowed_resource_classes", [])
    if not isinstance(classes, list) or not all(isinstance(name, str) and name for name in classes):
        problems.append("meta/template.yml: allowed_resource_classes must be a list of names")
        classes = []
    mistakes: Problems = []
    defaults = _node_requests(metadata.get("default_node_requests", []), classes, "default_node_requests", mistakes)
    problems.extend(f"meta/template.yml: {mistake}" for mistake in mistakes)
    found = {entry: point for entry in ENTRY_POINTS if (point := _entry_point(line, entry, problems))}
    return Contents(
        title=metadata["title"].strip(),
        description=metadata["description"].strip(),
        provider=metadata["provider"].strip(),
        default_node_requests=tuple(defaults),
        allowed_resource_classes=tuple(classes),
        entry_points=found,
        lineage=tuple(template.id for template in reversed(line)),
    )


def _entry_point(line: Sequence[Template], entry: str, problems: Problems) -> EntryPoint | None:
    runs = next((template for template in line if entry in template.files.entry_points), None)
    if runs is None and entry != DELETE:
        return None
    root = line[-1].files.entry_points
    declared = root.get(entry, {})
    if declared.get("options") is None:
        declared = root[INSTALL]  # an entry point that declares none of its own has those of install
    for template in reversed(line[:-1]):
        declared = _add(declared, template.files.additions)
    mistakes: Problems = []
    parameters = read_options(declared, mistakes)
    problems.extend(mistake for mistake in mistakes if mistake not in problems)
    if runs is None:
        return EntryPoint(DEFAULT_DELETE, parameters)
    own = runs.files.entry_points[entry].get("options")
    if own is not None and runs is not line[-1] and (missing := [name for name in parameters.members if name not in own]):
        problems.append(
            f"{runs.id}: its argument spec of {entry} lists parameters without {', '.join(missing)}, which Ansible would then refuse:"
            " declare what the template adds below parameters in meta/template.yml instead"
        )
    return EntryPoint(runs.id, parameters, None if own is None else tuple(own))


def _add(declared: Mapping[str, Any], additions: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration with what a template adds. Of a parameter that it inherits it may change single words, such as the default."""
    options, added = declared.get("options") or {}, additions.get("options") or {}
    if not isinstance(options, dict) or not isinstance(added, dict):
        return {"options": "not a mapping"}
    merged = {name: _mapping(options.get(name)) | words if isinstance(words, dict) else words for name, words in added.items()}
    rules = {rule: _join(declared.get(rule), additions.get(rule)) for rule in RULES}
    return {"options": options | merged} | rules


def _join(rule: Any, added: Any) -> Any:
    if not rule or not added:
        return rule or added
    if isinstance(rule, dict) and isinstance(added, dict):
        return rule | added
    if isinstance(rule, list) and isinstance(added, list):
        return [*grouped(rule), *grouped(added)]
    return "neither two lists nor two mappings"


# Checking orders


def check(
    template: Template,
    raw_parameters: str | None,
    node_requests: Sequence[NodeRequest | Mapping[str, Any]] | None = None,
    entry: str = INSTALL,
) -> Checked:
    """What the order comes to with this template, or InvalidOrder with all its mistakes.

    `raw_parameters` and `node_requests` are the order's `templateParameters` and `nodeRequests`, the latter as read or as data. What a
    role declares for install only is left out for the other entry points.

    Deleting always goes on: what is wrong with an order must not keep its cluster alive. Its mistakes are in `ignored`.
    """
    problems: Problems = []
    given = parse(raw_parameters, problems)
    if not problems or entry == DELETE:
        parameters = CHECKER.check(template.parameters(entry), given, problems, known=template.parameters(INSTALL).members)
    else:
        parameters = {}
    nodes = _node_requests(node_requests or [], template.allowed_resource_classes, "nodeRequests", problems)
    if problems and entry != DELETE:
        raise InvalidOrder(template.id, problems)
    point = template.entry_point(entry)
    own = parameters if point is None or point.own is None else point.own
    return Checked(
        parameters={name: value for name, value in parameters.items() if name in own},
        node_requests=tuple(nodes) if node_requests else template.default_node_requests,
        role=point.role if point else None,
        ignored=tuple(problems),
    )


def _node_requests(given: Any, allowed: Sequence[str], where: str, problems: Problems) -> list[NodeRequest]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        problems.append(f"{where} must be a list")
        return []
    result: list[NodeRequest] = []
    seen: set[str] = set()
    for index, request in enumerate(node_requests_as_data(given)):
        path = f"{where}[{index}]"
        if not isinstance(request, Mapping):
            problems.append(f"{path} must be an object with resourceClass and numberOfNodes")
            continue
        mistakes: Problems = []
        name, number = request.get("resourceClass"), request.get("numberOfNodes")
        if not isinstance(name, str) or not name:
            mistakes.append(f"{path}.resourceClass is {'missing' if name in (None, '') else 'not a string'}")
        elif allowed and name not in allowed:
            mistakes.append(f"{path}.resourceClass {clip(name)} is not allowed: the template has {', '.join(allowed)}")
        elif name in seen:
            mistakes.append(f"{path}.resourceClass {clip(name)} is there twice: ask once, for the sum")
        else:
            seen.add(name)
        mistakes.extend(_count_mistakes(number, f"{path}.numberOfNodes"))
        problems.extend(mistakes)
        if not mistakes:
            result.append(NodeRequest(str(name), int(str(number))))
    return result


def node_requests_as_data(requests: Iterable[Any]) -> list[Any]:
    """As they are spelt in orders, in templates and for roles. What is no NodeRequest stays as it is."""
    return [
        {"resourceClass": request.resource_class, "numberOfNodes": request.number_of_nodes} if isinstance(request, NodeRequest) else request
        for request in requests
    ]


def _count_mistakes(number: Any, path: str) -> Iterator[str]:
    if number is None:
        yield f"{path} is missing"
    elif isinstance(number, bool) or not isinstance(number, int):
        yield f"{path} must be an integer, not {show(number)}"
    elif number < 1:
        yield f"{path} must be at least 1, not {show(number)}"
    elif number > MAX_NODES:
        yield f"{path} must be at most {MAX_NODES}, not {show(number)}"


# Describing them


def json_schema(template: Template, entry: str = INSTALL) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what an order's `templateParameters` hold."""
    return {"$schema": SCHEMA, "title": template.title, "description": template.description} | schema_of(template.parameters(entry))


def summary(template: Template) -> dict[str, Any]:
    """A template as data, with the same keys for each; for a broken one nearly all are empty, and `problem` says why."""
    broken = template.problem is not None
    return {
        "id": template.id,
        "path": str(template.path),
        "problem": template.problem,
        "extends": None if broken or len(template.lineage) == 1 else template.lineage[-2],
        "title": None if broken else template.title,
        "description": None if broken else template.description,
        "provider": None if broken else template.provider,
        "default_node_requests": [] if broken else node_requests_as_data(template.default_node_requests),
        "allowed_resource_classes": [] if broken else list(template.allowed_resource_classes),
        "entry_points": [] if broken else list(template.entry_points),
        "parameters": [] if broken else describe(template.parameters()),
        "schema": None if broken else json_schema(template),
    }
