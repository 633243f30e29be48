# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The web server of an event source without webhooks: /healthz for probes and /metrics for Prometheus. It serves no secret."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from .listener import ConnectionLimits, Listener
from .settings import BadSettings
from .third_party import web

log = logging.getLogger(__name__)

LIMITS = ConnectionLimits(total=32, per_client=8)


class MetricsText(Protocol):
    """The metrics of a source in the format of Prometheus."""

    def text(self) -> bytes: ...


class HealthServer:
    """`problems` returns why the source is not healthy. With the port 0 any free one is used."""

    def __init__(self, host: str, port: int, metrics: MetricsText, problems: Callable[[], list[str]]) -> None:
        self.port = port
        self._host = host
        self._metrics = metrics
        self._problems = problems

    async def serve(self) -> None:
        """Answer until cancelled."""
        app = web.Application()
        app.add_routes([web.get("/healthz", self._healthz), web.get("/metrics", self._metrics_text)])
        try:
            async with Listener(app, LIMITS).listening(self._host, self.port) as self.port:
                log.info("health and metrics at %s:%d", self._host, self.port)
                await asyncio.Event().wait()
        except OSError as error:
            raise BadSettings(f"The server for health and metrics cannot listen at {self._host}:{self.port}: {error}.") from error

    async def _healthz(self, _request: web.Request) -> web.Response:
        problems = self._problems()
        return web.json_response({"problems": problems}, status=503 if problems else 200)

    async def _metrics_text(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
