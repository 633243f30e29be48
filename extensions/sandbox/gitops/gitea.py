"""Gitea, a real forge with pull requests, as a process of the sandbox: on SQLite, without SSH, with one administrator and a token.

Its pages have neither scripts nor styles, which only its own build makes. The API is complete.
"""

from __future__ import annotations

import asyncio
import configparser
import getpass
import http.client
import io
import os
import re
import secrets
from pathlib import Path

from ..processes import Process, ProcessDied, free_port, read_json, write_json, write_private
from .git import git_command, git_environment

DESCRIPTION = "gitea.json"
USERNAME = "sandbox"
READY_SECONDS = 120
TOKEN_LINE = re.compile(r"^[0-9a-f]{40}$", re.MULTILINE)


class GiteaService:
    """Gitea in `folder`, which keeps its repositories, database, port and token."""

    def __init__(self, folder: Path, binaries: dict[str, Path]) -> None:
        self.folder = folder
        self._binary = binaries["gitea"]
        self._process: Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    async def start(self) -> None:
        await self.stop()
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        last = read_json(self.folder / DESCRIPTION)
        port = last.get("port") or free_port()
        token = last.get("token")
        if not token:
            write_private(self.folder / "app.ini", self._settings(port))
            token = await self._create_administrator()
        self._process = Process("gitea", [self._binary, "--config", self.folder / "app.ini", "web"], self.folder, self._environment())
        await self._process.start()
        try:
            await self._until_healthy(port)
        except BaseException:
            await self.stop()
            raise
        description = {
            "name": "gitea",
            "url": f"http://127.0.0.1:{port}",
            "port": port,
            "username": USERNAME,
            "token": token,
            "processes": [self._process.describe()],
        }
        write_json(self.folder / DESCRIPTION, description)

    async def stop(self) -> None:
        if self._process:
            await self._process.stop()
        self._process = None

    async def _create_administrator(self) -> str:
        """Create the database and its first user; returns a token of theirs."""
        await self._command("migrate")
        user = ["--username", USERNAME, "--email", "sandbox@example.com", "--admin", "--random-password", "--must-change-password=false"]
        await self._command("admin", "user", "create", *user)
        said = await self._command(
            "admin", "user", "generate-access-token", "--username", USERNAME, "--token-name", "sandbox", "--scopes", "all", "--raw"
        )
        return token_of(said)

    async def _command(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            str(self._binary),
            "--config",
            str(self.folder / "app.ini"),
            *arguments,
            cwd=self.folder,
            env=os.environ | self._environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        if process.returncode:
            raise ProcessDied(f"gitea {arguments[0]} failed: {(errors or output).decode(errors='replace').strip()}")
        return output.decode()

    def _environment(self) -> dict[str, str]:
        paths = {"GITEA_WORK_DIR": self.folder, "HOME": self.folder, "TMPDIR": self.folder, "GIT_CONFIG_GLOBAL": self.folder / "gitconfig"}
        return git_environment() | {name: str(path) for name, path in paths.items()}

    def _settings(self, port: int) -> str:
        root = {"I_AM_BEING_UNSAFE_RUNNING_AS_ROOT": "true"} if os.geteuid() == 0 else {}
        sections: dict[str, dict[str, str]] = {
            "server": {
                "HTTP_ADDR": "127.0.0.1",
                "HTTP_PORT": str(port),
                "ROOT_URL": f"http://127.0.0.1:{port}/",
                "STATIC_ROOT_PATH": str(self._binary.parent),
                "DISABLE_SSH": "true",
                "OFFLINE_MODE": "true",
                "LFS_START_SERVER": "false",
            },
            "database": {"DB_TYPE": "sqlite3", "PATH": str(self.folder / "gitea.db"), "LOG_SQL": "false"},
            "security": {"INSTALL_LOCK": "true", "SECRET_KEY": secrets.token_hex(32), "INTERNAL_TOKEN": secrets.token_hex(32)},
            "repository": {"ROOT": str(self.folder / "repositories"), "DEFAULT_BRANCH": "main"},
            "service": {"DISABLE_REGISTRATION": "true"},
            "git": {"PATH": git_command()[0], "HOME_PATH": str(self.folder / "git-home")},
            "webhook": {"ALLOWED_HOST_LIST": "loopback"},
            "log": {"MODE": "console", "LEVEL": "Warn"},
            "actions": {"ENABLED": "false"},
            "packages": {"ENABLED": "false"},
            "indexer": {"ISSUE_INDEXER_TYPE": "db", "REPO_INDEXER_ENABLED": "false"},
            "cron": {"ENABLED": "false", "RUN_AT_START": "false"},
            "cron.update_checker": {"ENABLED": "false"},
        }
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str  # type: ignore[assignment, method-assign]
        parser.read_dict(sections)
        written = io.StringIO()
        parser.write(written)
        head = {"APP_NAME": "Sandbox", "RUN_MODE": "prod", "RUN_USER": getpass.getuser(), **root}
        return "".join(f"{name} = {value}\n" for name, value in head.items()) + written.getvalue()

    async def _until_healthy(self, port: int) -> None:
        assert self._process is not None
        for _attempt in range(READY_SECONDS * 5):
            self._process.check()
            if await asyncio.to_thread(_answers, port):
                return
            await asyncio.sleep(0.2)
        raise ProcessDied(f"gitea does not answer after {READY_SECONDS} s. {self._process.exit_report()}")


def token_of(output: str) -> str:
    """The token in the output of `generate-access-token`. Gitea logs to the same output at any moment: before the token or after it."""
    found = TOKEN_LINE.search(output)
    if not found:
        raise ProcessDied("gitea created no token: its output has no line with one.")
    return found.group()


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/api/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
