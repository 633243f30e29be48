# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Requests to a REST API that is not Kubernetes: connections, deadlines, retries, and texts without secrets. It knows no credentials.

What is sent again: anything that the server put off (429, or 503 with Retry-After) or that cannot have arrived; and what does no harm
twice also after another failure of the server or the network. Anything else that the server may have processed is never sent again: its
error is retryable, and the caller checks first whether it was. Safe to use from several threads at once.
"""

from __future__ import annotations

import itertools
import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ..common.third_party import urllib3
from .client import TRIES
from .connections import Budget, Limits, pool_classes
from .errors import AnswerLost, Unreachable
from .transport import CONNECT_SECONDS, FIRST_WAIT, LONGEST_WAIT, USER_AGENT, reason_of

REQUEST_SECONDS = 90.0  # for a request with all its retries; one that began before is given its own time
RESPONSE_BYTES = 2**26
READ_SECONDS = 30.0
SHORTEST_SECRET = 4  # characters; hiding shorter ones would only garble a message


class RestSession:
    """Up to `connections` at once. `requests` counts what was sent. The read time-out is for a whole response."""

    def __init__(self, timeout: urllib3.Timeout | None = None, connections: int = 1, ssl_context: ssl.SSLContext | None = None) -> None:
        settings: dict[str, Any] = {"maxsize": connections, "block": True, "retries": False}
        if ssl_context:
            settings["ssl_context"] = ssl_context
        self.pool = urllib3.PoolManager(timeout=timeout or urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS), **settings)
        self.pool.pool_classes_by_scheme = pool_classes(Budget(Limits(response_bytes=RESPONSE_BYTES)))
        self._sent = itertools.count(1)
        self.requests = 0
        self._hidden: set[str] = set()

    def hide(self, secrets: Iterable[str]) -> None:
        """Values that no error may repeat, wherever the server puts them."""
        for secret in secrets:
            self._hidden |= {line for line in (secret, *secret.splitlines()) if len(line) >= SHORTEST_SECRET}

    def without_secrets(self, text: str) -> str:
        # The longest first: one may be part of another.
        for secret in sorted(self._hidden, key=len, reverse=True):
            text = text.replace(secret, "(hidden)")
        return text

    def exchange(
        self,
        method: str,
        url: str,
        what: str,
        data: bytes | None,
        headers: Mapping[str, str],
        *,
        repeatable: bool,
        seconds: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, and again where that is safe, may help, and there is time."""
        ends = time.monotonic() + (REQUEST_SECONDS if seconds is None else min(seconds, REQUEST_SECONDS))
        for attempt in range(1, TRIES + 1):
            wait = FIRST_WAIT * 2 ** (attempt - 1)
            try:
                self.requests = next(self._sent)
                sent = {"Accept": "application/json", "User-Agent": USER_AGENT, **headers}
                response = self.pool.request(method, url, body=data, headers=sent, redirect=False, decode_content=False)
            except urllib3.exceptions.HTTPError as error:
                never_sent = isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError)
                untrusted = isinstance(error, urllib3.exceptions.SSLError)
                if attempt == TRIES or not (repeatable or never_sent) or untrusted or time.monotonic() + wait > ends:
                    server = f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"
                    kind = Unreachable if repeatable or never_sent or untrusted else AnswerLost
                    raise kind(
                        f"{what}: {server} does not answer ({reason_of(error)}); check the address and the network, and try again."
                    ) from error
                time.sleep(wait)
                continue
            asked = response.headers.get("Retry-After", "")
            put_off = response.status == 429 or (response.status == 503 and asked)
            pause = min(LONGEST_WAIT, max(wait, float(asked if asked.isdecimal() else 0)))
            if attempt == TRIES or not (put_off or (repeatable and response.status >= 500)) or time.monotonic() + pause > ends:
                return response
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")
