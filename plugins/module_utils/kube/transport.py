# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""HTTP requests to one API server: connections, proxy, credentials, retries, the server's clock. It knows no kinds.

Safe to use from several threads at once.
"""

from __future__ import annotations

import copy
import datetime
import email.utils
import json
import re
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from ..common.third_party import urllib3
from ..common.types import Object
from .config import Target
from .connections import Budget, Limits, TooLarge, check_allowed, pool_classes
from .errors import (
    BadCredentials,
    KubeError,
    ReadOnly,
    ServerError,
    Unauthorized,
    Unreachable,
    Untrusted,
    error_from,
    foreign_error,
)
from .server_clock import ServerClock

USER_AGENT = "openfleet.clusters"
CONNECT_SECONDS, READ_SECONDS = 10.0, 60.0
FIRST_WAIT, LONGEST_WAIT = 0.25, 30.0
# The alerts of a TLS handshake in which a server refuses the client's certificate.
REFUSED_CERTIFICATE = re.compile(r"ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED)")


class Transport:
    """Up to `connections` to one server. `tries` is how often a request is sent at most, where repeating it is safe.

    A read time-out is for the whole of a response. Nothing that a foreign server answers is repeated in an error.
    """

    def __init__(
        self,
        target: Target,
        timeout: urllib3.Timeout | None,
        tries: int,
        connections: int,
        limits: Limits | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.target = target
        self._read_only = read_only
        self.requests = 0
        self._tries = tries
        self._connections = connections
        self._timeout = timeout or urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        self.clock = ServerClock()
        self._login = threading.Lock()
        self._budget = Budget(limits or Limits())
        self.pool = self._new_pool()

    def with_target(self, target: Target) -> Transport:
        """The same connections, with other credentials for each request."""
        other = copy.copy(self)
        other.target, other.requests = target, 0
        return other

    def request(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        preload: bool = True,
        timeout: urllib3.Timeout | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request. `what` describes it in errors; empty values of the query are left out.

        It is repeated where that is safe: reads after any failure of the server or the network, writes only if they cannot have arrived.
        """
        if self._read_only and method != "GET":
            raise ReadOnly(f"{what}: refused, because this connection only reads.")
        parameters = urlencode({name: value for name, value in (query or {}).items() if value})
        url = f"{self.target.server}{path}{'?' if parameters else ''}{parameters}"
        data = json.dumps(body).encode() if body is not None else None
        renewed = False
        for attempt in range(1, self._tries + 1):
            wait = FIRST_WAIT * 2 ** (attempt - 1)
            headers = self._headers(content_type)
            pool = self.pool
            self._check_budget(what)
            try:
                self.requests += 1
                sent = self.clock.now()
                response = pool.request(
                    method,
                    url,
                    body=data,
                    headers=headers,
                    preload_content=preload,
                    # We ask for no compression; a small answer could unpack to any size.
                    decode_content=False,
                    timeout=timeout or self._timeout,
                    redirect=False,
                )
            except urllib3.exceptions.HTTPError as error:
                never_sent = isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)
                final = isinstance(error, urllib3.exceptions.SSLError) or isinstance(innermost(error), TooLarge)
                if attempt == self._tries or not (method == "GET" or never_sent) or final:
                    raise self._unreachable(error, what) from error
                self._sleep(wait)
                continue
            self.clock.note(_date(response), sent)
            if response.status < 300:
                return response
            again = response.status == 429 or (method == "GET" and response.status >= 500)
            renew = response.status == 401 and not renewed and attempt < self._tries and self._renew_credentials(pool)
            if not renew and (not again or attempt == self._tries):
                raise (foreign_error if self.target.foreign else error_from)(response.status, _content(response), what)
            response.drain_conn()
            if renew:
                renewed = True
                continue
            retry_after = response.headers.get("Retry-After", "")
            self._sleep(min(LONGEST_WAIT, max(wait, float(retry_after if retry_after.isdecimal() else 0))))
        raise AssertionError("the last try returns or raises")

    def _check_budget(self, what: str) -> None:
        if self._budget.is_spent():
            limits = self._budget.limits
            raise Unreachable(
                f"{what}: {self.target.server} takes too long or sends too much; all requests to it together may take "
                f"{limits.total_seconds:g} s and {limits.total_bytes or 0:,} bytes."
            )

    def _sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self._budget.seconds_left())))

    def json(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        """The object in the response to a request."""
        content = _content(self.request(method, path, what, query, body, content_type))
        if not isinstance(content, dict):
            raise ServerError(
                f"{what}: what {self.target.server} answers is not from a Kubernetes API server; check the address and the proxy."
            )
        return content

    def _headers(self, content_type: str) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "Content-Type": content_type, "User-Agent": USER_AGENT})
        for name, value in self.target.headers():
            headers.add(name, value)
        return headers

    def _new_pool(self) -> urllib3.PoolManager:
        settings: dict[str, Any] = {"maxsize": self._connections, "block": True, "retries": False, "socket_options": _socket_options()}
        if self.target.server.startswith("https://"):
            settings["ssl_context"] = self.target.ssl_context()
            if self.target.server_name:
                settings["server_hostname"] = self.target.server_name
            if not self.target.verify:
                # The user has switched verification off; a warning would only clutter what a task prints.
                urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        host = urlsplit(self.target.server).hostname or ""
        if not self.target.proxy or _bypasses_proxy(host, self.target.no_proxy):
            return self._bounded(urllib3.PoolManager(**settings))
        if self._budget.limits.addresses is not None:
            # The proxy connects to the server, so that each connection checks the address of the proxy only.
            check_allowed(host, self._budget.limits.addresses, CONNECT_SECONDS)
        try:
            account = urllib3.util.parse_url(self.target.proxy).auth
            headers = urllib3.make_headers(proxy_basic_auth=account)
            return self._bounded(urllib3.ProxyManager(self.target.proxy, proxy_headers=headers, **settings))
        except urllib3.exceptions.HTTPError:
            raise BadCredentials(
                f"The proxy for {self.target.server} is not a valid address; it looks like http://proxy.example.com:3128."
            ) from None

    def _bounded(self, pool: urllib3.PoolManager) -> urllib3.PoolManager:
        pool.pool_classes_by_scheme = pool_classes(self._budget)
        return pool

    def _renew_credentials(self, refused: urllib3.PoolManager) -> bool:
        """Run the credential plugin and open new connections, once however many threads were refused. False without a plugin."""
        with self._login:
            if self.pool is refused:
                if not self.target.run_plugin():
                    return False
                self.pool = self._new_pool()
        return True

    def _unreachable(self, error: Exception, what: str) -> KubeError:
        """The error for the caller. What a foreign server sent is not quoted: a tenant could read servers of the hub by that."""
        server, foreign, text = self.target.server, self.target.foreign, reason_of(error)
        quoted = "" if foreign else f" ({text})"
        if REFUSED_CERTIFICATE.search(text):
            return Unauthorized(f"{what}: {server} refuses the client certificate{quoted}; check the kubeconfig.")
        if "certificate verify failed" in text or "CERTIFICATE_VERIFY_FAILED" in text:
            remedy = "put its authority into the kubeconfig" if foreign else "set ca_cert to its authority"
            return Untrusted(f"{what}: the certificate of {server} is not trusted{quoted}; {remedy}, and use an address that it is for.")
        reason = _class_of(error) if foreign else text
        return Unreachable(f"{what}: {server} does not answer ({reason}); check the address, the network and the proxy.")


