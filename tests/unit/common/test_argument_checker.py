"""One checker for every argument spec: its messages name what is checked. Conversions are in the tests of templates, which use most."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_checker import ArgumentChecker
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_spec_reader import read_options
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_specs import CLUSTER, KUBERNETES, LOCK, ORDERS, S3
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.settings import OPTIONS as EVENT_SOURCE
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import BUILT_IN, ProviderFactory

TEMPLATE = ArgumentChecker("template")
SOURCE = ArgumentChecker("event source", noun="argument", empty_is_unset=True)
SPEC = {
    "options": {
        "size": {"type": "int", "default": 3},
        "name": {"type": "str", "required": True, "aliases": ["called"]},
        "token": {"type": "str", "no_log": True},
        "file": {"type": "path"},
        "login": {"type": "dict", "options": {"user": {"type": "str", "required": True}, "port": {"type": "int", "default": 22}}},
        "free": {"type": "raw"},
    },
    "mutually_exclusive": [["token", "file"]],
    "required_by": {"login": ["token"]},
}


def checked(checker: ArgumentChecker, **given: Any) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    options = read_options(SPEC, problems)
    assert problems == []
    return checker.check(options, given, problems), problems


@pytest.mark.parametrize(
    ("given", "for_template", "for_source"),
    [
        (
            {"name": "a", "siez": 1},
            "parameter siez is not known to this template (did you mean size?)",
            "argument siez is not known to this event source (did you mean size?)",
        ),
        (
            {"name": "a", "login": {"user": "b", "prot": 1}, "token": "c"},
            "parameter login.prot is not known to this template (did you mean port?)",
            "argument login.prot is not known to this event source (did you mean port?)",
        ),
        ({}, "parameter name is required", "argument name is required"),
        ({"name": 1}, "parameter name must be a string, not 1", "argument name must be a string, not 1"),
        (
            {"name": "a", "token": "b", "file": "c"},
            "parameters token, file exclude each other: give only one",
            "arguments token, file exclude each other: give only one",
        ),
        ({"name": "a", "login": {"user": "b"}}, "parameter login needs token, too", "argument login needs token, too"),
    ],
)
def test_message_names_what_is_checked(given: dict[str, Any], for_template: str, for_source: str) -> None:
    assert checked(TEMPLATE, **given)[1] == [for_template]
    assert checked(SOURCE, **given)[1] == [for_source]


def test_empty_string_is_unset_only_where_the_caller_says_so_and_only_in_declared_arguments() -> None:
    given = {"name": "a", "size": "", "free": {"inner": ""}, "token": "b", "login": {"user": "c", "port": ""}}
    values, problems = checked(SOURCE, **given)
    assert problems == []
    assert values == {"name": "a", "size": 3, "free": {"inner": ""}, "token": "b", "login": {"user": "c", "port": 22}}
    assert checked(SOURCE, name="")[1] == ["argument name is required"]
    assert checked(TEMPLATE, name="") == ({"name": "", "size": 3}, [])
    assert checked(TEMPLATE, name="a", size="")[1] == ['parameter size must be an integer, not ""']


def test_alias_counts_as_the_argument_itself() -> None:
    assert checked(TEMPLATE, called="a") == ({"name": "a", "size": 3}, [])


def test_value_of_a_secret_argument_is_in_no_message() -> None:
    [problem] = checked(SOURCE, name="a", token={"hunter2": 1})[1]
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    "spec", [KUBERNETES, LOCK, CLUSTER, S3, ORDERS, EVENT_SOURCE], ids=["kubernetes", "lock", "cluster", "s3", "orders", "source"]
)
def test_shared_spec_is_one_that_the_checker_reads(spec: dict[str, Any]) -> None:
    problems: list[str] = []
    assert read_options({"options": spec}, problems).members.keys() == spec.keys()
    assert problems == []


@pytest.mark.parametrize("kind", BUILT_IN)
def test_spec_of_each_provider_is_one_that_the_checker_reads(kind: str) -> None:
    problems: list[str] = []
    for spec in (ProviderFactory.get(kind).SETTINGS, ProviderFactory.get(kind).SECRETS):
        read_options({"options": spec}, problems)
    assert problems == []
