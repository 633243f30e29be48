"""A service that has not read the fleet yet says so: its empty caches are no reason to say that nothing exists."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.middleware.readiness import ReadinessMiddleware
from ansible_collections.openfleet.clusters.extensions.fleet_api.problems import Problem


def send(path: str, *missing: str) -> bool:
    """Whether a request is passed on, while these kinds are not listed yet."""
    passed = False

    async def app(*_request: Any) -> None:
        nonlocal passed
        passed = True

    caches: Any = SimpleNamespace(missing=lambda: list(missing))
    nothing: Any = None
    asyncio.run(ReadinessMiddleware(app, caches)({"type": "http", "path": path}, nothing, nothing))
    return passed


def test_api_is_unavailable_until_every_kind_is_listed() -> None:
    with pytest.raises(Problem) as refused:
        send("/api/fleet/v1/clusters", "RoleBinding")
    assert (refused.value.kind.code, refused.value.headers["Retry-After"]) == ("home-unavailable", "1")
    assert send("/api/fleet/v1/clusters")


def test_page_and_documents_need_no_fleet() -> None:
    assert send("/", "RoleBinding") and send("/openapi.json", "RoleBinding")
