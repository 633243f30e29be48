"""A plain HTTP client of the stand-in for Automation Platform: what it answers is what the tests compare."""

from __future__ import annotations

import json
from typing import Any

import urllib3


class Client:
    def __init__(self, url: str, token: str, base: str = "/api/v2/") -> None:
        self._url, self._base = url, base
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._pool = urllib3.PoolManager(retries=False)

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and content of an answer. A path that begins with a slash is not below the API's base."""
        address = f"{self._url}{path}" if path.startswith("/") else f"{self._url}{self._base}{path}"
        data = None if body is None else json.dumps(body)
        answer = self._pool.request(method, address, body=data, headers=self._headers, redirect=False)
        return answer.status, json.loads(answer.data) if answer.data else None

    def create(self, path: str, **fields: Any) -> int:
        """The id of a new object."""
        status, answer = self("POST", path, fields)
        assert status == 201, answer
        return int(answer["id"])
