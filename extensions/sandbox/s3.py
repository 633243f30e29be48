"""The sandbox's S3: versitygw, a real S3 server on a folder, on loopback, with credentials made at start."""

from __future__ import annotations

import asyncio
import secrets
import socket
from pathlib import Path

from .processes import Process, ProcessDied, free_port, read_json, write_json

REGION = "us-east-1"
READY_SECONDS = 60


class ObjectStore:
    """One versitygw in `folder`, which keeps its data, port and credentials."""

    def __init__(self, folder: Path, binaries: dict[str, Path]) -> None:
        self.folder = folder
        self._binary = binaries["versitygw"]
        self._process: Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    async def start(self) -> None:
        await self.stop()
        (self.folder / "buckets").mkdir(parents=True, exist_ok=True, mode=0o700)
        last = read_json(self.folder / "s3.json")
        port = last.get("port") or free_port()
        access, secret = last.get("access_key") or secrets.token_hex(10), last.get("secret_key") or secrets.token_urlsafe(30)
        # By environment: a command line is visible to every user of the machine.
        environment = {"ROOT_ACCESS_KEY": access, "ROOT_SECRET_KEY": secret}
        command: list[str | Path] = [self._binary, "--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet", "posix", "buckets"]
        self._process = Process("versitygw", command, self.folder, environment)
        await self._process.start()
        try:
            await self._until_listening(port)
        except BaseException:
            await self.stop()
            raise
        description = {
            "url": f"http://127.0.0.1:{port}",
            "region": REGION,
            "port": port,
            "access_key": access,
            "secret_key": secret,
            "name": "s3",
            "processes": [self._process.describe()],
        }
        write_json(self.folder / "s3.json", description)

    async def stop(self) -> None:
        if self._process:
            await self._process.stop()
        self._process = None

    async def _until_listening(self, port: int) -> None:
        assert self._process is not None
        for _attempt in range(READY_SECONDS * 10):
            self._process.check()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.1)
        raise ProcessDied(f"versitygw does not listen after {READY_SECONDS} s. {self._process.exit_report()}")
