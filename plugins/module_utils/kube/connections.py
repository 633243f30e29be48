# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Connections that end: with a deadline for the whole of each response, a limit on its size, and only to allowed addresses.

A time-out of urllib3 is for one read, so a server that sends a byte a minute would keep a request indefinitely, and the resolver of the
system has none at all. Here the read time-out is for the response as a whole, from its first byte to its last, and the connect time-out
for resolving and connecting; the handshake of TLS gets as long again. A checked address is the one that is connected to: a name that
resolves to another one a moment later gains nothing. It knows neither Kubernetes nor credentials.
"""

from __future__ import annotations

import functools
import http.client
import io
import ipaddress
import queue
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

from ..common.third_party import urllib3
from .allowed_addresses import AllowedAddresses
from .errors import AddressNotAllowed

CHUNK = 65536
FOREVER = 1e6  # seconds; a number that every time-out can be
# More than a page of 500 objects of the largest size that a Kubernetes API server stores.
RESPONSE_BYTES = 2**30


@dataclass(frozen=True)
class Limits:
    """Of one connection: the bytes of a response, and for all requests together their bytes and their seconds; None is no limit.

    With `addresses` it connects to these only.
    """

    response_bytes: int = RESPONSE_BYTES
    total_bytes: int | None = None
    total_seconds: float | None = None
    addresses: AllowedAddresses | None = None


class TooLarge(http.client.HTTPException):
    """A response has more bytes than allowed."""


class Budget:
    """What is left of the limits of a connection. The time counts from the first use."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._ends: float | None = None
        self._read = 0

    def seconds_left(self) -> float:
        if self.limits.total_seconds is None:
            return FOREVER
        now = time.monotonic()
        if self._ends is None:
            self._ends = now + self.limits.total_seconds
        return self._ends - now

    def is_spent(self) -> bool:
        return self.seconds_left() <= 0 or (self.limits.total_bytes is not None and self._read >= self.limits.total_bytes)

    def count(self, size: int) -> None:
        self._read += size
        if self.limits.total_bytes is not None and self._read > self.limits.total_bytes:
            raise TooLarge(f"more than {self.limits.total_bytes:,} bytes in all")


def pool_classes(budget: Budget) -> dict[str, Any]:
    """The classes of urllib3's pools by scheme, with connections that keep the limits."""

    class HttpConnection(_Bounded, urllib3.connection.HTTPConnection):
        _budget = budget

    class HttpsConnection(_Bounded, urllib3.connection.HTTPSConnection):
        _budget = budget

    class HttpPool(urllib3.HTTPConnectionPool):
        ConnectionCls = HttpConnection

    class HttpsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = HttpsConnection

    return {"http": HttpPool, "https": HttpsPool}


class _Bounded:
    """What both kinds of connections share; a mixin for those of urllib3."""

    _budget: Budget

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.response_class: Any = functools.partial(_Response, budget=self._budget)

    def _deadline(self: Any) -> float:
        left = self._budget.seconds_left()
        return time.monotonic() + float(left if self.timeout is None else min(self.timeout, left))

    def _new_conn(self: Any) -> socket.socket:
        deadline, host = self._deadline(), self._dns_host.strip("[]")
        addresses = self._budget.limits.addresses
        refused = AddressNotAllowed(host)
        if addresses and not addresses.may_allow(host):
            raise refused  # also the question to a name server is a request
        try:
            found = resolve(host, self.port, deadline)
        except (socket.gaierror, UnicodeError) as error:
            if addresses and not addresses.allow_name(host):
                raise refused from None  # what the site's resolver knows is not for tenants
            reason = error if isinstance(error, socket.gaierror) else socket.gaierror(str(error))
            raise urllib3.exceptions.NameResolutionError(self.host, self, reason) from error
        except TimeoutError as error:
            raise urllib3.exceptions.ConnectTimeoutError(self, f"the name {self.host} was not resolved in time") from error
        if addresses and not all(addresses.allow(host, address) for address in found):
            raise refused
        sock: socket.socket = self._connected(found, deadline)
        return sock

    def _connected(self: Any, addresses: list[str], deadline: float) -> socket.socket:
        problem: Exception = OSError("no address")
        for address in addresses:
            try:
                return urllib3.util.connection.create_connection(
                    (address, self.port), max(0.001, deadline - time.monotonic()), self.source_address, self.socket_options
                )
            except TimeoutError as error:
                problem = urllib3.exceptions.ConnectTimeoutError(self, f"Connection to {self.host} timed out.")
                problem.__cause__ = error
            except OSError as error:
                problem = urllib3.exceptions.NewConnectionError(self, f"Failed to establish a new connection: {error}")
                problem.__cause__ = error
        raise problem

    def send(self: Any, data: Any) -> None:
        """In pieces: a send over TLS has its time-out for each record, not for all of them."""
        if self.sock is None and self.auto_open:
            self.connect()
        deadline = self._deadline()
        for start in range(0, len(data), CHUNK):
            self.sock.settimeout(max(0.001, deadline - time.monotonic()))
            super().send(data[start : start + CHUNK])  # type: ignore[misc]


class _Response(http.client.HTTPResponse):
    """A response that is read until its deadline, which is the time-out that the socket has when it begins."""

    def __init__(self, sock: socket.socket, *arguments: Any, budget: Budget, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        timeout = sock.gettimeout()
        seconds = min(budget.seconds_left(), FOREVER if timeout is None else timeout)
        self.fp = io.BufferedReader(_Reader(self.fp.detach(), sock, time.monotonic() + seconds, budget))


class _Reader(io.RawIOBase):
    def __init__(self, raw: Any, sock: socket.socket, deadline: float, budget: Budget) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline
        self._budget = budget
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the response is not complete in time")
        self._sock.settimeout(left)
        size: int | None = self._raw.readinto(buffer)
        self._read += size or 0
        if self._read > self._budget.limits.response_bytes:
            raise TooLarge(f"more than {self._budget.limits.response_bytes:,} bytes in one response")
        self._budget.count(size or 0)
        return size

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


def check_allowed(host: str, allowed: AllowedAddresses, seconds: float) -> list[str]:
    """The addresses of the host, for connections that others open; none where only a proxy knows them. AddressNotAllowed if one is not."""
    if not allowed.may_allow(host):
        raise AddressNotAllowed(host)
    try:
        found = resolve(host, 0, time.monotonic() + seconds)
    except (OSError, UnicodeError):
        found = []  # perhaps only a proxy resolves it
    if not (all(allowed.allow(host, address) for address in found) if found else allowed.allow_name(host)):
        raise AddressNotAllowed(host)
    return found


def resolve(host: str, port: int, deadline: float) -> list[str]:
    """The addresses of a host; TimeoutError at the deadline. The resolver has no time-out of its own, so its thread is abandoned then."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answers.put(list(dict.fromkeys(str(entry[4][0]) for entry in found)))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=look_up, daemon=True, name="resolve").start()
    try:
        answer = answers.get(timeout=max(0.001, deadline - time.monotonic()))
    except queue.Empty:
        raise TimeoutError(f"{host} was not resolved in time") from None
    if isinstance(answer, Exception):
        raise answer
    return answer
