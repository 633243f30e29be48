"""The table at the end of a run: each test that went without a file, what it is, and how to give it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = "ansible_collections.openfleet.clusters.tests.given_files"
TESTS = """
import pytest

@pytest.mark.osac_crds
def test_on_a_stand_in(osac_crd):
    assert osac_crd("osac.openshift.io")["spec"]["group"] == "osac.openshift.io"

def test_without_a_program():
    pytest.skip("systemd-analyze: install systemd")

def test_complete():
    pass
"""


METALLB = """
import pytest

@pytest.mark.metallb_crds
def test_metallb(metallb_crds):
    assert [crd["spec"]["names"]["kind"] for crd in metallb_crds] == ["IPAddressPool", "L2Advertisement"]
"""


def run(folder: Path, *options: str, tests: str = TESTS) -> list[str]:
    """The lines that pytest writes about the tests."""
    (folder / "test_some.py").write_text(tests)
    plugins = ("-p", PLUGIN, "-p", "no:pytest-ansible", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *plugins, f"--rootdir={folder}", *options, "test_some.py"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()


def test_table_names_each_test_what_is_missing_and_how_to_give_it(tmp_path: Path) -> None:
    lines = run(tmp_path, "--numprocesses=1")
    start = next(number for number, line in enumerate(lines) if "not tested to the full" in line)
    rows = [[cell.strip() for cell in line.split("  ") if cell] for line in lines[start + 1 : start + 4]]
    assert rows == [
        ["test", "what is missing", "how to give it"],
        ["test_some.py::test_on_a_stand_in", "OSAC's CRDs; a stand-in took their place", "--osac-crds=FOLDER"],
        ["test_some.py::test_without_a_program", "systemd-analyze", "install systemd"],
    ]
    assert not any("test_complete" in line for line in lines[start:])


def test_file_that_was_given_is_used_and_not_missing(tmp_path: Path) -> None:
    crd = '{"kind": "CustomResourceDefinition", "spec": {"group": "osac.openshift.io"}}'
    (tmp_path / "osac.openshift.io_clusterorders.yaml").write_text(crd)
    assert not any("stand-in" in line for line in run(tmp_path, f"--osac-crds={tmp_path}"))


def test_module_that_a_proxy_refuses_is_named_and_a_stand_in_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))  # nothing was downloaded before
    monkeypatch.setenv("GOPROXY", (tmp_path / "proxy").as_uri())
    lines = run(tmp_path, tests=METALLB)
    assert any("test_metallb" in line and "the Go proxy refuses" in line for line in lines)
