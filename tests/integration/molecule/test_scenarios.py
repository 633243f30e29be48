"""The molecule scenario of every role: a second run changes nothing, no object is left.

pytest-ansible runs the scenarios. Its plugin changes how collections are imported, so each scenario runs in a pytest
process of its own, on a hub of this run.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.openfleet.clusters.extensions.sandbox import debian
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until

from ..support.orders import Started

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = sorted(file.parent.name for file in ROOT.glob("extensions/molecule/*/molecule.yml"))
ROLES = {file.parents[1].name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in ROOT.glob("roles/*/meta/main.yml")}
# An adapter has this tag in its meta/main.yml. The role that calls it has the scenario.
ADAPTER = "adapter"
# What templates without a `delete` of their own use; the scenarios of templates delete their clusters.
INCLUDED = ["default_delete"]
OLM_KINDS = [f"{plural}.operators.coreos.com" for plural in ("clusterserviceversions", "operatorgroups", "subscriptions")]
# The fixture of a scenario's sandbox. None: the scenario starts its own, as `molecule test` does by hand, or needs
# none.
HUBS = {"capi_small": "sandbox", "existing_cluster": None, "worker_vms": None}
# Settings of the caller that would reach molecule, Ansible or the other pytest.
FOREIGN = ("ANSIBLE_", "K8S_AUTH_", "KUBE", "MOLECULE_", "OPENFLEET_SANDBOX", "PYTEST_")
# A documented file: a line that begins with its path, and the next block of YAML.
DOCUMENTED = re.compile(r"^`((?:roles|extensions/molecule)/tiny/[^`]+)`.*?^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_role_but_adapters_has_a_scenario() -> None:
    adapters = [name for name, meta in ROLES.items() if ADAPTER in meta["galaxy_info"].get("galaxy_tags", [])]
    assert sorted(ROLES.keys() - {*adapters, *INCLUDED}) == SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_passes(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if name == "external_access" and debian.find(debian.KNOT) is None:
        pytest.skip("a DNS server, knotd: install knot")
    hub = HUBS.get(name, "quick_sandbox")
    shared = {"OPENFLEET_SANDBOX": str(request.getfixturevalue(hub).state)} if hub else {}
    options = ["-p", "pytest-ansible", "--ansible-unit-inject-only", "--noconftest", "-p", "no:cacheprovider"]
    selected = f"tests/integration/molecule/scenarios.py::test_scenario[extensions-{name}]"
    output = passing("pytest", *options, selected, folder=ROOT, scratch=tmp_path, **shared)
    assert "1 passed" in output
    if hub == "quick_sandbox":
        remove_what_is_inside(request.getfixturevalue("quick_hub"))


def remove_what_is_inside(hub: Access) -> None:
    """The hub is also the cluster of the scenarios: what a deleted cluster would take with it."""
    hub.kubectl("delete", "configmap", "-n", "kube-system", "-l", "openfleet.clusters/resource-set")
    hub.kubectl("delete", "crd", "--ignore-not-found", *OLM_KINDS)


def test_documented_scenario_passes(tmp_path: Path) -> None:
    collection = tmp_path / "ansible_collections/acme/templates"
    files = dict(DOCUMENTED.findall((ROOT / "docs/writing_a_template.md").read_text(encoding="utf-8")))
    for path, text in files.items():
        (collection / path).parent.mkdir(parents=True, exist_ok=True)
        (collection / path).write_text(text, encoding="utf-8")
    collections = os.pathsep.join([str(tmp_path), str(Path(sys.prefix) / "collections")])
    output = passing(
        "molecule", "test", "-s", "tiny", folder=collection / "extensions", scratch=tmp_path, ANSIBLE_COLLECTIONS_PATH=collections
    )
    assert "actions=6  successful=6" in output


def passing(module: str, *arguments: str, folder: Path, scratch: Path, **settings: str) -> str:
    """Run a Python module that runs molecule; it succeeds and leaves no process. Returns its output."""
    own = {
        "ANSIBLE_HOME": str(scratch / "ansible"),
        "MOLECULE_EPHEMERAL_DIRECTORY": str(scratch / "scenario"),
        "NO_COLOR": "1",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    started = Started([sys.executable, "-m", module, *arguments], inherited | own | settings, folder)
    run = started.end()
    assert run.code == 0, run.output
    until(lambda: not started.processes(), "no process of the run is left")
    assert not (scratch / "scenario/sandbox").exists()
    return run.output
