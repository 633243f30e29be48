"""One supervised child process: its log, its end, and the report of an unexpected end."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import json
import logging
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .gobuild import cache_folder
from .launcher import die_with_me
from .screen import UserError

log = logging.getLogger("sandbox")

LOG_LINES = 15
PORTS = range(10000, 20000)  # below those that the kernel gives to any program, and those of Cluster API
GRACE_SECONDS = 10


class ProcessDied(UserError):
    """A process that should run has ended; the text names it and shows the end of its log."""


class Process:
    """A child that dies with this process. `folder` is its working directory and holds its log.

    When it ends and `stop` was not called, the last lines of its log are copied to the supervisor's log.
    """

    def __init__(
        self, name: str, command: Sequence[str | os.PathLike[str]], folder: Path, environment: dict[str, str] | None = None
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = command
        self._folder = folder
        self._environment = environment or {}
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        log_file = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *die_with_me(self._command),
                cwd=self._folder,
                env=os.environ | self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                # Ctrl-C belongs to the supervisor, which ends its children in order.
                start_new_session=True,
            )
        finally:
            os.close(log_file)
        self._watcher = asyncio.create_task(self._watch(self._process))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        log.error("%s", self.exit_report())

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        """False as soon as the process is ending, before its exit code is reported."""
        return self._process is not None and self._process.returncode is None and works_in(self._process.pid, self._folder)

    def check(self) -> None:
        """Raise ProcessDied if the process has ended."""
        if self._process and self._process.returncode is not None:
            raise ProcessDied(self.exit_report())

    def exit_report(self) -> str:
        code = self._process.returncode if self._process else None
        if code is None:
            how = "is running"
        elif code < 0:
            how = f"was killed by {signal.Signals(abs(code)).name}"
        else:
            how = f"ended with exit code {code}"
        return f"{self.name} {how}; the end of its log {self.log}:\n{tail(self.log)}"

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the process and wait for it; one that ignores `how` is killed."""
        process = self._process
        if process is None:
            return
        if self._watcher:
            self._watcher.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(how)
        try:
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "pid": self.pid, "log": str(self.log)}


async def run(command: Sequence[str | os.PathLike[str]], folder: Path) -> None:
    """Run a short command in `folder`; when it fails, its output is in the error."""
    process = await asyncio.create_subprocess_exec(
        *die_with_me(command),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _none = await process.communicate()
    if process.returncode:
        raise ProcessDied(f"{Path(command[0]).name} failed: {output.decode(errors='replace').strip()}")


def tail(log: Path, lines: int = LOG_LINES) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(f"    {line[:300]}" for line in log.read_text(errors="replace").splitlines()[-lines:])
    return "    (no log)"


def works_in(pid: int, folder: Path) -> bool:
    """Whether the process runs in the folder, or below it; another process may have its pid meanwhile."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder.resolve())
    return False


def working_in(folder: Path) -> list[int]:
    """All processes that run in the folder, or below it."""
    return [pid for found in Path("/proc").glob("[0-9]*") if works_in(pid := int(found.name), folder)]


def free_port() -> int:
    """A port that no program uses, and that no other call returns soon: who asked for it may bind it only seconds later."""
    file = cache_folder() / "last-port"
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+") as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        text = last.read()
        begun = PORTS.index(int(text)) + 1 if text.isdecimal() and int(text) in PORTS else 0
        port = next((port for port in itertools.chain(PORTS[begun:], PORTS[:begun]) if not port_in_use(port)), 0)
        if not port:
            raise UserError(f"Every port from {PORTS.start} to {PORTS.stop - 1} is in use: end a program that uses some of them.")
        last.seek(0)
        last.truncate()
        last.write(str(port))
    return port


def port_in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def write_private(path: Path, content: bytes | str) -> None:
    """Write a file that only its owner may read, in one step, so that no reader gets half of it."""
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    partial.replace(path)


def write_json(path: Path, content: object) -> None:
    write_private(path, json.dumps(content, indent=2))


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file; empty where the file is missing or unreadable, as after a crash during a write."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
