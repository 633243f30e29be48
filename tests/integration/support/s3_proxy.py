"""A proxy on loopback between a client and the real S3 server, which does to requests what networks, proxies and servers do.

Signatures stay valid, because the server is asked under the name that the client has signed for. Only where conditions are taken out, which
are signed as well, the request is signed anew: as a gateway does that has credentials of its own.
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

REFUSAL = "<Error><Code>{code}</Code><Message>by the proxy</Message></Error>"
CODES = {409: "ConditionalRequestConflict", 412: "PreconditionFailed", 500: "InternalError", 503: "SlowDown"}


class Fault:
    """What happens to the requests that it is for: `times` of them, by method and by what the path ends with.

    `forwarded` says whether the server gets the request. `status` is answered instead of what the server said; without one the connection
    is closed without an answer. `after` waits before the server gets it, as a network that holds it back does.
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
    ) -> None:
        self.method, self.path, self.times = method, path, times
        self.forwarded, self.status, self.hold, self.after = forwarded, status, hold, after

    def meets(self, method: str, path: str) -> bool:
        return self.times > 0 and method.startswith(self.method) and path.endswith(self.path)


class Proxy:
    """The faults that wait for their requests, and what has passed through: method, path, status."""

    def __init__(self, store: StoreAccess) -> None:
        self.store = store
        self.target = urlsplit(store.endpoint).netloc
        self.faults: list[Fault] = []
        self.passed: list[tuple[str, str, int]] = []
        self.strips_conditions = False
        self.invent: Callable[[str], Fault | None] | None = None
        self.busiest = 0
        self.busy = 0
        self._lock = threading.Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """How many requests there are at the same moment."""
        with self._lock:
            self.busy += 1
            self.busiest = max(self.busiest, self.busy)
        try:
            yield
        finally:
            with self._lock:
                self.busy -= 1

    def take(self, method: str, path: str) -> Fault | None:
        with self._lock:
            if self.invent:
                return self.invent(method)
            for fault in self.faults:
                if fault.meets(method, path):
                    fault.times -= 1
                    return fault
        return None

    def headers(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        """What the server is sent."""
        kept = {name: value for name, value in headers.items() if name.lower() not in ("connection", "expect")}
        if not self.strips_conditions:
            return kept
        kept = {name: value for name, value in kept.items() if name.lower() in ("content-type", "content-length")}
        request = AWSRequest(method, f"{self.store.endpoint}{path}", kept, body)
        S3SigV4Auth(Credentials(self.store.access_key, self.store.secret_key), "s3", self.store.region).add_auth(request)
        return dict(request.headers.items()) | {"Host": self.target}

    def count(self, method: str, path: str = "") -> int:
        return sum(method == sent and way.endswith(path) for sent, way, _status in self.passed)


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    server: ProxyServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_of: object) -> None:
        """Nothing: the tests look at `passed`."""

    def _pass(self) -> None:
        with self.server.proxy.at_work():
            self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        fault = self.server.proxy.take(self.command, path)
        if fault and fault.after:
            threading.Timer(fault.after, self._ask, (path, body)).start()
        status, answer, headers = (0, b"", [])
        if not fault or (fault.forwarded and not fault.after):
            status, answer, headers = self._ask(path, body)
        if fault:
            time.sleep(fault.hold)
            if not fault.status:
                self.close_connection = True
                return
            self.server.proxy.passed.append((self.command, path, fault.status))
            self._answer(fault.status, REFUSAL.format(code=CODES[fault.status]).encode(), [("Content-Type", "application/xml")])
            return
        self._answer(status, answer, headers)

    def _ask(self, path: str, body: bytes) -> tuple[int, bytes, list[tuple[str, str]]]:
        connection = http.client.HTTPConnection(self.server.proxy.target, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.server.proxy.headers(self.command, self.path, dict(self.headers.items()), body).items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            answer = response.read()
            self.server.proxy.passed.append((self.command, path, response.status))
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

    do_GET = do_PUT = do_DELETE = do_HEAD = _pass  # noqa: N815 - named by the base class


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
