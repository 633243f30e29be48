"""Every template by its molecule scenario: an order becomes a cluster, a second run changes nothing, and deleting leaves nothing.

pytest-ansible runs the scenarios. Its plugin changes how collections are imported, so each scenario has a pytest of its own; the hub is
that of this run. One scenario starts its own hub, as `molecule test` does by hand.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

from .ocm_contract import contract
from .orders import Started

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted(file.parent.name for file in ROOT.glob("extensions/molecule/*/molecule.yml"))
TEMPLATES = sorted(file.parents[1].name for file in ROOT.glob("roles/*/meta/template.yml"))
# The hub of a scenario is one without processes behind HostedClusters, except for these.
HUBS = {"capi_small": "sandbox", "ocp_4_17_small": None}
# Settings of a person that would reach molecule, Ansible or the other pytest.
FOREIGN = ("ANSIBLE_", "K8S_AUTH_", "KUBE", "MOLECULE_", "OPENFLEET_SANDBOX", "PYTEST_")


def test_every_template_has_a_scenario() -> None:
    assert SCENARIOS == TEMPLATES


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_passes(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if name == "osd_small":
        contract()
    own = {
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "MOLECULE_EPHEMERAL_DIRECTORY": str(tmp_path / "scenario"),
        "NO_COLOR": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    if hub := HUBS.get(name, "quick_sandbox"):
        own["OPENFLEET_SANDBOX"] = str(request.getfixturevalue(hub).state)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    options = ["-p", "pytest-ansible", "--ansible-unit-inject-only", "--noconftest", "-p", "no:cacheprovider"]
    selected = f"tests/integration/molecule_scenarios.py::test_scenario[extensions-{name}]"
    started = Started([sys.executable, "-m", "pytest", *options, selected], inherited | own, ROOT)
    run = started.end()
    assert run.code == 0, run.output
    assert "1 passed" in run.output
    until(lambda: not started.processes(), f"no process of the scenario {name} is left")
    assert not (tmp_path / "scenario" / "sandbox").exists()
