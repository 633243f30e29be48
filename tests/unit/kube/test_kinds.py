"""The registry of kinds: what a package registers needs no discovery, and decides when objects are applied. No server is needed."""

from __future__ import annotations

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.kube import kinds
from ansible_collections.openfleet.clusters.plugins.module_utils.kube.kinds import (
    Resource,
    in_apply_order,
    known_resource,
    register,
    registered_kinds,
)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test registers in copies."""
    monkeypatch.setattr(kinds, "_registered", dict(kinds._registered))  # noqa: SLF001 - nothing else may see these kinds
    monkeypatch.setattr(kinds, "_stages", dict(kinds._stages))  # noqa: SLF001 - the same


def order(*wanted: tuple[str, str]) -> list[list[str]]:
    items = [{"apiVersion": api_version, "kind": kind} for api_version, kind in wanted]
    return [[item["kind"] for item in group] for group in in_apply_order(items)]


def test_kinds_that_others_depend_on_are_applied_before_them() -> None:
    register("example.com", "Part", "parts", after="Whole")
    assert order(
        ("example.com/v1", "Part"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("example.com/v1", "Whole"),
        ("v1", "Secret"),
        ("apps/v1", "Deployment"),
        ("v1", "Namespace"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("v1", "ServiceAccount"),
        ("rbac.authorization.k8s.io/v1", "Role"),
    ) == [
        ["Namespace", "CustomResourceDefinition"],
        ["Secret", "ServiceAccount"],
        ["RoleBinding", "Role"],
        ["Whole", "Deployment"],
        ["Part"],
    ]
    assert in_apply_order([]) == []


def test_kind_is_applied_after_one_that_is_itself_applied_after_another() -> None:
    register("example.com", "Part", "parts", after="Whole")
    register("example.com", "Screw", "screws", after="Part")
    assert order(*(("example.com/v1", kind) for kind in ("Screw", "Part", "Whole"))) == [["Whole"], ["Part"], ["Screw"]]


def test_group_tells_kinds_of_one_name_apart() -> None:
    register("example.com", "Secret", "secrets", namespaced=False)
    assert known_resource("example.com/v1", "Secret") == Resource("secrets", namespaced=False)
    assert known_resource("v1", "Secret") == Resource("secrets")
    assert order(("example.com/v1", "Secret"), ("v1", "Secret"), ("v1", "ConfigMap")) == [["Secret", "ConfigMap"], ["Secret"]]


def test_kind_is_known_in_every_version_once_it_is_registered() -> None:
    assert known_resource("example.com/v1", "Widget") is None
    register("example.com", "Widget", "widgets")
    assert {known_resource(f"example.com/{version}", "Widget") for version in ("v1alpha1", "v1")} == {Resource("widgets")}
    assert registered_kinds()["example.com", "Widget"] == Resource("widgets")
