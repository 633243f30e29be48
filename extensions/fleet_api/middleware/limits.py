"""Limits of every request: size and kind of its body, the time to send it, the time to answer it. Event streams last longer."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..problems import Problem
from ..settings import Limits


class LimitsMiddleware:
    """Reads the whole body before the request is handled, so that a slow sender occupies nothing else."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if not started and message["type"] == "http.response.start":
                started = True
                # From here on the response limits itself: an event stream takes its time.
                deadline.reschedule(None)
            await send(message)

        try:
            async with asyncio.timeout(self._limits.request_seconds) as deadline:
                body = await self._read(scope, receive)
                if body is None:
                    return
                if body and not _is_json(scope):
                    raise Problem("unsupported-media-type")
                await self._app(scope, _replay(body, receive), answer)
        except TimeoutError:
            if started or not deadline.expired():
                raise
            raise Problem("timeout", headers={"Connection": "close"}) from None

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The body; None if the client has gone."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared[:20]) > self._limits.body_bytes:
            raise _too_large(self._limits.body_bytes)
        body: bytes = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._limits.body_bytes:
                raise _too_large(self._limits.body_bytes)
            if not message.get("more_body"):
                return body


def _is_json(scope: Scope) -> bool:
    declared: bytes = dict(scope["headers"]).get(b"content-type", b"")
    kind = declared.partition(b";")[0].strip().lower()
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def _too_large(most: int) -> Problem:
    return Problem("too-large", f"A body has at most {most} bytes.", headers={"Connection": "close"})


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once, and then what the server has to say."""
    sent = False

    async def replayed() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replayed
