"""A real server on the loopback that means harm: it hangs, sends a byte at a time, never ends, or answers with what is not its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

Behaviour = Callable[[socket.socket, threading.Event], None]

SECRET = b"hunter2-of-the-metadata-service"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def hang(_client: socket.socket, over: threading.Event) -> None:
    over.wait()


def drip(start: bytes, forever: bytes = b"x", seconds: float = 0.02) -> Behaviour:
    """Sends the start, then byte by byte for ever: no read of it times out."""

    def behave(client: socket.socket, over: threading.Event) -> None:
        client.sendall(start)
        while not over.wait(seconds):
            client.sendall(forever)

    return behave


def flood(start: bytes) -> Behaviour:
    def behave(client: socket.socket, over: threading.Event) -> None:
        client.sendall(start)
        while not over.is_set():
            client.sendall(b" " * 65536)

    return behave


def answer(status: str, body: bytes, headers: bytes = b"") -> Behaviour:
    def behave(client: socket.socket, _over: threading.Event) -> None:
        client.sendall(b"HTTP/1.1 " + status.encode() + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    return behave


def raw(data: bytes) -> Behaviour:
    return lambda client, _over: client.sendall(data)


HARM: dict[str, Behaviour] = {
    "accepts and says nothing": hang,
    "drips its status line": drip(b"HTTP/1.1 "),
    "drips headers": drip(HEAD, b"a: b\r\n"),
    "continues for ever": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "drips its body": drip(HEAD + b"Content-Length: 1000000\r\n\r\n", b" "),
    "drips chunks": drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@contextlib.contextmanager
def serving(behave: Behaviour) -> Iterator[str]:
    """The address of the server, without a scheme; each connection reads a request and then behaves."""
    over = threading.Event()

    def serve(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while not over.is_set() and client.recv(65536):
                behave(client, over)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = listener.accept()
                threading.Thread(target=serve, args=[client], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
