"""Which provider a cluster has only the factory knows: proven by what each Python file of the collection imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import BUILT_IN, ProviderFactory

ROOT = Path(__file__).resolve().parents[3]
PROVIDERS = ROOT / "plugins" / "module_utils" / "providers"
PACKAGE = "ansible_collections.openfleet.clusters"
# What may be known of providers elsewhere: the interface and who gives one.
PUBLIC = {"base", "factory", "model"}
OTHERS = [path for folder in ("plugins", "extensions") for path in sorted((ROOT / folder).rglob("*.py")) if PROVIDERS not in path.parents]


def imported(path: Path, text: str) -> Iterator[str]:
    """The full names of all that a file imports, wherever in the file it does so."""
    package = [*PACKAGE.split("."), *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)


def concrete(path: Path, text: str) -> set[str]:
    """The files of the package `providers` that a file imports, but for those that everybody may."""
    start = f"{PACKAGE}.plugins.module_utils.providers."
    return {name.removeprefix(start).split(".")[0] for name in imported(path, text) if name.startswith(start)} - PUBLIC


def test_no_file_outside_imports_a_provider() -> None:
    assert {str(path.relative_to(ROOT)): found for path in OTHERS if (found := concrete(path, path.read_text(encoding="utf-8")))} == {}


def test_every_provider_is_known_to_the_factory_and_to_no_other_provider() -> None:
    files = {path.stem for path in PROVIDERS.glob("*.py")} - PUBLIC - {"__init__"}
    given = {kind: ProviderFactory.get(kind).TYPE for kind in BUILT_IN}
    assert given == {kind: kind for kind in BUILT_IN}
    assert files >= set(BUILT_IN)
    for name in files:
        path = PROVIDERS / f"{name}.py"
        assert concrete(path, path.read_text(encoding="utf-8")) & set(BUILT_IN) == set(), f"{name} knows a provider"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("plugins/action/cluster.py", f"from {PACKAGE}.plugins.module_utils.providers.hypershift import ClusterProvider"),
        ("plugins/action/cluster.py", f"from {PACKAGE}.plugins.module_utils.providers import hypershift"),
        ("plugins/action/cluster.py", f"import {PACKAGE}.plugins.module_utils.providers.hypershift"),
        ("plugins/module_utils/snapshot.py", "from .providers.hypershift import API_VERSION"),
        ("plugins/module_utils/snapshot.py", "from .providers import standalone"),
        ("plugins/module_utils/snapshot.py", "def late():\n    from .providers import standalone"),
        ("extensions/sandbox/access.py", "from ...plugins.module_utils.providers.standalone import KEY"),
    ],
)
def test_each_way_to_import_one_is_seen(path: str, line: str) -> None:
    assert concrete(ROOT / path, line)


def test_the_interface_may_be_known() -> None:
    line = "from .providers.base import Provider\nfrom .providers import factory, model"
    assert concrete(ROOT / "plugins/module_utils/snapshot.py", line) == set()
