"""The molecule scenarios by pytest-ansible's fixture. The suite does not collect this file; `test_scenarios.py` runs it."""

from __future__ import annotations

from pytest_ansible.molecule import MoleculeScenario


def test_scenario(molecule_scenario: MoleculeScenario) -> None:
    assert molecule_scenario.test().returncode == 0
