"""The outermost middleware: an operation id on every answer and in the log, metrics, and a problem for whatever fails.

The log has no query, no header and no body: they may contain secrets.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..handlers.answers import problem_response
from ..problems import Problem
from .metrics import Metrics

log = logging.getLogger(__name__)
access_log = logging.getLogger("fleet_api.access")

HEADER = b"x-operation-id"


class OperationMiddleware:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        operation_id, started, status = uuid.uuid4().hex, time.monotonic(), 0
        scope.setdefault("state", {})["operation_id"] = operation_id

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], (HEADER, operation_id.encode())]}
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            problem = error if isinstance(error, Problem) else Problem("internal-error")
            if problem is not error:
                log.exception("operation %s failed", operation_id)
            if not status:
                await problem_response(problem, operation_id)(scope, receive, answer)
        finally:
            self._record(scope, operation_id, status, time.monotonic() - started)

    def _record(self, scope: Scope, operation_id: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        caller = scope["state"].get("caller")
        self._metrics.answered(scope["method"] if route != "unknown" else "any", route, status, seconds)
        entry = {
            "operation_id": operation_id,
            "method": scope["method"],
            "route": route,
            "status": status,
            "milliseconds": round(seconds * 1000, 1),
            "user": caller.user if caller else None,
            "client": (scope.get("client") or ("",))[0],
        }
        access_log.info(json.dumps(entry))
