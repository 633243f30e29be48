"""The factory knows every built-in provider, and the import contracts in pyproject.toml cover them all."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.plugins.module_utils.providers.factory import BUILT_IN, ProviderFactory

ROOT = Path(__file__).resolve().parents[3]
PROVIDERS = "ansible_collections.openfleet.clusters.plugins.module_utils.providers."


@pytest.mark.parametrize("kind", BUILT_IN)
def test_factory_finds_the_built_in_provider_of_that_type(kind: str) -> None:
    assert kind == ProviderFactory.get(kind).TYPE


@pytest.mark.parametrize("contract_type", ["protected", "independence"])
def test_import_contract_covers_every_built_in_provider(contract_type: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    covered = [contract.get("modules") or contract["protected_modules"] for contract in contracts if contract["type"] == contract_type]
    modules = {name.removeprefix(PROVIDERS) for names in covered for name in names}
    assert modules - {"objects", "resources"} == set(BUILT_IN)


def test_every_other_file_of_the_package_is_protected_from_imports() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    protected = {name for contract in contracts if contract["type"] == "protected" for name in contract["protected_modules"]}
    found = {path.stem for path in (ROOT / "plugins/module_utils/providers").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__init__", "__pycache__", "base", "factory", "model"} == {
        name.removeprefix(PROVIDERS) for name in protected if name.startswith(PROVIDERS)
    }
