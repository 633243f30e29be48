"""Refuses requests to the API until the caches were filled once: an empty cache would say that nothing of the caller exists."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from ..problems import Problem
from ..stores.caches import FleetCaches
from .authentication import API_PATH


class ReadinessMiddleware:
    def __init__(self, app: ASGIApp, caches: FleetCaches) -> None:
        self._app = app
        self._caches = caches

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(API_PATH) and self._caches.missing():
            raise Problem("home-unavailable", "The service has just started, and has not read the fleet yet.", headers={"Retry-After": "1"})
        await self._app(scope, receive, send)