def _class_of(error: Exception) -> str:
    """What kind of failure it is, in our own words."""
    inner, exceptions = innermost(error), urllib3.exceptions
    if isinstance(error, exceptions.TimeoutError) or isinstance(inner, TimeoutError):
        return "timed out"
    if isinstance(inner, TooLarge):
        return "the response is too large"
    classes = (
        (exceptions.NameResolutionError, "the name cannot be resolved"),
        (exceptions.SSLError, "no connection by TLS"),
        (exceptions.NewConnectionError, "no connection"),
    )
    return next((words for kind, words in classes if isinstance(error, kind)), "the response is incomplete, or not HTTP")


def _date(response: urllib3.BaseHTTPResponse) -> datetime.datetime | None:
    try:
        return email.utils.parsedate_to_datetime(response.headers["Date"]).astimezone(datetime.UTC)
    except (KeyError, ValueError, OverflowError):  # the last one for a year or a zone beyond all calendars
        return None


def _content(response: urllib3.BaseHTTPResponse) -> Any:
    """The JSON of a response, or the start of its text."""
    text = response.data.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text[:500]


def reason_of(error: BaseException) -> str:
    """The innermost cause, without the addresses of objects that urllib3 puts in front of it."""
    inner = innermost(error)
    return str(inner).rpartition(": ")[2] if isinstance(inner, urllib3.exceptions.NewConnectionError) else str(inner)


def innermost(error: BaseException) -> BaseException:
    inner = error
    while causes := [cause for cause in (getattr(inner, "reason", None), *inner.args) if isinstance(cause, BaseException)]:
        inner = causes[-1]
    return inner


def _bypasses_proxy(host: str, no_proxy: str) -> bool:
    """Whether `no_proxy` has the host: by name, by domain, or all hosts with `*`."""
    names = [name.strip() for name in no_proxy.split(",")]
    domains = [name.lstrip("*.") for name in names]
    return "*" in names or any(domain and f".{host}".endswith(f".{domain}") for domain in domains)


def _socket_options() -> list[tuple[int, int, int]]:
    """Those of urllib3, and keepalive: a watch only reads, and would never notice that its peer is dead."""
    wanted = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    supported = [(socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in wanted.items() if hasattr(socket, name)]
    return [*urllib3.connection.HTTPConnection.default_socket_options, (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *supported]
