"""A server that accepts connections and never answers, as a host behind a broken network does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class HangingServer:
    """`connections` counts what was accepted."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        self.connections = 0
        self._accepted: list[socket.socket] = []

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._accepted.append(self._listener.accept()[0])
                self.connections += 1

    def close(self) -> None:
        for connection in self._accepted:
            connection.close()


@contextlib.contextmanager
def hanging_server() -> Iterator[HangingServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = HangingServer(listener)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            server.close()
