"""The public keys of a token issuer: read once, again after a while, and when a token names an unknown key."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from dataclasses import dataclass
from typing import Any

import jwt
import urllib3

from ....plugins.module_utils.controller.informer import in_thread
from ..problems import Problem
from ..settings import Issuer

log = logging.getLogger(__name__)

DISCOVERY = "/.well-known/openid-configuration"
LARGEST_DOCUMENT, MOST_KEYS = 2**20, 100
CONNECT_SECONDS, READ_SECONDS = 5.0, 10.0
# The type of the keys of each algorithm: a key for another one never verifies a token.
KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}


@dataclass(frozen=True)
class Key:
    """A public key. `algorithm` is the only one that it is for, if its issuer says so."""

    id: str
    type: str
    algorithm: str
    value: Any


class Unreadable(Exception):
    """The issuer does not answer with keys."""


class IssuerKeys:
    """The keys of one issuer. While it does not answer, those that are known count."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._keys: list[Key] = []
        self._read_at = self._tried_at = float("-inf")
        self._reading = asyncio.Lock()

    async def find(self, kid: str, algorithm: str) -> Any:
        """The public key of a token; None if the issuer has none. A Problem if the issuer cannot be asked and no key is known."""
        if time.monotonic() - self._read_at > self._issuer.keys_seconds:
            await self._read()
        found = self._chosen(kid, algorithm)
        if found is None:
            # A new key may have been added since. The pause keeps tokens with invented keys from loading the issuer.
            await self._read()
            found = self._chosen(kid, algorithm)
        return found

    def _chosen(self, kid: str, algorithm: str) -> Any:
        fitting = [key for key in self._keys if key.type == KEY_TYPES[algorithm[:2]] and key.algorithm in ("", algorithm)]
        if not kid:
            return fitting[0].value if len(fitting) == 1 else None
        return next((key.value for key in fitting if key.id == kid), None)

    async def _read(self) -> None:
        async with self._reading:
            if time.monotonic() - self._tried_at < self._issuer.refresh_seconds:
                if not self._keys:
                    raise self._unavailable()
                return
            self._tried_at = time.monotonic()
            try:
                self._keys = await in_thread(self._fetch)
                self._read_at = time.monotonic()
            except Unreadable as error:
                log.warning("keys of %s: %s", self._issuer.url, error)
                if not self._keys:
                    raise self._unavailable() from error

    def _unavailable(self) -> Problem:
        return Problem("issuer-unavailable", headers={"Retry-After": str(max(1, round(self._issuer.refresh_seconds)))})

    def _fetch(self) -> list[Key]:
        address = self._issuer.jwks_uri
        if not address:
            document = self._get(f"{self._issuer.url.rstrip('/')}{DISCOVERY}")
            if document.get("issuer") != self._issuer.url or not isinstance(document.get("jwks_uri"), str):
                raise Unreadable("its discovery document is of another issuer, or names no keys")
            address = document["jwks_uri"]
            if not address.startswith("https://") and self._issuer.url.startswith("https://"):
                raise Unreadable("the address of its keys does not begin with https://")
        entries = self._get(address).get("keys")
        if not isinstance(entries, list):
            raise Unreadable("its key document has no keys")
        return [key for key in map(_key, entries[:MOST_KEYS]) if key]

    def _get(self, address: str) -> dict[str, Any]:
        context = ssl.create_default_context(cafile=self._issuer.ca_file or None) if address.startswith("https://") else None
        try:
            with urllib3.PoolManager(
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS), retries=False, ssl_context=context
            ) as pool:
                answer = pool.request("GET", address, headers={"Accept": "application/json"}, preload_content=False, redirect=False)
                body = answer.read(LARGEST_DOCUMENT + 1)
                answer.close()
            if answer.status != 200 or len(body) > LARGEST_DOCUMENT:
                raise Unreadable(f"{address} answers with status {answer.status} and {len(body)} bytes")
            content = json.loads(body)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, RecursionError) as error:
            raise Unreadable(f"{address}: {type(error).__name__}") from error
        if not isinstance(content, dict):
            raise Unreadable(f"{address} has no object")
        return content


def _key(entry: Any) -> Key | None:
    """The key for signatures; None for others, and for those that cannot be used. One of them does not make the others useless."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or entry.get("kty") not in KEY_TYPES.values():
        return None
    try:
        return Key(str(entry.get("kid") or ""), str(entry["kty"]), str(entry.get("alg") or ""), jwt.PyJWK(entry).key)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
