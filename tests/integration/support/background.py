"""A program of the tests as a process of its own, for molecule, which needs it in several commands. A file says where it is.

The process serves once the file exists, and ends when the file is deleted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.openfleet.clusters.extensions.sandbox.access import until

POLL_SECONDS = 0.2


def start(module: str, file: Path) -> None:
    """Start `python -m MODULE --serve FILE`, and return when it serves."""
    log = file.with_suffix(".log")
    command = [sys.executable, "-m", module, "--serve", file]
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    until(lambda: file.exists() or process.poll() is not None, f"{module} serves")
    if process.poll() is not None:
        sys.exit(log.read_text(encoding="utf-8"))


def announce(file: Path, where: Mapping[str, object]) -> None:
    """Write the file, and return when it is deleted."""
    # Renamed, so that no reader finds half of it.
    part = file.with_suffix(".part")
    part.write_text(json.dumps(where), encoding="utf-8")
    part.rename(file)
    while file.exists():
        time.sleep(POLL_SECONDS)
