# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The web server for webhooks, health and metrics. A webhook names an order to reconcile; nothing else of it is used. A notification of a
cluster names its own order, with a signature of its own.

Every request is answered at once: enqueueing a name waits neither for the rules engine nor for the API server. A body that does not arrive
in time is not waited for either.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import math
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..gitops.notification_key import PATH, SIGNATURE_HEADER
from ..orders.selection import NoSuchSelection, OrderName, named
from .gitops_notifications import GitOpsNotifications
from .listener import ConnectionLimits, Listener, client_of
from .metrics import Metrics
from .settings import BadSettings, Webhook
from .third_party import web

log = logging.getLogger(__name__)

ENDPOINTS = ("create-hosted-cluster", "delete-hosted-cluster")
BODY_SECONDS = 10.0
CLIENTS = 10_000
CERTIFICATE_SECONDS = 60.0
HEALTH_LIMITS = ConnectionLimits(total=32, per_client=8)

if TYPE_CHECKING:
    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebhookServer:
    """`enqueue` takes the name of an order; `problems` returns why the source is not healthy."""

    def __init__(
        self,
        settings: Webhook,
        metrics: Metrics,
        enqueue: Callable[[OrderName], None],
        problems: Callable[[], list[str]],
        notifications: GitOpsNotifications | None = None,
    ) -> None:
        self.port = settings.port
        self.health_port = settings.health_port
        self._settings = settings
        self._metrics = metrics
        self._enqueue = enqueue
        self._problems = problems
        self._notifications = notifications
        self._buckets = Buckets(settings.rate_limit)
        self._tls = _tls(settings)

    async def serve(self) -> None:
        """Answer until cancelled."""
        settings = self._settings
        webhooks = [web.post(f"/{endpoint}", self._webhook) for endpoint in ENDPOINTS]
        webhooks.append(web.post(f"/{PATH}/{{uid:[0-9a-f-]{{36}}}}", self._notification))
        health = [web.get("/healthz", self._healthz), web.get("/metrics", self._metrics_text)]
        limits = ConnectionLimits(settings.max_connections, settings.max_connections_per_client)
        async with AsyncExitStack() as stack:
            if settings.health_port is not None:
                # Connections of its own: however many senders connect, a probe is answered. A kubelet verifies no
                # certificate.
                self.health_port = await self._listen(stack, Listener(self._app(health), HEALTH_LIMITS), settings.health_port)
                health = []
            listener = Listener(self._app(webhooks + health), limits, self._tls, self._metrics.refused_connection)
            self.port = await self._listen(stack, listener, settings.port)
            await self._reload_certificates()

    def _app(self, routes: Sequence[web.RouteDef]) -> web.Application:
        @web.middleware
        async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._answer(request, handler)

        app = web.Application(client_max_size=self._settings.body_limit, middlewares=[counted])
        app.add_routes(routes)
        return app

    async def _listen(self, stack: AsyncExitStack, listener: Listener, port: int) -> int:
        host = self._settings.host
        try:
            bound = await stack.enter_async_context(listener.listening(host, port))
        except OSError as error:
            raise BadSettings(f"The webhook server cannot listen at {host}:{port}: {error}.") from error
        log.info("webhook server listens at %s:%d", host, bound)
        return bound

    async def _reload_certificates(self) -> None:
        """Reload them when their files change, until cancelled: they are renewed more often than this process is restarted."""
        last_change = _changed_at(self._settings)
        while True:
            await asyncio.sleep(CERTIFICATE_SECONDS)
            if self._tls and (now := _changed_at(self._settings)) != last_change:
                try:
                    _load(self._tls, self._settings)
                    log.info("reloaded the certificates of the webhook server")
                except (OSError, ssl.SSLError) as error:
                    log.warning("cannot reload the certificates of the webhook server, so the old ones stay: %s", error)
                last_change = now

    async def _answer(self, request: web.Request, handle: Handler) -> web.StreamResponse:
        """Count every answer, and answer every error: an unknown route is 404, and an exception does not end the server."""
        known = request.match_info.http_exception is None
        endpoint = request.path.split("/")[1] if known else "other"
        try:
            response = await handle(request)
        except web.HTTPException as error:
            response = web.json_response({"error": error.reason}, status=error.status, headers=_headers(error))
        except (asyncio.CancelledError, ConnectionError):
            self._metrics.answered(endpoint, 499)  # the sender disconnected
            raise
        except Exception:
            log.exception("a webhook failed")
            response = _refusal(500, "the event source failed; its log says why")
        self._metrics.answered(endpoint, response.status)
        return response

    async def _webhook(self, request: web.Request) -> web.Response:
        if refusal := self._over_limit(request):
            return refusal
        if not self._is_authenticated(request):
            return _refusal(401, "a valid token, or certificate, is needed")
        body = await _body(request)
        if not self._is_signed(request, body):
            return _refusal(401, "a valid signature of the body is needed")
        try:
            orders = named(None, None, (), {"payload": json.loads(body)})
        except (ValueError, RecursionError, NoSuchSelection):
            orders = []
        if not orders:
            return _refusal(400, "a ClusterOrder as JSON is needed, with the name and the namespace of its metadata")
        for order in orders:
            self._enqueue(order)
        return web.json_response({"accepted": [f"{order.namespace}/{order.name}" for order in orders]}, status=202)

    async def _notification(self, request: web.Request) -> web.Response:
        """A cluster has no token and no certificate of the site: the signature with its own key is what counts."""
        if refusal := self._over_limit(request):
            return refusal
        body, uid = await _body(request), request.match_info["uid"]
        signature = request.headers.get(SIGNATURE_HEADER, "")
        if self._notifications is None or not await self._notifications.accept(uid, body, signature):
            return _refusal(401, "a valid signature of the body is needed")
        return web.json_response({"accepted": [uid]}, status=202)

    def _over_limit(self, request: web.Request) -> web.Response | None:
        wait = self._buckets.take(client_of(request.remote or ""), time.monotonic())
        return _refusal(429, "too many requests", {"Retry-After": str(math.ceil(wait))}) if wait else None

    def _is_authenticated(self, request: web.Request) -> bool:
        """Whether the token and the client certificate are valid, as far as the settings require them."""
        if self._settings.token:
            given = request.headers.get("Authorization", "")
            if not _same(given, f"Bearer {self._settings.token}"):
                return False
        return not self._settings.cafile or _is_allowed(request.get_extra_info("peercert"), self._settings.client_names)

    def _is_signed(self, request: web.Request, body: bytes) -> bool:
        if not self._settings.hmac_secret:
            return True
        digest = hmac.new(self._settings.hmac_secret.encode(), body, hashlib.sha256).hexdigest()
        return _same(request.headers.get(self._settings.hmac_header, "").removeprefix("sha256="), digest)

    async def _healthz(self, _request: web.Request) -> web.Response:
        problems = self._problems()
        return web.json_response({"problems": problems}, status=503 if problems else 200)

    async def _metrics_text(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


async def _body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="the body did not arrive in time") from None


