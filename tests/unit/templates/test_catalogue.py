"""Finding cluster templates in collections, and resolving the one that an order names."""

from __future__ import annotations

import functools
import io
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.catalogue import find_templates, resolve
from ansible_collections.openfleet.clusters.plugins.module_utils.templates.errors import (
    TemplateError,
    UnknownTemplate,
)

from .template_samples import METADATA, specs, write_role

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


def test_each_of_hundred_collections_is_listed_once_and_no_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(100):
        for role in range(10):
            write_role(tmp_path, f"site.collection{number}.role{role}", None, "not: [yaml")
    write_role(tmp_path, "site.collection50.template", "not: [yaml", "not: [yaml")
    listed, opened = calls_of(monkeypatch, os, "scandir", "listdir"), calls_of(monkeypatch, io, "open", "open_code")
    assert list(find_templates([tmp_path])) == ["site.collection50.template"]
    root = tmp_path / "ansible_collections"
    assert Counter(listed) == Counter([root, root / "site", *(root / f"site/collection{number}/roles" for number in range(100))])
    assert opened == []


def calls_of(monkeypatch: pytest.MonkeyPatch, module: ModuleType, *functions: str) -> list[Path]:
    """The paths that these functions are called with from now on."""
    calls: list[Path] = []

    def recorded(function: Callable[..., Any], path: Any, *arguments: Any, **options: Any) -> Any:
        calls.append(Path(path))
        return function(path, *arguments, **options)

    for name in functions:
        monkeypatch.setattr(module, name, functools.partial(recorded, getattr(module, name)))
    return calls


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
