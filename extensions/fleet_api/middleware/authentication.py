"""Authenticates requests to the API and limits their rate by user. What is public is not below the API's path."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from ..logic.rate_limit import RateLimit
from ..problems import Problem
from ..stores.tokens import CHALLENGE, Authenticator

API_PATH = "/api/"


class AuthenticationMiddleware:
    def __init__(self, app: ASGIApp, authenticator: Authenticator, rate_limit: RateLimit) -> None:
        self._app = app
        self._authenticator = authenticator
        self._rate_limit = rate_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(API_PATH):
            token = _bearer_token(scope)
            caller = await self._authenticator.caller(token)
            scope["state"] |= {"caller": caller, "token": token}
            if wait := self._rate_limit.take(caller.user):
                raise Problem("rate-limited", headers={"Retry-After": str(wait)})
        await self._app(scope, receive, send)


def _bearer_token(scope: Scope) -> str:
    found = [value for name, value in scope["headers"] if name == b"authorization"]
    if not found:
        return ""
    value: bytes = found[0]
    scheme, _space, token = value.decode("latin-1").partition(" ")
    if len(found) > 1 or scheme.lower() != "bearer" or not token.strip():
        raise Problem("unauthenticated", "The request has no bearer token.", headers=CHALLENGE)
    return token.strip()
