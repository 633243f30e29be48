"""What the files of templates say: mistakes in them, and templates that extend others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import Template, find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import Checked, check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.description import json_schema, summary
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import (
    BrokenTemplate,
)

from .template_samples import METADATA, parameters, problems, specs, write_role

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
    "an unknown type": (METADATA, specs({"size": {"type": "integer"}}), "parameter size: type integer is not one"),
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
    shown = summary(found["site.base.broken"])
    assert problem in shown["problem"]
    assert shown.keys() == summary(found["site.base.sound"]).keys()


def test_using_a_broken_template_gives_one_message_that_names_it(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.broken", "title: [", specs())
    template = resolve("site.base.broken", find_templates([tmp_path]))
    for use in (lambda: check(template, None), lambda: json_schema(template), lambda: template.title):
        with pytest.raises(
            BrokenTemplate, match=r"Cluster template site.base.broken cannot be used: meta/template.yml is not YAML: .* at line"
        ):
            use()


def test_role_name_that_no_order_can_have_is_reported(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.with-dash", METADATA, specs())
    assert "letters, digits and underscores" in str(find_templates([tmp_path])["site.base.with-dash"].problem)


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
    shown = problems(find_templates([tmp_path])["site.base.two"], {"a": "1", "b": "1", "c": "1"})
    assert shown == ["parameters a, b exclude each other: give only one", "parameters b, c exclude each other: give only one"]
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
    assert "lists parameters without number, name, which Ansible would refuse" in str(problem)


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


def test_problem_of_the_base_is_reported_by_its_name(tmp_path: Path) -> None:
    write_role(tmp_path, "site.base.one", "title: [", specs())
    write_role(tmp_path, "site.base.two", {"extends": "site.base.one"})
    assert "site.base.one: meta/template.yml is not YAML" in str(find_templates([tmp_path])["site.base.two"].problem)
