"""Run `ansible-test sanity` through the link to this checkout below .venv/collections, with a home of its own.

The home has ansible-test's cache between runs and is deleted with .venv. ansible-test passes on no variable but HOME and PATH, so
the settings of pip and git are files there.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import getproxies

from ..sandbox.screen import run_command

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".venv" / "ansible-test"
CONTENT = ROOT / ".venv" / "collections" / "ansible_collections" / "openfleet" / "clusters"
# ansible-test of ansible-core 2.19 would download this file; Python's own pip does instead.
BOOTSTRAP = Path(".ansible/test/cache/get_pip_24_2.py")


def main() -> int:
    _write(BOOTSTRAP, "import ensurepip\n\nensurepip.bootstrap()\n")
    _write(Path(".config/pip/pip.conf"), _pip_settings())
    _write(Path(".gitconfig"), f"[safe]\ndirectory = {ROOT}\n")
    # Only this Python: another on PATH may be a shim that cannot run.
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = ["ansible-test", "sanity", "--color", "no", "--python", python]
    environment = os.environ | {"HOME": str(HOME), "ANSIBLE_TEST_CONTENT_ROOT": str(CONTENT)}
    return subprocess.run(command, env=environment, check=False).returncode


def _write(name: Path, text: str) -> None:
    file = HOME / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _pip_settings() -> str:
    """The user's settings as one file: registry and certificates may come from files or, with more weight, from PIP_ variables."""
    listing = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    settings = {"proxy": getproxies().get("https", "")}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        name, value = line.split("=", 1)
        settings[name.rpartition(".")[2]] = ast.literal_eval(value)
    return "\n".join(["[global]", *(f"{name} = {value}" for name, value in settings.items()), ""])


if __name__ == "__main__":
    run_command(main)
