"""TCP proxies on loopback that stand for the network between two machines: each can be cut and healed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

Address = tuple[str, int]


class Link:
    """One way from a client to a server. `target` is asked for each connection: a server that was restarted may have another port."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: Callable[[], Address]) -> None:
        self._loop = loop
        self._target = target
        self._flows = asyncio.Event()
        self._flows.set()
        self._refuses = False
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    def cut(self, *, refuse: bool) -> None:
        """Either every connection breaks and none begins, or packets are dropped until the link is healed: then they arrive late.

        When this returns, nothing passes any more.
        """
        is_cut = threading.Event()

        def cut() -> None:
            self._cut(refuse)
            is_cut.set()

        self._loop.call_soon_threadsafe(cut)
        assert is_cut.wait(60), "the thread of the links does not run"

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._heal)

    async def open(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def _cut(self, refuse: bool) -> None:
        self._refuses = refuse
        if refuse:
            self.drop()
        else:
            self._flows.clear()

    def _heal(self) -> None:
        self._refuses = False
        self._flows.set()

    def drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._flows.wait()
            if self._refuses:
                return
            behind, ahead = await asyncio.open_connection(*self._target())
            self._writers.add(ahead)
            try:
                # Whichever end closes first closes both.
                pumps = [asyncio.ensure_future(self._pump(reader, ahead)), asyncio.ensure_future(self._pump(behind, writer))]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
            finally:
                self._writers.discard(ahead)
                ahead.close()
        except OSError:
            return
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            writer.write(data)
            await writer.drain()


class Links:
    """Links, served by one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._servers: list[asyncio.Server] = []
        self._links: list[Link] = []

    def add(self, target: Callable[[], Address]) -> Link:
        link = Link(self._loop, target)
        self._servers.append(asyncio.run_coroutine_threadsafe(link.open(), self._loop).result(30))
        self._links.append(link)
        return link

    @contextlib.contextmanager
    def running(self) -> Iterator[Links]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(30)
            self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for link in self._links:
            link.heal()
            link.drop()
        current = asyncio.current_task()
        others: list[asyncio.Task[Any]] = [task for task in asyncio.all_tasks() if task is not current]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
