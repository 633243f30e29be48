# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Accepts connections for a web application and bounds them: in all, for each client, and in time. It answers no request itself.

asyncio's own server has no such bounds, and where the process has no file descriptor left it logs a traceback for each pending
connection. aiohttp closes a connection that is idle or does not send its headers in time, and the application bounds the body.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from .third_party import RequestHandler, web

log = logging.getLogger(__name__)

IDLE_SECONDS = 30.0  # also for the headers of a request
HANDSHAKE_SECONDS = 10.0
ANSWER_SECONDS = 10.0
EXHAUSTED_SECONDS = 1.0
BACKLOG = 1024


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections may be open at a time."""

    total: int
    per_client: int


class Listener:
    """One address and its connections. A connection beyond the limits is closed at once, and reported to `refused`."""

    def __init__(
        self,
        app: web.Application,
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None = None,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._app = app
        self._limits = limits
        self._tls = tls
        self._refused = refused
        self._clients: Counter[str] = Counter()
        self._connecting: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[int]:
        """Accept connections at the address until the context ends. The value is the port. OSError where it cannot be bound."""
        runner = web.AppRunner(self._app, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        if runner.server is None:
            raise AssertionError("a runner has a server after its set-up")
        try:
            with ExitStack() as stack:
                listening = [stack.enter_context(each) for each in await _bound(host, port)]
                tasks = [asyncio.create_task(self._accept(each, runner.server)) for each in listening]
                try:
                    yield listening[0].getsockname()[1]
                finally:
                    await _cancelled(tasks)
                    await _cancelled(list(self._connecting))
        finally:
            await runner.cleanup()

    async def _accept(self, listening: socket.socket, server: web.Server) -> None:
        loop = asyncio.get_running_loop()
        exhausted = False
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno == errno.ECONNABORTED:
                    continue
                if not exhausted:
                    log.warning("cannot accept connections: %s; check the limit of open files, see ulimit -n", error)
                exhausted = True
                await asyncio.sleep(EXHAUSTED_SECONDS)
                continue
            exhausted = False
            client = client_of(address[0])
            if self._clients.total() >= self._limits.total or self._clients[client] >= self._limits.per_client:
                connection.close()
                self._refused()
            else:
                self._clients[client] += 1
                task = asyncio.create_task(self._connect(connection, client, server))
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)
            # Where connections wait already, `sock_accept` returns without a turn for other tasks.
            await asyncio.sleep(0)

    async def _connect(self, connection: socket.socket, client: str, server: web.Server) -> None:
        """Hand the connection to the application once it is encrypted."""
        loop = asyncio.get_running_loop()
        timeout = HANDSHAKE_SECONDS if self._tls else None
        try:
            await loop.connect_accepted_socket(
                lambda: _Connection(server, loop, lambda: self._closed(client)), connection, ssl=self._tls, ssl_handshake_timeout=timeout
            )
        except BaseException as error:
            connection.close()
            self._closed(client)
            if not isinstance(error, OSError):  # the client's handshake failed: nothing to report
                raise

    def _closed(self, client: str) -> None:
        self._clients[client] -= 1
        if not self._clients[client]:
            del self._clients[client]


class _Connection(RequestHandler):
    """A connection that calls `closed` at its end, and ends when the client does not read its answers."""

    __slots__ = ("_closed", "_stalled")

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, closed: Callable[[], None]) -> None:
        # Without aiohttp's access log: it would record whatever a sender puts into a request. And a small body could
        # unpack to any size, which aiohttp does as it arrives, before the sender is authenticated.
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=IDLE_SECONDS,
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,
        )
        self._closed = closed
        self._stalled: asyncio.TimerHandle | None = None

    def connection_lost(self, exc: BaseException | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)
        self._closed()

    def pause_writing(self) -> None:
        super().pause_writing()
        if isinstance(self.transport, asyncio.WriteTransport):
            self._stalled = self._loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_timer()

    def _cancel_timer(self) -> None:
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None


async def _bound(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of the host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    bound: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
            bound.append(socket.create_server(address, family=family, backlog=BACKLOG))
            bound[-1].setblocking(False)
    except OSError:
        for each in bound:
            each.close()
        raise
    return bound


def client_of(address: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 network of an IPv6 address, which one machine may have to itself."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))


async def _cancelled(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
