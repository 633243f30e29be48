"""The requirements of the plugins and of the fleet API against their imports: each package is named, and no other."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
IMPORTING = ("plugins", "extensions/eda")
FLEET_API = "extensions/fleet_api"
# Ansible itself is chosen by each site; botocore is part of boto3.
NOT_NAMED = {"ansible", "ansible_collections", "botocore"}


def imported(*folders: str) -> set[str]:
    """The top-level names that the files import, in functions and conditions as well, without those of Python itself."""
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    names = {name for file in files for name in imports_of(ast.parse(file.read_text(encoding="utf-8")))}
    return names - sys.stdlib_module_names - NOT_NAMED


def imports_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def lines_of(file: str) -> set[str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def required(file: str = "requirements.txt") -> set[str]:
    return {normalized(re.split(r"[<>=!~\[; ]", line)[0]) for line in lines_of(file)}


def imported_packages(*folders: str) -> set[str]:
    """The packages that have what the files import; without folders, those of the plugins."""
    providers = importlib.metadata.packages_distributions()
    return {normalized(providers[name][0]) for name in imported(*(folders or IMPORTING))}


def test_requirements_name_the_packages_that_the_plugins_import_and_no_others() -> None:
    assert imported_packages() == required()


def test_requirements_of_the_fleet_api_name_what_it_imports_besides_those_of_the_plugins() -> None:
    file = f"{FLEET_API}/requirements.txt"
    assert imported_packages(FLEET_API) - required() == required(file)
    assert lines_of(file) <= lines_of("requirements-dev.txt")
