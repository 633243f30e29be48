"""The tarball that users install: what is in it, what is not, and that Ansible finds the collection after an offline install."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ("meta", "plugins", "roles", "playbooks", "rulebooks", "extensions/sandbox", "extensions/crds", "extensions/eda")
# What a checkout collects while people work in it.
PLANTED = (
    ".ansible/roles",
    ".ci/run",
    ".docs/html/index.html",
    ".git/config",
    ".gitignore",
    ".mypy_cache/3.11/data.json",
    ".pytest_cache/README.md",
    ".ruff_cache/content",
    ".sandbox/hub/kubeconfig",
    ".venv.lock",
    ".venv/bin/python",
    "Makefile",
    "changelogs/fragments/foundation.yml",
    "extensions/dev/setup.py",
    "extensions/sandbox/__pycache__/screen.cpython-311.pyc",
    "openfleet-clusters-0.0.1.tar.gz",
    "pyproject.toml",
    "requirements-dev.txt",
    "tests/conftest.py",
    "tests/integration/test_sandbox.py",
    "tests/output/bot/report.json",
    "tests/unit/test_galaxy_build.py",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout") / "clusters"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    for name in PLANTED:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.fixture(scope="module")
def tarball(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    galaxy(folder, "build", "--output-path", folder, checkout)
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def contents(tarball: Path) -> set[str]:
    with tarfile.open(tarball) as archive:
        return set(archive.getnames())


def galaxy(home: Path, *arguments: str | Path) -> str:
    command = [Path(sys.prefix) / "bin" / "ansible-galaxy", "collection", *arguments]
    # The environment's own link to the checkout is on sys.path; an install would find it and have nothing to do.
    environment = os.environ | {"ANSIBLE_HOME": str(home / "ansible-home"), "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_tarball_carries_every_file_that_works_for_a_user(checkout: Path, contents: set[str]) -> None:
    files = {file for folder in SHIPPED for file in (checkout / folder).rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert files
    assert {str(file.relative_to(checkout)) for file in files} <= contents


def test_tarball_carries_licence_changelog_and_requirements(contents: set[str]) -> None:
    assert {"LICENSE", "CHANGELOG.rst", "bindep.txt", "requirements.txt", "requirements.lock"} <= contents


def test_tarball_leaves_out_what_people_and_tools_leave_in_a_checkout(contents: set[str]) -> None:
    assert contents.isdisjoint(PLANTED)
    assert not [name for name in contents if name.startswith(".") or name.endswith("__pycache__")]


def test_installed_offline_the_collection_is_found_by_ansible(tarball: Path, tmp_path: Path) -> None:
    galaxy(tmp_path, "install", "--offline", "-p", tmp_path, tarball)
    listed = json.loads(galaxy(tmp_path, "list", "-p", tmp_path, "--format", "json"))
    assert listed[str(tmp_path / "ansible_collections")] == {"openfleet.clusters": {"version": "0.1.0"}}
