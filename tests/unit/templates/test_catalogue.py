"""Finding cluster templates in made-up collections, reading them, and checking orders against them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates import catalogue as templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import (
    DEFAULT_DELETE,
    BrokenTemplate,
    Checked,
    InvalidOrder,
    Template,
    TemplateError,
    UnknownTemplate,
    check,
    find_templates,
    json_schema,
    resolve,
    summary,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.parameters import MAX_BYTES

COLLECTIONS = Path(templates.__file__).parents[5]
ROLES = COLLECTIONS / "openfleet" / "clusters" / "roles"
SHIPPED = sorted(role.parents[1].name for role in ROLES.glob("*/meta/template.yml"))
METADATA = {"title": "A title", "description": "A description.", "provider": "hypershift"}
SECRET = "hunter2-do-not-show"  # noqa: S105 made up
PULL = {"pull_secret": "{}"}


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


@pytest.fixture(scope="module")
def shipped() -> dict[str, Template]:
    return find_templates([COLLECTIONS])


# Finding


def test_only_roles_with_a_template_file_are_found_by_their_full_name(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", METADATA, specs())
    write_role(tmp_path, "site.base.no_template", None, specs())
    write_role(tmp_path, "other.thing.two", METADATA, specs())
    assert sorted(find_templates([tmp_path])) == ["other.thing.two", "site.base.one"]


def test_root_may_be_the_folder_of_all_collections_or_the_one_above(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", METADATA, specs())
    assert find_templates([tmp_path / "ansible_collections"]).keys() == find_templates([tmp_path]).keys() == {"site.base.one"}


def test_collection_of_the_first_root_hides_the_other_as_a_whole(tmp_path: Path) -> None:
    write_role(tmp_path / "first", "site.base.one", METADATA | {"title": "First"}, specs())
    write_role(tmp_path / "second", "site.base.one", METADATA | {"title": "Second"}, specs())
    write_role(tmp_path / "second", "site.base.only_there", METADATA, specs())
    write_role(tmp_path / "second", "site.more.two", METADATA, specs())
    found = find_templates([tmp_path / "first", tmp_path / "second"])
    assert sorted(found) == ["site.base.one", "site.more.two"]
    assert found["site.base.one"].title == "First"


def test_missing_roots_files_and_foreign_folders_are_passed_over(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", METADATA, specs())
    write_role(tmp_path, "site.base-1.one", METADATA, specs())
    write_role(tmp_path, "site-2.base.one", METADATA, specs())
    (tmp_path / "ansible_collections" / "README").write_text("")
    (tmp_path / "ansible_collections" / "site" / "empty").mkdir()
    (tmp_path / "ansible_collections" / "site" / "odd").mkdir()
    (tmp_path / "ansible_collections" / "site" / "odd" / "roles").write_text("")
    assert list(find_templates([tmp_path / "nowhere", tmp_path])) == ["site.base.one"]


def test_hundred_collections_are_searched_in_milliseconds_and_nothing_is_parsed(tmp_path: Path) -> None:
    for number in range(100):
        for role in range(10):
            write_role(tmp_path, f"site.collection{number}.role{role}", None, "not: [yaml")
    write_role(tmp_path, "site.collection50.template", "not: [yaml", "not: [yaml")
    times = []
    for _attempt in range(5):
        begin = time.process_time()
        found = find_templates([tmp_path])
        times.append(time.process_time() - begin)
    assert list(found) == ["site.collection50.template"]
    assert min(times) < 0.5


# Names


@pytest.mark.parametrize("name", ["small", "openfleet.clusters.small"])
def test_name_without_dots_means_this_collection(name: str, tmp_path: Path) -> None:
    write_role(tmp_path, "openfleet.clusters.small", METADATA, specs())
    write_role(tmp_path, "site.base.small", METADATA, specs())
    assert resolve(name, find_templates([tmp_path])).id == "openfleet.clusters.small"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("smal", "did you mean openfleet.clusters.small?"),
        ("openfleet.clusters.smal", "did you mean openfleet.clusters.small"),
        ("site.base.big", "did you mean site.base.bigger"),
        ("bigger", "did you mean site.base.bigger?"),
        ("nothing.like_it.at_all", "<namespace>.<collection>.<role>"),
        ("with-dash", "letters, digits, dots and underscores"),
        ("", "letters, digits, dots and underscores"),
    ],
)
def test_unknown_template_is_answered_with_the_nearest_names_and_what_to_do(name: str, nearest: str, tmp_path: Path) -> None:
    write_role(tmp_path, "openfleet.clusters.small", METADATA, specs())
    write_role(tmp_path, "site.base.bigger", METADATA, specs())
    with pytest.raises(UnknownTemplate) as caught:
        resolve(name, find_templates([tmp_path]))
    assert nearest in str(caught.value)
    assert "cluster_template_info" in str(caught.value)
    assert isinstance(caught.value, TemplateError)


# Broken templates

BROKEN: dict[str, tuple[Any, Any, str]] = {
    "no YAML": ("title: [", specs(), "meta/template.yml is not YAML: "),
    "not text": ("title: \x01", specs(), "meta/template.yml is not YAML"),
    "empty": ("", specs(), "meta/template.yml must be a mapping"),
    "a list": ([1], specs(), "meta/template.yml must be a mapping"),
    "no title": ({"description": "d", "provider": "p"}, specs(), "title is missing"),
    "no provider": ({"title": "t", "description": "d"}, specs(), "provider is missing"),
    "a title that is a list": (METADATA | {"title": ["x"]}, specs(), "title must be a string"),
    "a misspelt word": (METADATA | {"allowed_resource_clases": ["a"]}, specs(), "did you mean allowed_resource_classes?"),
    "classes as a string": (METADATA | {"allowed_resource_classes": "fc430"}, specs(), "allowed_resource_classes must be a list"),
    "nodes as a mapping": (METADATA | {"default_node_requests": {"a": 1}}, specs(), "default_node_requests must be a list"),
    "nodes without a class": (METADATA | {"default_node_requests": [{"numberOfNodes": 1}]}, specs(), "resourceClass is missing"),
    "nodes it does not allow": (
        METADATA | {"allowed_resource_classes": ["a"], "default_node_requests": [{"resourceClass": "b", "numberOfNodes": 1}]},
        specs(),
        "default_node_requests[0].resourceClass b is not allowed",
    ),
    "no argument spec": (METADATA, None, "meta/argument_specs.yml cannot be read"),
    "an argument spec of main only": (METADATA, specs(entries=("main",)), "no entry point install"),
    "an argument spec without YAML": (
        METADATA,
        "a: b: c",
        "meta/argument_specs.yml is not YAML: mapping values are not allowed",
    ),
    "options as a list": (METADATA, specs(["a"]), "options must be a mapping"),
    "a parameter that is a string": (METADATA, specs({"size": "int"}), "parameter size: must be a mapping"),
    "a type nobody knows": (METADATA, specs({"size": {"type": "integer"}}), "parameter size: type integer is not one"),
    "a default of another type": (
        METADATA,
        specs({"size": {"type": "int", "default": "big"}}),
        "default of parameter size must be an integer",
    ),
    "a default that is no choice": (
        METADATA,
        specs({"size": {"default": "m", "choices": ["s", "l"]}}),
        'default of parameter size must be one of "s", "l"',
    ),
    "a default that is an expression": (METADATA, specs({"size": {"default": "{{ x }}"}}), "its default is an expression"),
    "choices of another type": (
        METADATA,
        specs({"version": {"choices": [4.17]}}),
        "a choice of parameter version must be a string, not 4.17",
    ),
    "a rule about nothing": (METADATA, specs({"a": {}}, required_together=[["a", "b"]]), "a rule names b"),
    "a rule of another form": (METADATA, specs({"a": {}}, required_if=[["a"]]), "must have the form"),
    "parameters where they do not belong": (
        METADATA | {"parameters": {"a": {}}},
        specs(),
        "parameters is for templates that extend another",
    ),
    "extends a number": (METADATA | {"extends": 3}, specs(), "extends must be the name of a template"),
}


@pytest.mark.parametrize(("metadata", "spec", "problem"), BROKEN.values(), ids=BROKEN)
def test_broken_template_is_listed_with_its_problem_and_hides_no_other(metadata: Any, spec: Any, problem: str, tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.broken", metadata, spec)
    write_role(tmp_path, "site.base.sound", METADATA, specs())
    found = find_templates([tmp_path])
    assert summary(found["site.base.sound"])["problem"] is None
    told = summary(found["site.base.broken"])
    assert problem in told["problem"]
    assert told.keys() == summary(found["site.base.sound"]).keys()


def test_using_a_broken_template_gives_one_message_that_names_it(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.broken", "title: [", specs())
    template = resolve("site.base.broken", find_templates([tmp_path]))
    for use in (lambda: check(template, None), lambda: json_schema(template), lambda: template.title):
        with pytest.raises(
            BrokenTemplate, match=r"Cluster template site.base.broken cannot be used: meta/template.yml is not YAML: .* at line"
        ):
            use()


def test_role_name_that_no_order_can_have_is_told(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.with-dash", METADATA, specs())
    assert "letters, digits and underscores" in str(find_templates([tmp_path])["site.base.with-dash"].problem)


# Types of parameters

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
REFUSED = [
    ("text", 4.10, "parameter text must be a string, not 4.1"),
    ("text", {"a": 1}, "parameter text must be a string, not an object"),
    ("text", ["a"], "parameter text must be a string, not a list"),
    ("text", True, "parameter text must be a string, not true"),
    ("number", [3], "parameter number must be an integer, not a list"),
    ("number", 3.5, "parameter number must be an integer, not 3.5"),
    ("number", "3.5", 'parameter number must be an integer, not "3.5"'),
    ("number", "1e9", 'parameter number must be an integer, not "1e9"'),
    ("number", "", 'parameter number must be an integer, not ""'),
    ("number", True, "parameter number must be an integer, not true"),
    ("number", "x" * 500, 'parameter number must be an integer, not "' + "x" * 60 + '..."'),
    ("ratio", "nan", 'parameter ratio must be a number, not "nan"'),
    ("ratio", True, "parameter ratio must be a number, not true"),
    ("flag", "perhaps", 'parameter flag must be true or false, not "perhaps"'),
    ("flag", 2, "parameter flag must be true or false, not 2"),
    ("flag", [], "parameter flag must be true or false, not a list"),
    ("names", "a,b", 'parameter names must be a list, not "a,b"'),
    ("names", ["a", 1], "parameter names[1] must be a string, not 1"),
    ("names", [None], "parameter names[0] must be a string, not null"),
    ("numbers", [1, "x"], 'parameter numbers[1] must be an integer, not "x"'),
    ("document", "{", 'parameter document must be JSON, or a string that holds JSON, not "{"'),
    ("free", "a=b", 'parameter free must be an object, not "a=b"'),
    ("net", {"mtu": "x", "name": "n"}, 'parameter net.mtu must be an integer, not "x"'),
    ("net", {}, "parameter net.name is required"),
    ("net", {"name": "n", "mut": 1}, "parameter net.mut is not known to this template (did you mean mtu?)"),
    ("rows", [{"id": 1}, {}], "parameter rows[1].id is required"),
    ("rows", [1], "parameter rows[0] must be an object, not 1"),
    ("size", "l", 'parameter size must be one of "s", "m", not "l"'),
    ("sizes", ["s", "l"], 'parameter sizes must be one of "s", "m", not "l"'),
]


@pytest.mark.parametrize(("name", "given", "wanted"), ACCEPTED, ids=named(ACCEPTED))
def test_value_gets_the_declared_type_and_ansible_agrees(name: str, given: Any, wanted: Any, tmp_path: Path) -> None:
    checked = parameters(a_template(tmp_path, OPTIONS), {name: given})
    assert checked == {name: wanted}
    assert type(checked[name]) is type(wanted)
    outer = {"template_parameters": {"type": "dict", "options": {name: OPTIONS[name]}}}
    verdict = ArgumentSpecValidator(outer).validate({"template_parameters": checked})
    assert verdict.error_messages == []
    assert verdict.validated_parameters == {"template_parameters": {name: wanted}}


@pytest.mark.parametrize(("name", "given", "problem"), REFUSED, ids=named(REFUSED))
def test_value_of_another_type_is_a_mistake(name: str, given: Any, problem: str, tmp_path: Path) -> None:
    assert problems(a_template(tmp_path, OPTIONS), {name: given}) == [problem]


def test_path_is_not_expanded_with_our_own_environment(tmp_path: Path) -> None:
    assert parameters(a_template(tmp_path, OPTIONS), {"folder": "~/$HOME"}) == {"folder": "~/$HOME"}


def test_defaults_are_typed_and_not_shared_between_orders(tmp_path: Path) -> None:
    template = a_template(
        tmp_path, {"number": {"type": "int", "default": "3"}, "names": {"type": "list", "elements": "str", "default": ["a"]}}
    )
    parameters(template, {})["names"].append("b")
    assert parameters(template, {}) == {"number": 3, "names": ["a"]}


def test_parameter_not_given_is_absent_and_null_means_not_given(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {}, "b": {"default": "x"}, "c": {"required": True}})
    assert parameters(template, {"a": None, "b": None, "c": "c"}) == {"b": "x", "c": "c"}
    assert problems(template, {"c": None}) == ["parameter c is required"]


def test_apply_defaults_fills_an_object_that_is_not_given(tmp_path: Path) -> None:
    inner = {"mtu": {"type": "int", "default": 1500}}
    template = a_template(
        tmp_path, {"net": {"type": "dict", "apply_defaults": "true", "options": inner}, "left": {"type": "dict", "options": inner}}
    )
    assert parameters(template, {}) == {"net": {"mtu": 1500}}


def test_alias_stands_for_its_parameter(tmp_path: Path) -> None:
    assert parameters(a_template(tmp_path, {"release": {"aliases": ["version"]}}), {"version": "1"}) == {"release": "1"}


# Rules between parameters

RULES = {
    "mutually_exclusive": ({"mutually_exclusive": [["a", "b"]]}, {"a": "1", "b": "1"}, "parameters a, b exclude each other: give only one"),
    "one group without brackets": (
        {"mutually_exclusive": ["a", "b"]},
        {"a": "1", "b": "1"},
        "parameters a, b exclude each other: give only one",
    ),
    "required_together": ({"required_together": [["a", "b"]]}, {"a": "1"}, "parameters a, b go together: b is missing"),
    "required_one_of": ({"required_one_of": [["a", "b"]]}, {"c": "1"}, "one of the parameters a, b is required"),
    "required_if": ({"required_if": [["a", "x", ["b", "c"]]]}, {"a": "x", "b": "1"}, 'parameter a is "x", and then c is required'),
    "required_if any": (
        {"required_if": [["a", "x", ["b", "c"], True]]},
        {"a": "x"},
        'parameter a is "x", and then one of b, c is required',
    ),
    "required_by": ({"required_by": {"a": ["b", "c"]}}, {"a": "1", "c": "1"}, "parameter a needs b, too"),
}


@pytest.mark.parametrize(("rules", "given", "problem"), RULES.values(), ids=RULES)
def test_rules_between_parameters_hold_and_the_schema_has_them(rules: dict[str, Any], given: Any, problem: str, tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {}, "b": {}, "c": {}}, **rules)
    assert problems(template, given) == [problem]
    schema = jsonschema.Draft202012Validator(json_schema(template))
    assert not schema.is_valid(given)
    for fine in ({"b": "1"}, {"a": "y", "b": "1", "c": "1"}):
        if "mutually_exclusive" in rules and len(fine) > 1:
            continue
        fine_here = fine if "required_together" not in rules else {"a": "1", "b": "1"}
        assert parameters(template, fine_here) == fine_here
        assert schema.is_valid(fine_here)


def test_one_of_several_is_enough_where_the_rule_says_so(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {}, "b": {}, "c": {}}, required_if=[["a", "x", ["b", "c"], True]])
    assert parameters(template, {"a": "x", "c": "1"}) == {"a": "x", "c": "1"}
    assert jsonschema.Draft202012Validator(json_schema(template)).is_valid({"a": "x", "c": "1"})


def test_rules_hold_inside_an_object_too(tmp_path: Path) -> None:
    net = {"type": "dict", "options": {"a": {}, "b": {}}, "mutually_exclusive": [["a", "b"]]}
    assert problems(a_template(tmp_path, {"net": net}), {"net": {"a": "1", "b": "1"}}) == [
        "parameters net.a, net.b exclude each other: give only one"
    ]


def test_wrong_value_is_not_called_missing_as_well(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {"type": "int", "required": True}, "b": {}}, required_together=[["a", "b"]])
    assert problems(template, {"a": "x", "b": "y"}) == ['parameter a must be an integer, not "x"']


# The text that holds the parameters

TEXTS = {
    "broken": ('{"a": 1,\n "b" 2}', "templateParameters are not JSON: Expecting ':' delimiter at line 2, column 6"),
    "a list": ("[1]", "templateParameters must be a JSON object, not a list"),
    "a string": ('"a"', "templateParameters must be a JSON object, not a string"),
    "null": ("null", "templateParameters must be a JSON object, not null"),
    "YAML": ("a: 1", "templateParameters are not JSON: Expecting value at line 1, column 1"),
    "not a number": ('{"a": NaN}', "templateParameters hold a number that JSON does not have, or one too large"),
    "infinite": ('{"a": 1e999}', "templateParameters hold a number that JSON does not have, or one too large"),
    "5000 digits": ('{"a": ' + "9" * 5000 + "}", "templateParameters hold a number that JSON does not have, or one too large"),
    "100,000 brackets": ("[" * 100_000, "templateParameters are nested too deeply"),
    "half a character": (r'{"a": "\ud800"}', "templateParameters hold half of a Unicode surrogate pair, which is no character"),
    "given twice": ('{"a": "1", "a": "2"}', "parameter a is given twice"),
    "300 kB": (json.dumps({"a": "x" * 300_000}), f"templateParameters are 300,009 bytes long, and {MAX_BYTES:,} is the most"),
}


@pytest.mark.parametrize(("text", "problem"), TEXTS.values(), ids=TEXTS)
def test_text_that_is_no_json_object_is_one_mistake(text: str, problem: str, tmp_path: Path) -> None:
    assert problems(a_template(tmp_path, {"a": {}}), text) == [problem]


@pytest.mark.parametrize("text", [None, "", " \n", "{}"])
def test_no_text_is_no_parameters(text: str | None, tmp_path: Path) -> None:
    assert check(a_template(tmp_path, {"a": {}}), text).parameters == {}


def test_parameters_up_to_the_limit_are_taken(tmp_path: Path) -> None:
    value = "x" * (MAX_BYTES - len('{"a": ""}'))
    assert parameters(a_template(tmp_path, {"a": {}}), {"a": value}) == {"a": value}


# Nodes

NODES: dict[str, tuple[Any, str]] = {
    "a class that is not allowed": (
        [{"resourceClass": "big", "numberOfNodes": 1}],
        "nodeRequests[0].resourceClass big is not allowed: the template has a, b",
    ),
    "a class twice": (
        [{"resourceClass": "a", "numberOfNodes": 1}, {"resourceClass": "a", "numberOfNodes": 2}],
        "nodeRequests[1].resourceClass a is there twice: ask once, for the sum",
    ),
    "zero": ([{"resourceClass": "a", "numberOfNodes": 0}], "nodeRequests[0].numberOfNodes must be at least 1, not 0"),
    "negative": ([{"resourceClass": "a", "numberOfNodes": -1}], "nodeRequests[0].numberOfNodes must be at least 1, not -1"),
    "too many": ([{"resourceClass": "a", "numberOfNodes": 1001}], "nodeRequests[0].numberOfNodes must be at most 1000, not 1001"),
    "true": ([{"resourceClass": "a", "numberOfNodes": True}], "nodeRequests[0].numberOfNodes must be an integer, not true"),
    "a string": ([{"resourceClass": "a", "numberOfNodes": "2"}], 'nodeRequests[0].numberOfNodes must be an integer, not "2"'),
    "no number": ([{"resourceClass": "a"}], "nodeRequests[0].numberOfNodes is missing"),
    "no class": ([{"numberOfNodes": 1}], "nodeRequests[0].resourceClass is missing"),
    "a number for a class": ([{"resourceClass": 1, "numberOfNodes": 1}], "nodeRequests[0].resourceClass is not a string"),
    "not an object": (["a"], "nodeRequests[0] must be an object with resourceClass and numberOfNodes"),
    "not a list": ({"a": 1}, "nodeRequests must be a list"),
    "zero, as read from the order": ((NodeRequest("a", 0),), "nodeRequests[0].numberOfNodes must be at least 1, not 0"),
}


@pytest.mark.parametrize(("nodes", "problem"), NODES.values(), ids=NODES)
def test_node_request_that_cannot_be_met_is_a_mistake(nodes: Any, problem: str, tmp_path: Path) -> None:
    assert problems(a_template(tmp_path, metadata={"allowed_resource_classes": ["a", "b"]}), None, nodes) == [problem]


@pytest.mark.parametrize("nodes", [None, []])
def test_order_without_nodes_gets_those_of_the_template(nodes: Any, tmp_path: Path) -> None:
    template = a_template(tmp_path, metadata={"default_node_requests": [{"resourceClass": "a", "numberOfNodes": 2}]})
    assert check(template, None, nodes).node_requests == (NodeRequest("a", 2),)


def test_order_with_nodes_gets_those_of_any_class_where_none_is_named(tmp_path: Path) -> None:
    template = a_template(tmp_path, metadata={"default_node_requests": [{"resourceClass": "a", "numberOfNodes": 2}]})
    for nodes in ([{"resourceClass": "c", "numberOfNodes": 1000}], (NodeRequest("c", 1000),)):
        assert check(template, None, nodes).node_requests == (NodeRequest("c", 1000),)


# One message


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {"type": "int"}, "b": {"required": True}}, {"allowed_resource_classes": ["x"]})
    with pytest.raises(InvalidOrder) as caught:
        check(template, '{"a": "one", "c": 1}', [{"resourceClass": "y", "numberOfNodes": 0}])
    assert caught.value.problems == [
        "parameter c is not known to this template (it has a, b)",
        'parameter a must be an integer, not "one"',
        "parameter b is required",
        "nodeRequests[0].resourceClass y is not allowed: the template has x",
        "nodeRequests[0].numberOfNodes must be at least 1, not 0",
    ]
    assert str(caught.value).startswith("The order does not fit its cluster template site.base.one: 5 mistakes: (1) parameter c is not")
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    assert "\n" not in str(caught.value)


def test_unknown_parameter_is_answered_with_the_nearest(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"release_image": {}, "base_domain": {}})
    assert problems(template, {"relase_image": "x"}) == [
        "parameter relase_image is not known to this template (did you mean release_image?)"
    ]


def test_broken_text_and_wrong_nodes_are_told_together(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {"required": True}})
    assert problems(template, "{", [{"resourceClass": "y", "numberOfNodes": 0}]) == [
        "templateParameters are not JSON: Expecting property name enclosed in double quotes at line 1, column 2",
        "nodeRequests[0].numberOfNodes must be at least 1, not 0",
    ]


def test_thousands_of_mistakes_make_a_short_message_soon(tmp_path: Path) -> None:
    template = a_template(tmp_path, {f"parameter_{number}": {} for number in range(20)})

    def judged(mistakes: int) -> tuple[float, pytest.ExceptionInfo[InvalidOrder]]:
        """The processor time that it took, and what came of it."""
        begin = time.process_time()
        with pytest.raises(InvalidOrder) as caught:
            check(template, json.dumps({f"parameter-{number}": "x" for number in range(mistakes)}))
        return time.process_time() - begin, caught

    few, _message = judged(100)
    many, caught = judged(10_000)
    assert many < 50 * few, "a suggestion for each of them would take a hundred times as long"
    assert len(caught.value.problems) == 10_000
    assert len(str(caught.value)) < 5_000
    assert "and 9980 more" in str(caught.value)


def test_names_from_outside_are_shortened_and_harmless(tmp_path: Path) -> None:
    told = problems(a_template(tmp_path), {"x" * 10_000: 1, "a\nb\x1b[31m": 1})
    assert len(told[0]) < 200
    assert "\n" not in told[1]
    assert "\x1b" not in told[1]


# Secrets

SECRETS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "another type": ({"s": {"type": "int", "no_log": True}}, {}, {"s": SECRET}),
    "an object for a string": ({"s": {"no_log": True}}, {}, {"s": {"auths": SECRET}}),
    "a list for a string": ({"s": {"no_log": True}}, {}, {"s": [SECRET]}),
    "no choice": ({"s": {"no_log": True, "choices": ["a", "b"]}}, {}, {"s": SECRET}),
    "items of a list": ({"s": {"type": "list", "elements": "int", "no_log": True}}, {}, {"s": [SECRET]}),
    "inside an object": ({"o": {"type": "dict", "options": {"s": {"type": "int", "no_log": True}}}}, {}, {"o": {"s": SECRET}}),
    "a string for the object around it": ({"o": {"type": "dict", "options": {"s": {"no_log": True}}}}, {}, {"o": SECRET}),
    "a string for the list around it": (
        {"o": {"type": "list", "elements": "dict", "options": {"s": {"no_log": True}}}},
        {},
        {"o": [SECRET]},
    ),
    "under a misspelt name": ({"secret": {"no_log": True}}, {}, {"sercet": SECRET}),
    "a rule about its value": ({"s": {"no_log": True}, "b": {}}, {"required_if": [["s", SECRET, ["b"]]]}, {"s": SECRET}),
    "JSON": ({"s": {"type": "json", "no_log": True}}, {}, {"s": "{" + SECRET}),
}


@pytest.mark.parametrize(("options", "rules", "given"), SECRETS.values(), ids=SECRETS)
def test_secret_is_never_in_a_message(options: Any, rules: Any, given: Any, tmp_path: Path) -> None:
    template = a_template(tmp_path, options, **rules)
    with pytest.raises(InvalidOrder) as caught:
        check(template, json.dumps(given))
    assert SECRET not in str(caught.value) + repr(caught.value) + repr(caught.value.problems)


def test_secret_in_broken_json_is_not_in_the_message(tmp_path: Path) -> None:
    assert SECRET not in str(problems(a_template(tmp_path, {"s": {"no_log": True}}), f'{{"s": "{SECRET}" "b"}}'))


def test_checked_order_does_not_print_its_parameters(tmp_path: Path) -> None:
    checked = check(a_template(tmp_path, {"s": {"no_log": True}}), json.dumps({"s": SECRET}))
    assert checked.parameters == {"s": SECRET}
    assert SECRET not in repr(checked)


def test_default_of_a_secret_is_not_described(tmp_path: Path) -> None:
    assert SECRET not in json.dumps(summary(a_template(tmp_path, {"s": {"no_log": True, "default": SECRET}})))


# Entry points


def test_parameters_that_only_install_declares_are_left_out_for_the_others(tmp_path: Path) -> None:
    both = specs({"a": {"required": True}, "b": {}})
    both["argument_specs"]["delete"] = specs({"b": {}})["argument_specs"]["install"]
    write_role(tmp_path, "site.base.one", METADATA, both)
    template = find_templates([tmp_path])["site.base.one"]
    given = json.dumps({"a": "1", "b": "2"})
    assert template.entry_points == ("install", "delete")
    assert check(template, given).parameters == {"a": "1", "b": "2"}
    assert check(template, given, entry="delete").parameters == {"b": "2"}
    assert check(template, given, entry="post_install") == Checked({}, ())


def test_entry_point_that_lists_no_parameters_gets_those_of_install(tmp_path: Path) -> None:
    both = specs({"a": {"type": "int", "default": 1}})
    both["argument_specs"]["delete"] = {}
    write_role(tmp_path, "site.base.one", METADATA, both)
    assert check(find_templates([tmp_path])["site.base.one"], None, entry="delete").parameters == {"a": 1}


def test_template_without_delete_is_deleted_through_its_provider(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {"type": "int", "default": 1}})
    assert template.entry_points == ("install", "delete")
    assert check(template, None, entry="delete") == Checked({"a": 1}, template.default_node_requests, DEFAULT_DELETE)
    assert (ROLES / DEFAULT_DELETE.rpartition(".")[2] / "tasks" / "delete.yml").is_file()


@pytest.mark.parametrize("entry", ["post_install", "delete"])
def test_tasks_make_an_entry_point_without_an_argument_spec(entry: str, tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", METADATA, specs({"a": {"type": "int", "default": 1}}), tasks=("install", entry))
    template = find_templates([tmp_path])["site.base.one"]
    assert check(template, None, entry=entry) == Checked({"a": 1}, template.default_node_requests, template.id)


@pytest.mark.parametrize(
    "text",
    ["{", '{"a": "x", "b": "y", "c": 1}', " {" * 150_000, '{"b": "y"}'],
    ids=["not JSON", "wrong", "too long", "incomplete"],
)
def test_deleting_goes_on_whatever_the_order_says(text: str, tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {"type": "int", "required": True}, "b": {"default": "z"}}, entries=("install", "delete"))
    checked = check(template, text, [{"resourceClass": "a", "numberOfNodes": -1}], entry="delete")
    assert checked.role == template.id
    assert checked.parameters == {"b": "y" if '"y"' in text else "z"}
    assert len(checked.ignored) >= 2


# Templates that extend others


def line(root: Path, derived: Mapping[str, Any], tasks: tuple[str, ...] = (), spec: Any = None) -> Template:
    write_role(
        root,
        "site.base.one",
        METADATA | {"allowed_resource_classes": ["a", "b"], "default_node_requests": [{"resourceClass": "a", "numberOfNodes": 2}]},
        specs({"number": {"type": "int", "default": 1}, "name": {"description": "A name."}}, entries=("install", "delete")),
    )
    write_role(root, "site.more.two", {"extends": "site.base.one"} | dict(derived), spec, tasks)
    return find_templates([root])["site.more.two"]


def test_template_of_one_line_has_all_of_its_base(tmp_path: Path) -> None:
    template = line(tmp_path, {})
    base = template.catalogue["site.base.one"]
    own, inherited = summary(template), summary(base)
    assert (own.pop("id"), own.pop("extends")) == ("site.more.two", "site.base.one")
    assert {key: value for key, value in own.items() if key != "path"} == {key: inherited[key] for key in own if key != "path"}
    assert template.lineage == ("site.base.one", "site.more.two")


def test_word_without_a_value_is_inherited(tmp_path: Path) -> None:
    assert line(tmp_path, {"title": None, "allowed_resource_classes": None}).title == "A title"


def test_extending_template_changes_what_it_says_and_nothing_else(tmp_path: Path) -> None:
    template = line(
        tmp_path,
        {
            "title": "Another",
            "default_node_requests": [{"resourceClass": "b", "numberOfNodes": 1}],
            "parameters": {"number": {"default": 7}, "name": {"required": True}, "team": {"type": "str"}},
            "required_together": [["team", "name"]],
        },
    )
    assert (template.title, template.description, template.provider) == ("Another", "A description.", "hypershift")
    assert template.default_node_requests == (NodeRequest("b", 1),)
    assert template.allowed_resource_classes == ("a", "b")
    assert [option.name for option in template.parameters().members.values()] == ["number", "name", "team"]
    assert template.parameters().members["name"].description == "A name."
    assert problems(template, {"team": "x"}) == ["parameter name is required", "parameters team, name go together: name is missing"]
    assert parameters(template.catalogue["site.base.one"], {}) == {"number": 1}


def test_rules_of_base_and_extension_both_hold(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", METADATA, specs({"a": {}, "b": {}}, mutually_exclusive=["a", "b"], required_by={"a": "b"}))
    write_role(
        tmp_path,
        "site.base.two",
        {"extends": "site.base.one", "parameters": {"c": {}}, "mutually_exclusive": [["b", "c"]], "required_by": {"c": "a"}},
    )
    told = problems(find_templates([tmp_path])["site.base.two"], {"a": "1", "b": "1", "c": "1"})
    assert told == ["parameters a, b exclude each other: give only one", "parameters b, c exclude each other: give only one"]
    assert problems(find_templates([tmp_path])["site.base.two"], {"c": "1"}) == ["parameter c needs a, too"]


def test_entry_point_of_the_extension_takes_the_place_of_the_base(tmp_path: Path) -> None:
    template = line(tmp_path, {"parameters": {"team": {}}}, tasks=("install", "post_install"))
    given = json.dumps({"team": "x"})
    assert template.entry_points == ("install", "post_install", "delete")
    assert check(template, given) == Checked({"number": 1, "team": "x"}, template.default_node_requests, "site.more.two")
    assert check(template, given, entry="post_install").role == "site.more.two"
    assert check(template, given, entry="post_install").parameters == {"number": 1, "team": "x"}


def test_entry_point_of_the_base_is_given_only_what_the_base_declares(tmp_path: Path) -> None:
    template = line(tmp_path, {"parameters": {"team": {}}}, tasks=("install",))
    assert check(template, '{"team": "x"}', entry="delete") == Checked({"number": 1}, template.default_node_requests, "site.base.one")


def test_line_of_three_merges_from_the_last_base_on(tmp_path: Path) -> None:
    line(tmp_path, {"title": "Two", "parameters": {"number": {"default": 2}, "team": {"default": "two"}}})
    write_role(tmp_path, "site.more.three", {"extends": "site.more.two", "parameters": {"team": {"default": "three"}}}, None, ("install",))
    template = find_templates([tmp_path])["site.more.three"]
    assert template.title == "Two"
    assert check(template, None) == Checked({"number": 2, "team": "three"}, template.default_node_requests, "site.more.three")


def test_argument_spec_that_forgets_inherited_parameters_is_a_problem(tmp_path: Path) -> None:
    problem = line(tmp_path, {"parameters": {"team": {}}}, spec=specs({"team": {}})).problem
    assert "lists parameters without number, name, which Ansible would then refuse" in str(problem)


def test_missing_base_is_a_problem_with_the_nearest_name(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", METADATA, specs())
    write_role(tmp_path, "site.base.two", {"extends": "site.base.on"})
    assert find_templates([tmp_path])["site.base.two"].problem == (
        "site.base.two extends site.base.on, which is not installed (did you mean site.base.one or site.base.two?)"
    )


def test_templates_that_extend_each_other_are_a_problem_and_no_endless_loop(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", {"extends": "site.base.two"})
    write_role(tmp_path, "site.base.two", {"extends": "site.base.three"})
    write_role(tmp_path, "site.base.three", {"extends": "site.base.two"})
    write_role(tmp_path, "site.base.self", {"extends": "site.base.self"})
    found = find_templates([tmp_path])
    assert found["site.base.one"].problem == "it extends itself: site.base.one -> site.base.two -> site.base.three -> site.base.two"
    assert found["site.base.self"].problem == "it extends itself: site.base.self -> site.base.self"


def test_problem_of_the_base_is_told_by_its_name(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", "title: [", specs())
    write_role(tmp_path, "site.base.two", {"extends": "site.base.one"})
    assert "site.base.one: meta/template.yml is not YAML" in str(find_templates([tmp_path])["site.base.two"].problem)


# Descriptions


def test_schema_has_types_defaults_choices_and_secrets(tmp_path: Path) -> None:
    options = OPTIONS | {"s": {"no_log": True, "required": True, "description": ["One.", "Two."]}, "n": {"type": "int", "default": 1}}
    schema = json_schema(a_template(tmp_path, options))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["required"] == ["s"]
    assert schema["additionalProperties"] is False
    of = schema["properties"]
    assert of["s"] == {"type": "string", "description": "One.\nTwo.", "writeOnly": True}
    assert of["n"] == {"type": "integer", "default": 1}
    assert of["size"] == {"type": "string", "enum": ["s", "m"]}
    assert of["sizes"] == {"type": "array", "items": {"type": "string", "enum": ["s", "m"]}}
    assert of["net"]["required"] == ["name"]
    assert of["rows"]["items"]["properties"] == {"id": {"type": "integer"}}
    assert of["anything"] == {}


def test_typed_values_fit_the_schema(tmp_path: Path) -> None:
    schema = jsonschema.Draft202012Validator(json_schema(a_template(tmp_path, OPTIONS)))
    for name, _given, wanted in ACCEPTED:
        schema.validate({name: wanted})


def test_summary_tells_each_parameter_with_the_same_keys(tmp_path: Path) -> None:
    told = summary(a_template(tmp_path, OPTIONS))
    assert [parameter["name"] for parameter in told["parameters"]] == list(OPTIONS)
    assert len({tuple(parameter) for parameter in told["parameters"]}) == 1
    json.dumps(told)


# The templates of this collection


def test_shipped_templates_are_sound(shipped: dict[str, Template]) -> None:
    problems_of = {name: template.problem for name, template in shipped.items() if name.startswith("openfleet.")}
    assert problems_of == {f"openfleet.clusters.{role}": None for role in SHIPPED}


def test_small_needs_only_a_pull_secret(shipped: dict[str, Template]) -> None:
    template = resolve("ocp_4_17_small", shipped)
    checked = check(template, json.dumps(PULL))
    assert checked == Checked(
        {
            **PULL,
            "release_image": "quay.io/openshift-release-dev/ocp-release:4.17.0-multi",
            "pod_network_cidr": "10.132.0.0/14",
            "service_network_cidr": "172.31.0.0/16",
            "control_plane_availability": "SingleReplica",
        },
        (NodeRequest("fc430", 2),),
        template.id,
    )
    assert template.entry_points == ("install", "delete")
    assert problems(template, {"pull_secret": {"auths": {}}}) == ["parameter pull_secret must be a string, not an object"]


def test_idp_adds_its_parameters(shipped: dict[str, Template]) -> None:
    template = resolve("ocp_4_17_small_idp", shipped)
    idp = {"idp_issuer": "https://login.example", "idp_client_id": "id", "idp_client_secret": SECRET}
    assert problems(template, PULL) == [f"parameter {name} is required" for name in idp]
    checked = check(template, json.dumps(PULL | idp))
    assert checked.role == template.id
    assert checked.parameters.items() >= (PULL | idp | {"idp_name": "openid"}).items()
    assert check(template, json.dumps(PULL | idp), entry="delete").role == DEFAULT_DELETE


def test_example_of_the_guide_is_a_sound_template(tmp_path: Path) -> None:
    guide = (ROLES.parent / "docs" / "writing_a_template.md").read_text()
    example = guide.split("```yaml\n")[1].split("```")[0]
    assert len(example.splitlines()) == 10
    write_role(tmp_path, "acme.templates.small", example)
    template = resolve("acme.templates.small", find_templates([tmp_path, COLLECTIONS]))
    assert parameters(template, PULL | {"cost_center": "x"})["base_domain"] == "clusters.acme.example"
    assert problems(template, PULL) == ["parameter cost_center is required"]
