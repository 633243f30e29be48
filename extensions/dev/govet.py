"""Run `go vet` over our own Go files. A module that only names a program to compile has none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..sandbox.gobuild import go_command
from ..sandbox.screen import run_command

MODULES = Path(__file__).resolve().parents[1] / "sandbox" / "go"


def main() -> int:
    # The settings of the sandbox's build, so that what it compiled is taken from Go's cache.
    command = [go_command(), "vet", "-trimpath", "-buildvcs=false", "./..."]
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    folders = sorted({file.parent for file in MODULES.glob("*/*.go")})
    return max(subprocess.run(command, cwd=folder, env=environment, check=False).returncode for folder in folders)


if __name__ == "__main__":
    run_command(main)
