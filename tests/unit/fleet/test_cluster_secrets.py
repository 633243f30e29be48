"""Secrets of clusters: which keys are copied from the tenant's namespace, and what arrives on the hub."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.cluster_secrets import (
    LABEL,
    MAX_BYTES,
    Reference,
    SecretsRefused,
    copy_of,
    references,
    secrets_of,
)

PULL = Reference("registries", ".dockerconfigjson")


def ref(name: Any, key: Any) -> dict[str, Any]:
    return {"secretRef": {"name": name, "key": key}}


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, ()),
        ({"a": 1, "b": "secretRef", "c": [1, None]}, ()),
        ({"pull_secret": ref(*["registries", ".dockerconfigjson"])}, (PULL,)),
        ({"a": {"b": [ref("x", "y"), ref("x", "z")]}, "c": ref("x", "y")}, (Reference("x", "y"), Reference("x", "z"))),
        ({"a": {"secretRef": {"name": "x", "key": "y", "namespace": "other"}}}, ()),
        ({"a": ref("../x", "y"), "b": ref("x", "a/b"), "c": ref(1, "y"), "d": {"secretRef": "x"}, "e": ref("x", "y") | {"f": 1}}, ()),
    ],
)
def test_references_are_those_that_a_template_accepts(parameters: dict[str, Any], found: tuple[Reference, ...]) -> None:
    assert references(parameters) == found


def test_deep_parameters_end() -> None:
    deep: Any = ref("x", "y")
    for _level in range(500):
        deep = [deep]
    assert references({"a": deep}) == ()


def test_more_secrets_than_an_order_can_have_are_refused() -> None:
    with pytest.raises(SecretsRefused, match="more than 20 Secrets"):
        references({"a": [ref(f"x{number}", "y") for number in range(21)]})


def test_names_with_dots_do_not_collide() -> None:
    assert Reference("a.b", "c").data_key != Reference("a", "b.c").data_key
    assert len(Reference("a" * 253, "b" * 253).data_key) <= 253


def test_only_referenced_keys_are_copied_and_arrive_under_their_names() -> None:
    value = base64.b64encode(b"{}").decode()
    tenant = {"registries": {"data": {".dockerconfigjson": value, "other": value}}}
    copied = copy_of("east", "uid", (PULL,), tenant.get)
    assert (copied["metadata"]["name"], copied["metadata"]["namespace"], copied["metadata"]["labels"]) == ("uid", "hub-east", {LABEL: ""})
    assert list(copied["data"].values()) == [value]
    assert secrets_of(copied, (PULL,)) == {"registries": {".dockerconfigjson": value}}


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (None, "the Secret registries, which does not exist"),
        ({"data": {}}, "the key .dockerconfigjson, which the Secret registries does not have"),
        ({"data": {".dockerconfigjson": "s3cr3t" * MAX_BYTES}}, "are larger than"),
    ],
)
def test_what_cannot_be_copied_is_named_without_a_value(secret: Any, message: str) -> None:
    with pytest.raises(SecretsRefused, match=message) as caught:
        copy_of("east", "uid", (PULL,), lambda _name: secret)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("copied", [None, {}, {"data": {}}, {"data": {PULL.data_key: "no base64!"}}, {"data": {PULL.data_key: 7}}])
def test_an_incomplete_copy_is_waited_for(copied: Any) -> None:
    with pytest.raises(SecretsRefused, match="has not sent the key"):
        secrets_of(copied, (PULL,))
