"""An event source alone in a process that can be killed, without a rules engine: its events are dropped.

Run as a program it takes the module of the source and its arguments as JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.openfleet.clusters.extensions.sandbox.launcher import die_with_me

CONTROLLER = "ansible_collections.openfleet.clusters.plugins.module_utils.controller"


class EventSource:
    """The source of a module of the package `controller`, such as `fleet_source`. Its log is in the folder."""

    def __init__(self, module: str, arguments: Mapping[str, Any], folder: Path, name: str) -> None:
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "-m", __name__, f"{CONTROLLER}.{module}", json.dumps(arguments)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(die_with_me(self._command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """As a full machine would: without a chance to end in order."""
        if self._process:
            self._process.kill()
            self._process.wait()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None


class _Nowhere:
    async def put(self, _event: Any) -> None:
        """Nothing is run."""


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    asyncio.run(importlib.import_module(sys.argv[1]).serve(_Nowhere(), json.loads(sys.argv[2])))
