"""The README of a role is the generated one, and has the defaults of the role."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.dev.role_readmes import FROM_PLAYBOOKS, readmes

READMES = readmes()


@pytest.mark.parametrize("role", READMES, ids=lambda role: role.name)
def test_readme_is_generated_from_the_role(role: Path) -> None:
    readme = (role / "README.md").read_text(encoding="utf-8")
    assert readme == READMES[role], "run python -m ansible_collections.openfleet.clusters.extensions.dev.role_readmes"


@pytest.mark.parametrize("role", READMES, ids=lambda role: role.name)
def test_documented_defaults_are_those_of_the_role(role: Path) -> None:
    file = role / "defaults" / "main.yml"
    defaults = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    documented = specs.get("install", specs.get("main", {})).get("options", {})
    given = {name: option["default"] for name, option in documented.items() if name not in FROM_PLAYBOOKS and "default" in option}
    assert given == defaults
