"""The services of GitOps as parts of the sandbox: one process with git and charts, one with the OCI registry."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
from pathlib import Path

from ..processes import Process, ProcessDied, free_port, read_json, write_json

SERVER, REGISTRY = "git-and-charts", "oci-registry"
DESCRIPTION = "gitops.json"
USERNAME = "sandbox"
# By environment: a command line is visible to every user of the machine.
USERNAME_SETTING, TOKEN_SETTING = "OPENFLEET_GIT_USERNAME", "OPENFLEET_GIT_TOKEN"
READY_SECONDS = 60
PACKAGE = __package__


class GitOpsServices:
    """The services in `folder`, which keeps their data, ports and token."""

    def __init__(self, folder: Path, binaries: dict[str, Path]) -> None:
        self.folder = folder
        self._binary = binaries["registry"]
        self._processes: list[Process] = []

    @property
    def running(self) -> bool:
        return bool(self._processes) and all(process.running for process in self._processes)

    async def start(self) -> None:
        """Start both, with the ports and the token of their last start, and return when they listen."""
        await self.stop()
        for name in ("git", "charts", "clones", "registry"):
            (self.folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        last = read_json(self.folder / DESCRIPTION)
        port, registry_port = last.get("port") or free_port(), last.get("registry_port") or free_port()
        token = last.get("token") or secrets.token_urlsafe(30)
        write_json(self.folder / "registry.json", _registry_settings(registry_port))
        environment = {USERNAME_SETTING: USERNAME, TOKEN_SETTING: token}
        command = [sys.executable, "-m", f"{PACKAGE}.server", "--folder", str(self.folder), "--port", str(port)]
        self._processes = [
            Process(SERVER, command, self.folder, environment),
            Process(REGISTRY, [self._binary, "serve", "registry.json"], self.folder, {"OTEL_TRACES_EXPORTER": "none"}),
        ]
        try:
            await asyncio.gather(*(process.start() for process in self._processes))
            for process, listens in zip(self._processes, (port, registry_port), strict=True):
                await _until_listening(process, listens)
        except BaseException:
            await self.stop()
            raise
        description = {
            "name": "gitops",
            "url": f"http://127.0.0.1:{port}",
            "port": port,
            "username": USERNAME,
            "token": token,
            "registry": f"127.0.0.1:{registry_port}",
            "registry_port": registry_port,
            "processes": [process.describe() for process in self._processes],
        }
        write_json(self.folder / DESCRIPTION, description)

    async def stop(self) -> None:
        await asyncio.gather(*(process.stop() for process in self._processes))
        self._processes = []


def _registry_settings(port: int) -> dict[str, object]:
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": "registry"}, "delete": {"enabled": True}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }


async def _until_listening(process: Process, port: int) -> None:
    for _attempt in range(READY_SECONDS * 10):
        process.check()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        await asyncio.sleep(0.1)
    raise ProcessDied(f"{process.name} does not listen after {READY_SECONDS} s. {process.exit_report()}")
