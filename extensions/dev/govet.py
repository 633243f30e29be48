"""Run `go vet` over our own Go files. A module that only names a program to compile has none."""

from __future__ import annotations

import os
import subprocess

from ..sandbox.gobuild import GO_FLAGS, GO_SETTINGS, SOURCES, go_command
from ..sandbox.screen import run_command


def main() -> int:
    # The settings of the sandbox's build, so that what it compiled is taken from Go's cache.
    command = [go_command(), "vet", *GO_FLAGS, "./..."]
    folders = sorted({file.parent for file in SOURCES.glob("*/*.go")})
    return max(subprocess.run(command, cwd=folder, env=os.environ | GO_SETTINGS, check=False).returncode for folder in folders)


if __name__ == "__main__":
    run_command(main)