class Buckets:
    """A token bucket for each client: `rate` requests a second, twice as many in a burst. Beyond the limit the oldest client is dropped."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, now: float) -> float:
        """0 where the client may send; else the seconds until it may."""
        most = 2.0 * self._rate
        left, at = self._left.pop(client, (most, now))
        left = min(most, left + (now - at) * self._rate)
        allowed = left >= 1
        self._left[client] = (left - 1 if allowed else left, now)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._rate


def _is_allowed(certificate: Mapping[str, Any] | None, names: Collection[str]) -> bool:
    """Whether a verified certificate has one of the names. Its common name counts only if it has no DNS name."""
    if not certificate:
        return False
    found = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    found = found or [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
    return not {name.lower() for name in names}.isdisjoint(name.lower() for name in found)


def _same(given: str, wanted: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _refusal(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": text}, status=status, headers=headers)


def _headers(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}


def _tls(settings: Webhook) -> ssl.SSLContext | None:
    if not settings.certfile:
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        _load(context, settings)
    except (OSError, ssl.SSLError) as error:
        raise BadSettings(
            f"The certificates of the webhook server cannot be used ({error}); check certfile, keyfile and cafile."
        ) from error
    if settings.cafile:
        # Not required by the handshake: clients of /healthz and /metrics, like a kubelet, need none.
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _load(context: ssl.SSLContext, settings: Webhook) -> None:
    context.load_cert_chain(settings.certfile, settings.keyfile or None, password="")
    if settings.cafile:
        context.load_verify_locations(settings.cafile)


def _changed_at(settings: Webhook) -> list[float]:
    """When the certificate files were last written; 0 for one that is being replaced."""
    return [_written_at(Path(name)) for name in (settings.certfile, settings.keyfile, settings.cafile) if name]


def _written_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
