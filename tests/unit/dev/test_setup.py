"""`make setup` when the machine is not as it should be: one sentence to act on, and nothing half-made left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.openfleet.clusters.extensions.dev.setup import java_version

ROOT = Path(__file__).resolve().parents[3]
UNUSED_ADDRESS = "http://127.0.0.1:9/simple"
PROGRAM = """
import shutil, types
from extensions.dev import setup
from extensions.sandbox.screen import run_command
{changes}
run_command(setup.main)
"""
NO_DISK = "shutil.disk_usage = lambda path: types.SimpleNamespace(free=2**30)"
NO_PACKAGES = "setup._pip = setup._unpack_collections = setup._provide_java = lambda *arguments: None"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with no environment: the files that set-up reads."""
    folder = tmp_path / "clusters"
    for pattern in ("Makefile", "requirements*", "extensions/dev/*.py", "extensions/sandbox/*.py"):
        for file in ROOT.glob(pattern):
            copy = folder / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    return folder


def environment(registry: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return inherited | {"PIP_INDEX_URL": registry, "PIP_RETRIES": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def run_setup(checkout: Path, changes: str = "", python: str | Path = sys.executable) -> subprocess.CompletedProcess[str]:
    command = [python, "-c", PROGRAM.format(changes=changes)]
    return subprocess.run(command, cwd=checkout, env=environment(UNUSED_ADDRESS), capture_output=True, text=True, check=False)


def assert_refused(result: subprocess.CompletedProcess[str], checkout: Path, word: str) -> None:
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("✘ ")
    assert word in result.stderr
    assert not (checkout / ".venv").exists()


def test_registry_that_does_not_answer_is_named(checkout: Path) -> None:
    assert_refused(run_setup(checkout), checkout, "Python package registry does not answer")


def test_too_little_disk_is_reported_before_anything_is_created(checkout: Path) -> None:
    result = run_setup(checkout, NO_DISK)
    assert_refused(result, checkout, "GiB free")
    assert result.stdout == ""


def test_second_run_does_nothing_until_a_pin_changes(checkout: Path) -> None:
    first = run_setup(checkout, NO_PACKAGES)
    assert first.returncode == 0, first.stderr
    second = run_setup(checkout)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    with open(checkout / "requirements.lock", "a") as lock:
        lock.write("new-package==1.0\n")
    # In an activated environment the Python that runs set-up is the one that set-up replaces.
    third = run_setup(checkout, NO_PACKAGES, checkout / ".venv" / "bin" / "python")
    assert third.returncode == 0, third.stderr
    assert "Python packages" in third.stdout


def test_interrupted_setup_leaves_no_environment(checkout: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_registry:
        silent_registry.settimeout(300)
        registry = f"http://127.0.0.1:{silent_registry.getsockname()[1]}/simple"
        process = subprocess.Popen(
            [sys.executable, "-m", "extensions.dev.setup"],
            cwd=checkout,
            env=environment(registry),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with silent_registry.accept()[0]:
            assert (checkout / ".venv").exists()
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: pip gets the signal too
            errors = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert errors.strip() == "✘ Interrupted."
    assert not (checkout / ".venv").exists()


def test_machine_without_python_gets_the_name_of_what_to_install(checkout: Path) -> None:
    make = shutil.which("make")
    assert make
    result = subprocess.run([make, "setup"], cwd=checkout, env={"PATH": str(checkout)}, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert result.stderr.splitlines()[0].startswith("✘ Python 3.11 or newer is needed")
    assert not (checkout / ".venv").exists()


def fake_java(folder: Path, version: str) -> Path:
    """A folder such as JAVA_HOME whose java says that it is of this version."""
    java = folder / version / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    return java.parents[1]


def test_java_home_counts_more_than_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path, "17.0.9") / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "21.0.1")))
    assert java_version() == 21
    monkeypatch.delenv("JAVA_HOME")
    assert java_version() == 17


def test_java_too_old_for_ansible_rulebook_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(fake_java(tmp_path, "11.0.20") / "bin"))
    assert java_version() is None


def test_machine_without_java_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java_version() is None
