"""A proxy on loopback between a client and the real S3 server. It injects the faults of networks, proxies and servers.

Signatures stay valid, because the proxy forwards the host name that the client signed. Where the proxy drops conditions,
which are signed too, it signs the request again, like a gateway with its own credentials.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from ansible_collections.openfleet.clusters.extensions.sandbox.sandbox import StoreAccess
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

ERROR_BODY = "<Error><Code>{code}</Code><Message>by the proxy</Message></Error>"
CODES = {409: "ConditionalRequestConflict", 412: "PreconditionFailed", 500: "InternalError", 503: "SlowDown"}


class Fault:
    """A fault of `times` requests, selected by method and by the end of the path.

    `forwarded` says whether the server gets the request. `status` replaces the answer of the server; without it the proxy
    closes the connection. `hold` delays that, in seconds. `gate` holds back everything until it is set; the server gets
    the request only then. `after` is the same by time.
    """

    def __init__(
        self,
        method: str = "",
        path: str = "",
        times: int = 1,
        *,
        forwarded: bool = True,
        status: int = 0,
        hold: float = 0.0,
        after: float = 0.0,
        gate: threading.Event | None = None,
    ) -> None:
        self.method, self.path, self.times = method, path, times
        self.forwarded, self.status, self.hold, self.after, self.gate = forwarded, status, hold, after, gate

    def matches(self, method: str, path: str) -> bool:
        return self.times > 0 and method.startswith(self.method) and path.endswith(self.path)


class Proxy:
    """The faults to inject, and the requests so far: method, path, status."""

    def __init__(self, store: StoreAccess) -> None:
        self.store = store
        self.target = urlsplit(store.endpoint).netloc
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, int]] = []
        self.drops_conditions = False
        self.random_fault: Callable[[str], Fault | None] | None = None
        self.max_concurrent = 0
        self._concurrent = 0
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count concurrent requests."""
        with self._lock:
            self._concurrent += 1
            self.max_concurrent = max(self.max_concurrent, self._concurrent)
        try:
            yield
        finally:
            with self._lock:
                self._concurrent -= 1

    def next_fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            if self.random_fault:
                return self.random_fault(method)
            for fault in self.faults:
                if fault.matches(method, path):
                    fault.times -= 1
                    return fault
        return None

    def headers(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """The headers of the forwarded request."""
        kept = {name: value for name, value in headers.items() if name.lower() not in ("connection", "expect")}
        if not self.drops_conditions:
            return kept
        kept = {name: value for name, value in kept.items() if name.lower() in ("content-type", "content-length")}
        request = AWSRequest(method, f"{self.store.endpoint}{path}", kept, body)
        S3SigV4Auth(Credentials(self.store.access_key, self.store.secret_key), "s3", self.store.region).add_auth(request)
        return dict(request.headers.items()) | {"Host": self.target}

    def count(self, method: str, path: str = "") -> int:
        return sum(method == sent and target.endswith(path) for sent, target, _status in self.requests)


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    server: ProxyServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_of: object) -> None:
        """Log nothing: tests read `requests`."""

    def _handle(self) -> None:
        with self.server.proxy.counted():
            self._forward_or_fail()

    def _forward_or_fail(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        fault = self.server.proxy.next_fault(self.command, path)
        if fault and fault.after:
            threading.Timer(fault.after, self._forward, (path, body)).start()
        if fault and fault.gate:
            fault.gate.wait()
        status, answer, headers = (0, b"", [])
        if not fault or (fault.forwarded and not fault.after):
            status, answer, headers = self._forward(path, body)
        if fault:
            time.sleep(fault.hold)
            if not fault.status:
                self.close_connection = True
                return
            self.server.proxy.requests.append((self.command, path, fault.status))
            self._answer(fault.status, ERROR_BODY.format(code=CODES[fault.status]).encode(), [("Content-Type", "application/xml")])
            return
        self._answer(status, answer, headers)

    def _forward(self, path: str, body: bytes) -> tuple[int, bytes, list[tuple[str, str]]]:
        connection = http.client.HTTPConnection(self.server.proxy.target, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.server.proxy.headers(self.command, self.path, dict(self.headers.items()), body).items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            answer = response.read()
            self.server.proxy.requests.append((self.command, path, response.status))
            return response.status, answer, response.getheaders()
        finally:
            connection.close()

    def _answer(self, status: int, body: bytes, headers: list[tuple[str, str]]) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815 - named by the base class


class ProxyServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: Proxy) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.proxy = proxy


@contextmanager
def proxy_to(store: StoreAccess) -> Iterator[tuple[Proxy, str]]:
    """A proxy and its address."""
    proxy = Proxy(store)
    server = ProxyServer(proxy)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
