"""Template roles of made-up collections, and a table of parameters: for all tests of templates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openfleet.clusters.plugins.module_utils.templates import catalogue
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import Template, find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder

COLLECTIONS = Path(catalogue.__file__).parents[5]
METADATA = {"title": "A title", "description": "A description.", "provider": "hypershift"}
SECRET = "hunter2-do-not-show"  # noqa: S105 made up
OPTIONS = {
    "text": {"type": "str"},
    "untyped": {},
    "number": {"type": "int"},
    "ratio": {"type": "float"},
    "flag": {"type": "bool"},
    "names": {"type": "list", "elements": "str"},
    "numbers": {"type": "list", "elements": "int"},
    "anything": {"type": "raw"},
    "folder": {"type": "path"},
    "document": {"type": "json"},
    "free": {"type": "dict"},
    "net": {"type": "dict", "options": {"mtu": {"type": "int", "default": 1500}, "name": {"type": "str", "required": True}}},
    "rows": {"type": "list", "elements": "dict", "options": {"id": {"type": "int", "required": True}}},
    "size": {"type": "str", "choices": ["s", "m"]},
    "sizes": {"type": "list", "elements": "str", "choices": ["s", "m"]},
}
ACCEPTED = [
    ("text", "x", "x"),
    ("text", "", ""),
    ("text", "{{ lookup('env', 'HOME') }}", "{{ lookup('env', 'HOME') }}"),
    ("untyped", "x", "x"),
    ("number", 3, 3),
    ("number", "3", 3),
    ("number", " -3 ", -3),
    ("number", 3.0, 3),
    ("ratio", 1, 1.0),
    ("ratio", "0.5", 0.5),
    ("flag", True, True),
    ("flag", "yes", True),
    ("flag", "Off", False),
    ("flag", 0, False),
    ("names", ["a", "b"], ["a", "b"]),
    ("names", [], []),
    ("numbers", [1, "2"], [1, 2]),
    ("anything", {"a": [1, None]}, {"a": [1, None]}),
    ("document", {"a": 1}, '{"a": 1}'),
    ("document", ' {"a": 1} ', '{"a": 1}'),
    ("free", {"a": 1}, {"a": 1}),
    ("net", {"name": "n"}, {"mtu": 1500, "name": "n"}),
    ("net", {"name": "n", "mtu": "9000"}, {"mtu": 9000, "name": "n"}),
    ("rows", [{"id": "1"}], [{"id": 1}]),
    ("size", "m", "m"),
    ("sizes", ["s", "s"], ["s", "s"]),
]


def write_role(root: Path, name: str, metadata: Any, specs: Any = None, tasks: tuple[str, ...] = ()) -> Path:
    """A role `namespace.collection.role`, with `meta/template.yml` and `meta/argument_specs.yml`, each as data or as text."""
    namespace, collection, role = name.split(".", 2)
    path = root / "ansible_collections" / namespace / collection / "roles" / role
    for file, content in {"template.yml": metadata, "argument_specs.yml": specs}.items():
        if content is not None:
            (path / "meta").mkdir(parents=True, exist_ok=True)
            (path / "meta" / file).write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    for entry in tasks:
        (path / "tasks").mkdir(exist_ok=True)
        (path / "tasks" / f"{entry}.yml").write_text("[]\n")
    return path


def specs(options: Any = None, *, entries: tuple[str, ...] = ("install",), **rules: Any) -> dict[str, Any]:
    declared = {"type": "dict", "options": options or {}, **rules}
    return {"argument_specs": {entry: {"options": {"template_parameters": declared}} for entry in entries}}


def a_template(root: Path, options: Any = None, metadata: Mapping[str, Any] | None = None, **rules: Any) -> Template:
    write_role(root, "site.base.one", METADATA | dict(metadata or {}), specs(options, **rules))
    return find_templates([root])["site.base.one"]


def parameters(template: Template, given: Any, **more: Any) -> dict[str, Any]:
    return check(template, json.dumps(given), **more).parameters


def problems(template: Template, given: Any = None, nodes: Any = None) -> list[str]:
    with pytest.raises(InvalidOrder) as caught:
        check(template, given if isinstance(given, str) else json.dumps(given or {}), nodes)
    return caught.value.problems


def named(cases: list[tuple[str, Any, Any]]) -> list[str]:
    return [f"{name} {json.dumps(given)[:30]}" for name, given, _wanted in cases]
