# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""HTTP requests that end: with a deadline and a limit for each answer. It follows no redirect, and knows no repository and no forge."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ..common.third_party import MISSING, urllib3
from ..kube.connections import Budget, Limits, TooLarge, pool_classes
from ..kube.transport import innermost

CONNECT_SECONDS = 5.0
USER_AGENT = "openfleet.clusters"


class HttpFailed(Exception):
    """There is no answer, or none within the limits. The text is a part of a sentence, and has no credential and nothing of the answer."""


class AnswerTooLarge(HttpFailed):
    """There is an answer, of more bytes than the limit."""


@dataclass(frozen=True)
class Answer:
    """A complete answer. The names of `headers` are in lower-case letters."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    url: str


class BoundedHttp:
    """Requests with certificates of one `ca` beside those of the system. Proxies are those of the environment."""

    def __init__(self, ca: str = "", verify: bool = True) -> None:
        if MISSING:
            raise HttpFailed(f"the Python package {MISSING} is not installed")
        self._context = ssl.create_default_context()
        if not verify:
            self._context.check_hostname = False
            self._context.verify_mode = ssl.CERT_NONE
        if ca:
            try:
                self._context.load_verify_locations(cadata=ca)
            except (ssl.SSLError, ValueError):
                raise HttpFailed("its ca has no certificates in PEM") from None

    def request(
        self, method: str, url: str, limit: int, seconds: float, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        if seconds <= 0:
            raise HttpFailed("there is no time left")
        timeout = urllib3.Timeout(connect=min(CONNECT_SECONDS, seconds), read=seconds)
        sent = {"User-Agent": USER_AGENT} | dict(headers or {})
        try:
            with self._pool(url, limit) as pool:
                answer = pool.request(method, url, headers=sent, body=body, timeout=timeout, redirect=False, retries=False)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if isinstance(innermost(error), TooLarge):
                raise AnswerTooLarge(f"{shown(url)} is larger than {limit // 1024} KiB") from None
            raise HttpFailed(f"{shown(url)} {_reason(error)}") from None
        if len(answer.data) > limit:  # it was compressed
            raise AnswerTooLarge(f"{shown(url)} is larger than {limit // 1024} KiB")
        return Answer(answer.status, answer.data, {name.lower(): value for name, value in answer.headers.items()}, url)

    def _pool(self, url: str, limit: int) -> urllib3.PoolManager:
        """A pool for one request: its connections keep the limits of this one."""
        parts = urlsplit(url)
        proxy = "" if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme, "")
        pool = urllib3.ProxyManager(proxy, ssl_context=self._context) if proxy else urllib3.PoolManager(ssl_context=self._context)
        pool.pool_classes_by_scheme = pool_classes(Budget(Limits(response_bytes=limit + 64 * 1024)))
        return pool


def shown(url: str) -> str:
    """The address without its query, which may have a signature, and without an account."""
    start, scheme, rest = url.partition("?")[0].partition("://")
    return f"{start}{scheme}{rest.rpartition('@')[2]}"[:200]


def _reason(error: Exception) -> str:
    inner = innermost(error)
    refused = isinstance(error, urllib3.exceptions.NewConnectionError)  # which is a kind of time-out for urllib3
    if isinstance(inner, TimeoutError) or (isinstance(error, urllib3.exceptions.TimeoutError) and not refused):
        return "does not answer in time"
    if isinstance(inner, ssl.SSLError):
        return "has a certificate that is not trusted, or does not use TLS"
    return f"cannot be reached ({type(inner).__name__})"
