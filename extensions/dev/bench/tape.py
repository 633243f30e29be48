"""The requests of a real run, written down by a proxy on their way to an API server, and sent once more by a bare process.

What the server has given to an object, its uid and its version, is another one the second time: where a request repeats what an earlier
answer told, it repeats what that answer tells now.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .floor import Answer, BareClient

PASSED_ON = ("Content-Type", "Date")  # by the date a run knows the server's time


@dataclass(frozen=True)
class Request:
    """As it was sent, and how it was answered; `repeats` are the uids and versions in its body that an earlier answer had told."""

    method: str
    path: str
    content_type: str
    body: str
    status: int
    told: tuple[str, ...]
    repeats: tuple[str, ...] = field(default=())


class Tape:
    """What came through the proxy, in the order of its coming."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._numbers = itertools.count()
        self._recorded: dict[int, Request] = {}

    @contextlib.contextmanager
    def recording(self, file: Path) -> Iterator[Path]:
        """Writes a kubeconfig that leads through the proxy, for as long as the body takes. The proxy has the credentials itself."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"server": f"http://127.0.0.1:{server.server_address[1]}"}
        named = {
            "clusters": [{"name": "hub", "cluster": cluster}],
            "users": [{"name": "anybody", "user": {"token": "none"}}],
            "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "anybody"}}],
        }
        file.write_text(json.dumps(named | {"current-context": "hub"}))
        try:
            yield file
        finally:
            server.shutdown()
            server.server_close()

    def client(self) -> BareClient:
        return BareClient(self._kubeconfig)

    def pass_on(self, client: BareClient, method: str, path: str, content_type: str, body: str) -> Answer:
        number = next(self._numbers)
        answer = client.exchange(method, path, body or None, content_type)
        self._recorded[number] = Request(method, path, content_type, body, answer.status, _told(answer))
        return answer

    def requests(self) -> list[Request]:
        """All of them, each with what it repeats."""
        known: set[str] = set()
        found = []
        for _number, request in sorted(self._recorded.items()):
            found.append(replace(request, repeats=tuple(value for value in known if f'"{value}"' in request.body)))
            known |= set(request.told)
        return found

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        tape = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                self._client = tape.client()

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                content_type = self.headers.get("Content-Type", "application/json")
                answer = tape.pass_on(self._client, self.command, self.path, content_type, body)
                content = answer.text.encode()
                self.send_response_only(answer.status)
                for name in PASSED_ON:
                    self.send_header(name, answer.headers.get(name, ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on  # noqa: N815 - named by http.server

            def log_message(self, *_arguments: object) -> None:
                """What is of interest is on the tape."""

        return Handler


def play(client: BareClient, requests: list[Request], old: str, new: str) -> None:
    """Send them once more, one after the other, with another text in the place of one that is part of all names."""
    known: dict[str, str] = {}
    for request in requests:
        body = request.body.replace(old, new)
        for value in request.repeats:
            body = body.replace(f'"{value}"', f'"{known[value]}"')
        answer = client.exchange(request.method, request.path.replace(old, new), body or None, request.content_type)
        if answer.status != request.status:
            raise RuntimeError(f"{request.method} {request.path} was answered with {request.status}, and now: {answer.text}")
        known |= zip(request.told, _told(answer), strict=True)


def _told(answer: Answer) -> tuple[str, ...]:
    """The uids and versions of the object, or of the objects of a list."""
    content = json.loads(answer.text)
    objects = content.get("items", [content])
    return tuple(item.get("metadata", {}).get(name, "") for item in objects for name in ("uid", "resourceVersion"))
