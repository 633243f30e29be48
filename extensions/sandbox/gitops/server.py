"""An HTTP server with git repositories and Helm repositories, until SIGTERM: `python -m ...gitops.server --folder F --port P`.

Git is served by git's own `http-backend`; the name and the token for it come by environment. Charts are files, and need no token.
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import os
import sys
from email.parser import BytesHeaderParser
from pathlib import Path

from aiohttp import BasicAuth, web

from .git import git_command, git_environment
from .service import TOKEN_SETTING, USERNAME_SETTING

LARGEST_PUSH = 64 * 2**20


class GitHandler:
    """Smart HTTP for the bare repositories in `folder`."""

    def __init__(self, folder: Path, username: str, token: str) -> None:
        self._folder = folder
        self._expected = BasicAuth(username, token).encode()
        self._username = username

    async def __call__(self, request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), self._expected.encode()):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'}, text="A name and a token are needed.\n")
        body = await request.read()
        backend = await asyncio.create_subprocess_exec(
            *git_command("http-backend"),
            env=os.environ | git_environment() | self._variables(request, len(body)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _none = await backend.communicate(body)
        head, _blank, content = output.partition(b"\r\n\r\n")
        headers = BytesHeaderParser().parsebytes(head)
        status = int(headers.get("Status", "200").split()[0])
        return web.Response(status=status, headers={name: value for name, value in headers.items() if name != "Status"}, body=content)

    def _variables(self, request: web.Request, length: int) -> dict[str, str]:
        """What CGI passes on. The server has decompressed the body already."""
        return {
            "GIT_PROJECT_ROOT": str(self._folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": "/" + request.match_info["path"],
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": request.remote or "",
            # Pushes are for known users only.
            "REMOTE_USER": self._username,
        }


def application(folder: Path, username: str, token: str) -> web.Application:
    app = web.Application(client_max_size=LARGEST_PUSH)
    app.router.add_route("*", "/git/{path:[a-z0-9-]+[.]git/.+}", GitHandler(folder / "git", username, token))
    app.router.add_static("/charts", folder / "charts")
    return app


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve git repositories and Helm repositories.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    served = application(arguments.folder, os.environ[USERNAME_SETTING], os.environ[TOKEN_SETTING])
    web.run_app(served, host="127.0.0.1", port=arguments.port, print=None, access_log=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
