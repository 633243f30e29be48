"""Requests to the REST API of a fleet by curl, as a person sends them. The lines on the screen are the commands without their tokens."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..sandbox.processes import write_private
from ..sandbox.screen import UserError, heading

WAIT_SECONDS = 60


@dataclass(frozen=True)
class Reply:
    """The response: its status, and its JSON."""

    status: int
    body: Any


class Curl:
    """For users whose tokens are in files of the folder. On the screen the address of the API is `$FLEET`."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._program = shutil.which("curl")
        if not self._program:
            raise UserError("curl was not found: install it with the packages of this system.")

    def keep_token(self, user: str, token: str) -> None:
        """curl reads the headers of a user from a file: arguments of a process are no place for a token."""
        write_private(self._folder / user, f"Authorization: Bearer {token}\nContent-Type: application/json\n")

    def send(self, user: str, method: str, path: str, body: Any = None, *, expect: int = 200) -> Any:
        """Show the command and send the request. Another status than the expected one is an error of the collection."""
        heading(f"$ curl -H @{user} {'' if method == 'GET' else f'-X {method} '}$FLEET{path}{_data(body)}")
        reply = self.ask(user, path, method, body)
        print(f"HTTP {reply.status}", flush=True)
        if reply.status != expect:
            raise UserError(f"The response was {reply.status} instead of {expect}: {json.dumps(reply.body)}")
        return reply.body

    def ask(self, user: str, path: str, method: str = "GET", body: Any = None) -> Reply:
        """The same without a line on the screen."""
        options = ["--silent", "--show-error", "--max-time", str(WAIT_SECONDS), "--write-out", "\n%{http_code}"]
        sent = ["--header", f"@{user}", "--request", method, *([] if body is None else ["--data", json.dumps(body)])]
        command = [str(self._program), *options, *sent, f"{self._url}{path}"]
        result = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False)
        if result.returncode:
            raise UserError(f"The API of the fleet does not answer: {result.stderr.strip()}")
        content, _line, status = result.stdout.rpartition("\n")
        return Reply(int(status), json.loads(content or "null"))


def _data(body: Any) -> str:
    return "" if body is None else f" -d {shlex.quote(json.dumps(body))}"
