"""A proxy that records the requests of a real run on their way to an API server. Sending them again is in `replay`."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .floor import BareClient, Response

FORWARDED_HEADERS = ("Content-Type", "Date")  # a run reads the server's time from the date


@dataclass(frozen=True)
class Request:
    """A request and the status of its response.

    `values` are the uids and versions of the objects in the response, by object and field; `repeats` are those of earlier responses
    that are in the body.
    """

    method: str
    path: str
    content_type: str
    body: str
    status: int
    values: Mapping[str, str]
    repeats: tuple[str, ...] = field(default=())


class Recorder:
    """The requests that came through the proxy, in the order of their arrival."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._numbers = itertools.count()
        self._recorded: dict[int, Request] = {}

    @contextlib.contextmanager
    def recording(self, file: Path) -> Iterator[Path]:
        """Write a kubeconfig of the proxy, which runs as long as the body does and sends credentials of its own."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"server": f"http://127.0.0.1:{server.server_address[1]}"}
        named = {
            "clusters": [{"name": "hub", "cluster": cluster}],
            "users": [{"name": "recorder", "user": {"token": "unused"}}],
            "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "recorder"}}],
        }
        file.write_text(json.dumps(named | {"current-context": "hub"}))
        try:
            yield file
        finally:
            server.shutdown()
            server.server_close()

    def client(self) -> BareClient:
        return BareClient(self._kubeconfig)

    def forward(self, client: BareClient, method: str, path: str, content_type: str, body: str) -> Response:
        number = next(self._numbers)
        response = client.exchange(method, path, body or None, content_type)
        self._recorded[number] = Request(method, path, content_type, body, response.status, values_in(response.text))
        return response

    def requests(self) -> list[Request]:
        """All of them, each with the values that it repeats."""
        known: set[str] = set()
        found = []
        for _number, request in sorted(self._recorded.items()):
            found.append(replace(request, repeats=tuple(value for value in known if f'"{value}"' in request.body)))
            known |= set(request.values.values())
        return found

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are two packets, of which the second would wait for 40 ms

            def setup(self) -> None:
                super().setup()
                self._client = recorder.client()

            def handle_request(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                content_type = self.headers.get("Content-Type", "application/json")
                response = recorder.forward(self._client, self.command, self.path, content_type, body)
                content = response.text.encode()
                self.send_response_only(response.status)
                for name in FORWARDED_HEADERS:
                    self.send_header(name, response.headers.get(name, ""))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request  # noqa: N815 - named by http.server

            def log_message(self, *_arguments: object) -> None:
                """The recorder has the requests."""

        return Handler


def values_in(text: str) -> dict[str, str]:
    """The uid and the version of the object in a response, or of each object of a list, by object and field."""
    content = json.loads(text)
    found = {}
    for item in content.get("items", [content]):
        metadata = item.get("metadata", {})
        for name in ("uid", "resourceVersion"):
            if metadata.get(name):
                found[f"{metadata.get('namespace', '')}/{metadata.get('name', '')}/{name}"] = metadata[name]
    return found
