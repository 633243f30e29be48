"""The event source alone in a process of its own, so that memory, file descriptors and threads are those of the source.

Run as a program it takes the arguments of the source as JSON. For each line of its input it prints how many objects in the process still
belong to orders of the namespace that is its second argument.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from ansible_collections.openfleet.clusters.extensions.sandbox.access import until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.in_flight import InFlightRun
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.source import serve
from ansible_collections.openfleet.clusters.plugins.module_utils.controller.work_queue import Key
from ansible_collections.openfleet.clusters.plugins.module_utils.orders.model import ClusterOrder


@dataclass(frozen=True)
class Usage:
    """What a process has at one moment."""

    memory: int
    files: int
    threads: int

    @classmethod
    def of(cls, process: int) -> Usage:
        folder = Path(f"/proc/{process}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text(encoding="utf-8").splitlines())
        memory = int(status["VmRSS"].split()[0]) * 1024
        return cls(memory, len(list((folder / "fd").iterdir())), int(status["Threads"]))


class MeasuredSource:
    """The process. It drops the events: the test that changes the orders also takes their locks, as runs would."""

    def __init__(self, arguments: Mapping[str, Any], namespace: str) -> None:
        self._port = free_port()
        given = {**arguments, "webhook": {"port": self._port, "rate_limit": 10**6}}
        self._command = [sys.executable, "-m", __name__, json.dumps(given), namespace]

    @contextlib.contextmanager
    def running(self) -> Iterator[MeasuredSource]:
        with subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as self._process:
            try:
                until(self._is_ready, "the source follows the hub", 120)
                yield self
            finally:
                self._process.kill()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, "the source has ended"
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            pages = [urllib3.request("GET", f"{self.url}/{page}", retries=False, timeout=5) for page in ("healthz", "metrics")]
            return pages[0].status == 200 and b"openfleet_orders_leader 1.0" in pages[1].data
        return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def references(self) -> int:
        """How many objects in the process belong to orders; it has collected its garbage then."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def usage(self) -> Usage:
        return Usage.of(self._process.pid)


class _Nowhere:
    async def put(self, _event: Any) -> None:
        """Nothing is run."""


def _references(namespace: str) -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free belongs to the system again, so that memory is what is in use
    found = gc.get_objects()
    named = sum(item.namespace == namespace for item in found if isinstance(item, Key | ClusterOrder))
    return named + sum(any(key.namespace == namespace for key in item.orders) for item in found if isinstance(item, InFlightRun))


async def _main(arguments: Mapping[str, Any], namespace: str) -> None:
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, lambda: sys.stdin.readline() and print(_references(namespace), flush=True))
    await serve(_Nowhere(), arguments)


if __name__ == "__main__":
    asyncio.run(_main(json.loads(sys.argv[1]), sys.argv[2]))
