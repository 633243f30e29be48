"""Runs the service: informers, the API and, on a port of its own, health and metrics; until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from .app import build_app, build_metrics, build_services
from .handlers.events import ABORT
from .logic.services import Services
from .middleware.metrics import Metrics
from .settings import Settings

SEND_BUFFER_BYTES = 2**18
KEEP_ALIVE_SECONDS, GRACE_SECONDS = 65, 10
BROKEN_SECONDS = 60.0  # after which a watch that does not recover makes the service not ready


class Protocol(H11Protocol):
    """HTTP of uvicorn, and a limit for the time that a client takes to send the head of a request."""

    header_seconds = 10.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._inner: Any = self.app
        self.app = self._handle
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # The kernel would take megabytes for a client that reads nothing.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._await_request()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._stop_timer()
        scope.setdefault("extensions", {})[ABORT] = self.transport.abort
        await self._inner(scope, receive, send)

    def _await_request(self) -> None:
        self._timer = self.loop.call_later(self.header_seconds, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """Signals are for the whole process, which has two servers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: Settings) -> None:
    services = build_services(settings)
    metrics = build_metrics(services)
    api = Server(_config(settings, build_app(services, metrics), settings.port))
    health = Server(uvicorn.Config(health_app(services, metrics), settings.health_host, settings.health_port, **_QUIET))
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    informers = [asyncio.create_task(each.follow()) for each in services.caches.informers]
    servers = [asyncio.create_task(each.serve()) for each in (api, health)]
    ending = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait((*servers, ending), return_when=asyncio.FIRST_COMPLETED)
        api.should_exit = health.should_exit = True
        services.changes.close()
        await asyncio.wait(servers)
    finally:
        for task in (*informers, ending):
            task.cancel()
        services.home.close()
    for server in servers:
        server.result()


_QUIET: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "lifespan": "off", "loop": "asyncio"}


def _config(settings: Settings, app: ASGIApp, port: int) -> uvicorn.Config:
    limits = settings.limits
    protocol = type("Protocol", (Protocol,), {"header_seconds": limits.header_seconds})
    tls: dict[str, Any] = {"ssl_certfile": settings.tls.certfile, "ssl_keyfile": settings.tls.keyfile} if settings.tls else {}
    return uvicorn.Config(
        app,
        settings.host,
        port,
        http=protocol,
        ws="none",
        limit_concurrency=limits.concurrency,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        h11_max_incomplete_event_size=limits.header_bytes,
        proxy_headers=False,
        **tls,
        **_QUIET,
    )


def health_app(services: Services, metrics: Metrics) -> ASGIApp:
    """For the kubelet and Prometheus: a tenant does not reach this port."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        problems = services.caches.problems(BROKEN_SECONDS)
        return JSONResponse({"status": "not ready" if problems else "ok", "problems": problems}, 503 if problems else 200)

    async def scrape(_request: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", scrape)])
