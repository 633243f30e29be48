"""Orders checked against a template: every mistake is in one message, and no secret is."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.model import NodeRequest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import Checked, check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.description import json_schema, summary
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.metadata import DEFAULT_DELETE
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.parameters import MAX_BYTES

from .template_samples import ACCEPTED, COLLECTIONS, METADATA, OPTIONS, SECRET, a_template, named, parameters, problems, specs, write_role

# Types of parameters

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
    "half a character": (r'{"a": "\ud800"}', "templateParameters hold half of a Unicode surrogate pair, which is not a character"),
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
        "nodeRequests[1].resourceClass a is listed twice: request the sum once",
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


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
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


def test_broken_text_and_wrong_nodes_are_reported_together(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"a": {"required": True}})
    assert problems(template, "{", [{"resourceClass": "y", "numberOfNodes": 0}]) == [
        "templateParameters are not JSON: Expecting property name enclosed in double quotes at line 1, column 2",
        "nodeRequests[0].numberOfNodes must be at least 1, not 0",
    ]


def test_thousands_of_mistakes_make_a_short_message_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = a_template(tmp_path, {f"parameter_{number}": {} for number in range(20)})
    compared: list[str] = []
    suggest = difflib.get_close_matches

    def counted(name: str, *others: Any, **options: Any) -> list[str]:
        compared.append(name)
        return suggest(name, *others, **options)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    with pytest.raises(InvalidOrder) as caught:
        check(template, json.dumps({f"parameter-{number}": "x" for number in range(10_000)}))
    assert 0 < len(compared) <= 100, "a suggestion for each of them would take long"
    assert len(caught.value.problems) == 10_000
    assert len(str(caught.value)) < 5_000
    assert "and 9980 more" in str(caught.value)


def test_names_from_outside_are_shortened_and_harmless(tmp_path: Path) -> None:
    reported = problems(a_template(tmp_path), {"x" * 10_000: 1, "a\nb\x1b[31m": 1})
    assert len(reported[0]) < 200
    assert "\n" not in reported[1]
    assert "\x1b" not in reported[1]


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
    assert (COLLECTIONS / "openfleet" / "clusters" / "roles" / DEFAULT_DELETE.rpartition(".")[2] / "tasks" / "delete.yml").is_file()


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
