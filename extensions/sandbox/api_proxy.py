"""A proxy to an API server for tests: it records each request and calls hooks at it, by which a test counts, delays or breaks requests."""

from __future__ import annotations

import base64
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3
import yaml


@dataclass(frozen=True)
class Request:
    method: str
    path: str

    @property
    def is_write(self) -> bool:
        return self.method != "GET"


class ApiProxy:
    """A proxy to one API server. `requests` has every request in the order of its arrival.

    `before` is called before a request is forwarded, `after` before its response is sent; an OSError there breaks the connection.
    """

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._server = cluster["server"]
        trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        for name in ("certificate", "key"):
            (folder / f"proxy.{name}").write_bytes(base64.b64decode(user[f"client-{name}-data"]))
            (folder / f"proxy.{name}").chmod(0o600)
        trust.load_cert_chain(folder / "proxy.certificate", folder / "proxy.key")
        # Connections are reused: a new one for each request costs more than the request.
        self._pool = urllib3.PoolManager(maxsize=16, retries=False, ssl_context=trust)
        self.requests: list[Request] = []
        self.before: Callable[[Request], None] = lambda _request: None
        self.after: Callable[[Request], None] = lambda _request: None
        self.kubeconfig = folder / "proxy.kubeconfig"
        self._folder = folder

    @contextlib.contextmanager
    def open(self) -> Iterator[ApiProxy]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        named = {"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [named],
            "users": [{"name": "proxy", "user": {"token": "unused"}}],  # the proxy sends its own credentials
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            self._pool.clear()

    @property
    def writes(self) -> list[Request]:
        return [request for request in self.requests if request.is_write]

    def forward(self, request: Request, headers: Mapping[str, str], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        self.requests.append(request)
        self.before(request)
        forwarded = {key: value for key, value in headers.items() if key.lower() not in ("host", "connection", "accept-encoding")}
        try:
            response = self._pool.request(request.method, f"{self._server}{request.path}", body=body, headers=forwarded, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionResetError from error
        self.after(request)
        return response.status, list(response.headers.items()), response.data

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_request(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                last, self.close_connection = self.close_connection, True
                with contextlib.suppress(OSError):  # the client may have been killed
                    status, headers, content = proxy.forward(Request(self.command, self.path), dict(self.headers), body)
                    self.send_response_only(status)
                    for key, value in headers:
                        if key.lower() not in ("transfer-encoding", "content-length", "connection"):
                            self.send_header(key, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                    self.close_connection = last

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request  # noqa: N815 - named by http.server

            def log_message(self, *_arguments: Any) -> None:
                """Tests read `requests` instead."""

        return Handler
