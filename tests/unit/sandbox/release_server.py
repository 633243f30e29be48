"""A web server on loopback with small releases of Kubernetes and etcd, and the faults a test asks for. It holds no test."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import platform
import ssl
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.openfleet.clusters.extensions.sandbox import gobuild, releases

ARCHITECTURE = releases.ARCHITECTURES[platform.machine()]
KUBERNETES = f"/kubernetes/{gobuild.KUBERNETES_VERSION}/bin/linux/{ARCHITECTURE}"
ETCD = f"/etcd/{gobuild.ETCD_VERSION}"
ETCD_NAME = f"etcd-{gobuild.ETCD_VERSION}-linux-{ARCHITECTURE}"
ETCD_ARCHIVE = f"{ETCD}/{ETCD_NAME}.tar.gz"
API_SERVER = f"{KUBERNETES}/kube-apiserver"
CHECKSUMS = (".sha256", "SHA256SUMS")
HALF = "half of the file"
DRIP = "byte by byte"
DRIP_HEADERS = "headers byte by byte"
HANG = "no answer"


@dataclass
class Fault:
    """What the server does with requests for a path, as many times as it says. An answer is a status code."""

    what: str | int
    times: int = 1000


class ReleaseServer(http.server.ThreadingHTTPServer):
    """`files` is what it has by path, `requests` what it was asked for: path and range. It waits for `gate` before it sends a program."""

    daemon_threads = True

    def __init__(self) -> None:
        self.files = released_files()
        self.faults: dict[str, Fault] = {}
        self.redirects: dict[str, str] = {}
        self.requests: list[tuple[str, str]] = []
        self.resumes = True
        self.gate = threading.Event()
        self.gate.set()
        self.over = threading.Event()
        self.scheme = "http"
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def use_tls(self, certificate: str) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https"

    def asked_for(self, path: str) -> list[str]:
        """The ranges that were asked for of a path, one for each request; empty for the whole file."""
        return [wanted for requested, wanted in self.requests if requested == path]

    def fault_of(self, path: str) -> str | int:
        fault = self.faults.get(path)
        if fault is None or fault.times == 0:
            return ""
        fault.times -= 1
        return fault.what

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that closes its connection is what some tests want."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: ReleaseServer

    def do_GET(self) -> None:
        # A proxy is asked for the whole address.
        path, wanted = urlsplit(self.path).path, self.headers.get("Range", "")
        self.server.requests.append((path, wanted))
        fault = self.server.fault_of(path)
        if fault in (HANG, DRIP_HEADERS):
            self._drip(b"HTTP/1.0 200 OK\r\nX-Header: " if fault == DRIP_HEADERS else b"")
        elif isinstance(fault, int):
            self.send_error(fault)
        elif path in self.server.redirects:
            self._head(302, {"Location": self.server.redirects[path]})
        elif path not in self.server.files:
            self.send_error(404)
        else:
            self._send(path, wanted, str(fault))

    def _send(self, path: str, wanted: str, fault: str) -> None:
        content = self.server.files[path]
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.resumes else 0
        if start >= len(content):
            self.send_error(416)
            return
        self._head(206 if start else 200, {"Content-Length": str(len(content) - start)})
        if not path.endswith(CHECKSUMS):
            self.server.gate.wait()
        if fault == DRIP:
            self._drip(content[start : start + 1])
        else:
            self.wfile.write(content[start : len(content) // 2] if fault == HALF else content[start:])

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _drip(self, data: bytes) -> None:
        """Send a little, then a byte every now and then until the test is over; without anything to begin with, nothing at all."""
        self.wfile.write(data)
        while not self.server.over.is_set():
            self.wfile.write(b"x" if data else b"")
            time.sleep(0.02)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


def program(name: str) -> bytes:
    """A program that says where it is from, long enough to be sent in several pieces."""
    return f"#!/bin/sh\necho released {name}\nexit\n".encode() + b"#" * 2**18


def archive(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as files:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            files.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sums(content: bytes) -> bytes:
    """As etcd publishes checksums: those of all its files, for other systems too."""
    return f"{'0' * 64}  {ETCD_NAME.replace('linux', 'darwin')}.zip\n{checksum(content)}  {ETCD_NAME}.tar.gz\n".encode()


def released_files() -> dict[str, bytes]:
    files = {}
    for name in ("kube-apiserver", "kube-controller-manager", "kubectl"):
        files[f"{KUBERNETES}/{name}"] = program(name)
        files[f"{KUBERNETES}/{name}.sha256"] = checksum(program(name)).encode()
    files[ETCD_ARCHIVE] = archive({f"{ETCD_NAME}/README.md": b"# etcd", f"{ETCD_NAME}/etcd": program("etcd")})
    files[f"{ETCD}/SHA256SUMS"] = sums(files[ETCD_ARCHIVE])
    return files


@contextlib.contextmanager
def serving(server: ReleaseServer) -> Iterator[ReleaseServer]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.gate.set()
            server.shutdown()
            thread.join()
