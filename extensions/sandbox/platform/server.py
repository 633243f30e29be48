"""The HTTP server of the stand-in: one thread a connection, on a free port of this machine."""

from __future__ import annotations

import contextlib
import json
import ssl
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from .exchange import JSON, Request, Response

Answer = Callable[[Request], Response | None]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self._scheme = "https" if tls else "http"
        if tls:
            # The handshake belongs to the connection's thread: a client that never ends it must not keep others out.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print a defect of the stand-in, but not that a client disconnected."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet: two would wait for each other's acknowledgement
    disable_nagle_algorithm = True
    server: Server

    def _serve(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        last, self.close_connection = self.close_connection, True
        with contextlib.suppress(OSError):  # the client may have been killed
            if response := self.server.answer(self._request(data)):
                self._send(response)
                self.close_connection = last

    def _request(self, data: bytes) -> Request:
        address = urlsplit(self.path)
        content_type = self.headers.get("Content-Type", "")
        is_form = "form-urlencoded" in content_type
        return Request(
            self.command,
            address.path,
            parse_qs(address.query, keep_blank_values=True),
            None if is_form else json.loads(data or b"null"),
            self.headers.get("Authorization", ""),
            form=dict(parse_qsl(data.decode())) if is_form else {},
        )

    def _send(self, response: Response) -> None:
        self.send_response_only(response.status)
        content = b"" if response.body is None else _encoded(response)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if content:
            self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - named by http.server

    def log_message(self, *_arguments: Any) -> None:
        """Tests read the recorded requests instead."""


def _encoded(response: Response) -> bytes:
    return json.dumps(response.body).encode() if response.content_type == JSON else str(response.body).encode()
