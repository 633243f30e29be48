"""Headers that keep browsers from doing more with an answer than to show it."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Scripts and styles come from this service only, none of them inline. The browser refuses every string that would
# become markup or code.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'{connect}; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
UNCACHED = (b"cache-control", b"no-store")


class SecurityHeadersMiddleware:
    """`issuer` is the address that the page logs in at; scripts may send requests there besides this service."""

    def __init__(self, app: ASGIApp, issuer: str = "") -> None:
        self._app = app
        address = urlsplit(issuer)
        connect = f" {address.scheme}://{address.netloc}" if issuer else ""
        self._headers = [(b"content-security-policy", POLICY.format(connect=connect).encode()), *HEADERS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _value in message["headers"]}
                added = [*self._headers, *([] if b"cache-control" in names else [UNCACHED])]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        await self._app(scope, receive, answer)
