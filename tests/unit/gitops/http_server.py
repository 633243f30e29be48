"""An HTTP server of a test: answers by path, and what was asked."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drip: float = 0  # seconds between single bytes


Answer = Callable[[Request], Reply]


@dataclass
class Server:
    url: str
    asked: list[Request]

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[Server]:
    asked: list[Request] = []
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, self.rfile.read(size))
            asked.append(request)
            reply = answer(request)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                for byte in reply.body if reply.drip else ():
                    if stopped.wait(reply.drip):
                        return
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                if not reply.drip:
                    self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_port}", asked)
    finally:
        stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
