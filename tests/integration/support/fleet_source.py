"""The event source of a fleet, in a process of its own that can be killed, or in a thread of the test.

Run as a program it takes the arguments of the source as JSON, and prints each event as a line of JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.fleet_source import serve

from .fleet import Fleet


class FleetProcess:
    """One process. `events` has what it emitted."""

    def __init__(self, fleet: Fleet, **arguments: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self._port = free_port()
        given = fleet.source_arguments() | {"health": {"port": self._port}} | arguments
        self._command = [sys.executable, "-m", __name__, json.dumps(given)]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> FleetProcess:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        return self

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.events.append(json.loads(line))

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def kill(self) -> None:
        """As a full machine would: without a chance to end in order."""
        if self._process:
            self._process.kill()
            self._process.communicate()

    def metric(self, name: str) -> float:
        """The value of a metric, with its labels in the name; -1 while the process does not answer."""
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            text = urllib3.request("GET", f"http://127.0.0.1:{self._port}/metrics", retries=False, timeout=10).data.decode()
            return next((float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} ")), 0.0)
        return -1.0

    def is_healthy(self) -> bool:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            return urllib3.request("GET", f"http://127.0.0.1:{self._port}/healthz", retries=False, timeout=10).status == 200
        return False

    def leads(self) -> bool:
        return self.is_healthy() and self.metric("openfleet_fleet_leader") == 1

    def until_leads(self) -> FleetProcess:
        until(self.leads, "the source leads", 120)
        return self

    def of(self, name: str) -> list[dict[str, Any]]:
        """The events of one cluster or hub."""
        return [each for each in list(self.events) if name == (each["cluster"]["name"] if "cluster" in each else each["hub"])]

    def types(self, name: str) -> list[str]:
        return [each["type"] for each in self.of(name)]


@contextlib.contextmanager
def running(fleet: Fleet, **arguments: Any) -> Iterator[FleetProcess]:
    """A source that leads."""
    process = FleetProcess(fleet, **arguments).start()
    try:
        yield process.until_leads()
    finally:
        process.kill()


class _Printer:
    async def put(self, event: Mapping[str, Any]) -> None:
        print(json.dumps(event), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(_Printer(), json.loads(sys.argv[1])))
