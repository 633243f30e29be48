"""Secret parameters of an order: references to Secrets become values, and no message has one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.common.argument_checker import Option
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import Template, find_templates
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.check import Checked, check
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import InvalidOrder, SecretsMissing
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.parameters import MAX_BYTES
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.secret_references import (
    MAX_SECRETS,
    NoSuchSecret,
    SecretRef,
)
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.site_parameters import SiteValues

from .template_samples import COLLECTIONS, SECRET, a_template

OPTIONS: dict[str, Any] = {
    "token": {"no_log": True, "aliases": ["ticket"]},
    "number": {"type": "int", "no_log": True},
    "object": {"type": "dict", "no_log": True, "options": {"user": {}, "password": {"no_log": True}}},
    "words": {"type": "list", "elements": "str", "no_log": True},
    "open": {"type": "str"},
    "login": {"type": "dict", "options": {"user": {}, "password": {"no_log": True}}},
    "logins": {"type": "list", "elements": "dict", "options": {"password": {"no_log": True}}},
}
NO_REFERENCE = 'parameter token must be {"secretRef": {"name": ..., "key": ...}} and nothing else, to refer to a Secret'
NO_NAME = "parameter token.secretRef.name must be the name of a Secret"
NO_NAMESPACE = "cannot name a namespace: the Secret is in that of the order"
VALUES = {"text": SECRET, "number": "7", "object": json.dumps({"user": SECRET}), "words": json.dumps([SECRET]), "long": "x" * MAX_BYTES}


def ref(key: str = "text", name: str = "mine", **more: Any) -> dict[str, Any]:
    return {"secretRef": {"name": name, "key": key} | more}


def read(reference: SecretRef) -> str:
    if reference.key not in VALUES:
        raise NoSuchSecret(f"parameter {reference.parameter}: create it")
    return VALUES[reference.key]


def checked(folder: Path, entry: str = "install", site: SiteValues | None = None, **given: Any) -> Checked:
    return check(a_template(folder, OPTIONS), json.dumps(given), entry=entry, site=site, read_secret=read)


def mistakes(folder: Path, site: SiteValues | None = None, **given: Any) -> list[str]:
    with pytest.raises(InvalidOrder) as caught:
        checked(folder, site=site, **given)
    assert SECRET not in str(caught.value)
    return caught.value.problems


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"token": ref()}, {"token": SECRET}),
        ({"ticket": ref()}, {"token": SECRET}),
        ({"number": ref("number")}, {"number": 7}),
        ({"object": ref("object")}, {"object": {"user": SECRET}}),
        ({"object": {"user": ref(), "password": ref()}}, {"object": {"user": SECRET, "password": SECRET}}),
        ({"words": ref("words")}, {"words": [SECRET]}),
        ({"words": [ref(), ref("number")]}, {"words": [SECRET, "7"]}),
        ({"login": {"password": ref()}}, {"login": {"password": SECRET}}),
        ({"logins": [{"password": ref()}, {}]}, {"logins": [{"password": SECRET}, {}]}),
    ],
)
def test_a_reference_becomes_the_value_in_the_type_of_its_parameter(given: Any, wanted: Any, tmp_path: Path) -> None:
    result = checked(tmp_path, **given)
    assert result.parameters == wanted
    assert result.inlined == ()
    assert SECRET not in repr(result)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"token": ref(namespace="other")}, f"parameter token.secretRef {NO_NAMESPACE}"),
        ({"token": ref(name="other/mine")}, NO_NAME),
        ({"token": ref(name="../../other/secrets/mine")}, NO_NAME),
        ({"token": ref(name="..")}, NO_NAME),
        ({"token": ref(name="")}, NO_NAME),
        ({"token": ref(name="mine\n")}, NO_NAME),
        ({"token": ref(name="a" * 254)}, NO_NAME),
        (
            {"token": ref(key="a/b")},
            "parameter token.secretRef.key must be a key of a Secret: letters, digits, dots, dashes, underscores",
        ),
        (
            {"token": {"secretRef": {"name": "mine"}}},
            NO_REFERENCE,
        ),
        (
            {"token": ref(kind="ConfigMap")},
            NO_REFERENCE,
        ),
        (
            {"token": ref() | {"value": "x"}},
            NO_REFERENCE,
        ),
        (
            {"token": {"secretRef": SECRET}},
            NO_REFERENCE,
        ),
        (
            {"logins": [{}, {"password": ref(namespace="x")}]},
            f"parameter logins[1].password.secretRef {NO_NAMESPACE}",
        ),
        ({"open": ref()}, "parameter open must be a string, not an object"),
        ({"number": ref()}, "parameter number must be an integer, not a string"),
        ({"object": ref()}, "parameter object must be an object, not a string"),
        ({"words": [ref("long"), ref()]}, f"the values of Secrets are longer than {MAX_BYTES:,} bytes at parameter words[1]"),
    ],
)
def test_what_is_no_reference_to_a_secret_of_the_namespace_is_one_mistake(given: Any, problem: str, tmp_path: Path) -> None:
    assert mistakes(tmp_path, **given) == [problem]


def test_an_order_refers_to_a_limited_number_of_secrets(tmp_path: Path) -> None:
    many = [ref(name=f"secret-{number}") for number in range(MAX_SECRETS)]
    assert len(checked(tmp_path, words=[*many, *many]).parameters["words"]) == 2 * MAX_SECRETS
    (problem,) = mistakes(tmp_path, words=[*many, ref()])
    assert problem == f"parameter words[{MAX_SECRETS}] refers to one Secret more than the {MAX_SECRETS} that an order can have"


def test_values_beyond_the_limit_are_not_read(tmp_path: Path) -> None:
    asked: list[SecretRef] = []

    def counted(reference: SecretRef) -> str:
        asked.append(reference)
        return read(reference)

    given = json.dumps({"words": [ref("long")] * 1000})
    with pytest.raises(InvalidOrder) as caught:
        check(a_template(tmp_path, OPTIONS), given, read_secret=counted)
    assert caught.value.problems == [f"the values of Secrets are longer than {MAX_BYTES:,} bytes at parameter words[1]"]
    assert len(asked) == 2


def test_secrets_that_are_missing_are_one_error_that_can_end_by_itself(tmp_path: Path) -> None:
    with pytest.raises(SecretsMissing) as caught:
        checked(tmp_path, token=ref("gone"), number=ref("lost"))
    assert str(caught.value) == "A secret of the order is missing: parameter token: create it; parameter number: create it."
    assert caught.value.retryable
    with pytest.raises(SecretsMissing, match=r"parameter words\[19\]: create it; and 480 more\.$"):
        checked(tmp_path, words=[ref("gone")] * 500)


def test_with_other_mistakes_the_order_has_to_be_changed(tmp_path: Path) -> None:
    assert mistakes(tmp_path, token=ref("gone"), open=1) == ["parameter open must be a string, not 1", "parameter token: create it"]


def test_a_parameter_whose_secret_is_missing_counts_as_set(tmp_path: Path) -> None:
    template = a_template(tmp_path, {"token": {"no_log": True, "required": True}, "user": {}}, required_by={"user": ["token"]})
    with pytest.raises(SecretsMissing):
        check(template, json.dumps({"token": ref("gone"), "user": "me"}), read_secret=read)


def test_no_missing_secret_keeps_a_cluster_alive(tmp_path: Path) -> None:
    result = checked(tmp_path, entry="delete", token=ref("gone"), words=[ref("gone"), ref()], number=ref(namespace="x"))
    assert result.parameters == {"words": [SECRET]}
    assert len(result.ignored) == 3


def test_values_in_the_order_are_named_and_a_site_refuses_them(tmp_path: Path) -> None:
    given = {"token": SECRET, "open": "x", "object": {"user": SECRET}, "logins": [{"password": ref()}, {"password": SECRET}], "words": []}
    inlined = ["token", "object.user", "logins[1].password"]
    assert checked(tmp_path, **given).inlined == tuple(inlined)
    form = '{"secretRef": {"name": ..., "key": ...}}'
    strict = SiteValues(allow_inline_secrets=False)
    assert sorted(mistakes(tmp_path, site=strict, **given)) == sorted(
        f"parameter {name} must be {form}: this site allows no secrets in an order" for name in inlined
    )
    referred = checked(tmp_path, site=strict, token=ref(), open="x", words=[], number=None)
    assert referred.parameters == {"token": SECRET, "open": "x", "words": []}


def test_the_defaults_of_author_and_site_are_no_secrets_of_the_order(tmp_path: Path) -> None:
    template = a_template(
        tmp_path, {"token": {"no_log": True, "default": "a"}, "pull_secret": {"no_log": True}}, {"site_defaults": ["pull_secret"]}
    )
    site = SiteValues(secrets={"pull_secret": SECRET}, allow_inline_secrets=False)
    result = check(template, "{}", site=site)
    assert (result.parameters, result.inlined) == ({"token": "a", "pull_secret": SECRET}, ())


# The templates of this collection


def secret_parameters() -> list[tuple[str, str]]:
    shipped = {name: template for name, template in find_templates([COLLECTIONS]).items() if name.startswith("openfleet.clusters.")}
    return [(name, path) for name, template in sorted(shipped.items()) for path in _secret(template.parameters().members.values())]


def _secret(options: Any, inside: str = "") -> list[str]:
    found: list[str] = []
    option: Option
    for option in options:
        path = f"{inside}{option.name}"
        found += [path] if option.no_log else _secret(option.options.members.values(), f"{path}.") if option.options else []
    return found


@pytest.fixture(scope="module")
def shipped() -> dict[str, Template]:
    return find_templates([COLLECTIONS])


def test_the_templates_of_this_collection_have_secret_parameters() -> None:
    assert ("openfleet.clusters.ocp_4_17_small", "pull_secret") in secret_parameters()


@pytest.mark.parametrize(("name", "parameter"), secret_parameters())
def test_each_secret_parameter_takes_a_secret_of_the_tenant_and_no_other(name: str, parameter: str, shipped: dict[str, Template]) -> None:
    asked: list[SecretRef] = []

    def values(reference: dict[str, Any]) -> list[str]:
        given: Any = reference
        for part in reversed(parameter.split(".")):
            given = {part: given}
        with pytest.raises((InvalidOrder, SecretsMissing)) as caught:
            check(shipped[name], json.dumps(given), read_secret=missing)
        return str(caught.value).split("; ")

    def missing(reference: SecretRef) -> str:
        asked.append(reference)
        raise NoSuchSecret(f"parameter {reference.parameter} has no Secret {reference.name}")

    assert any(f"parameter {parameter} has no Secret mine" in text for text in values(ref()))
    assert asked == [SecretRef("mine", "text", parameter)]
    for foreign in (ref(namespace="other"), ref(namespace=""), ref(name="other/mine"), ref(name="../secrets/mine"), ref(name="%2e%2e")):
        assert any(f"parameter {parameter}.secretRef" in text for text in values(foreign)), foreign
    assert len(asked) == 1, "no Secret was read for what may be another's"
