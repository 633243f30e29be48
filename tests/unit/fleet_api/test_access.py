"""Denials of an API server that starts and of one that is ready. The API server is a stand-in: a real one is not held at its start."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.fleet_api.problems import Problem
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.access import LIST_CLUSTERS, Access
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.cluster_source import FleetClusters
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.home import Home
from ansible_collections.openfleet.clusters.extensions.fleet_api.stores.identity import Caller

FORBIDDEN, YES, NO = "forbidden", "allowed", "denied"


class ApiServer:
    """Answers reviews one after the other, the last one for ever, and /readyz with `readyz`."""

    def __init__(self) -> None:
        self.reviews: list[str] = []
        self.readyz = 200
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(server.readyz, {"message": "not yet"})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                review = server.reviews.pop(0) if len(server.reviews) > 1 else server.reviews[0]
                if review == FORBIDDEN:
                    self.answer(403, {"kind": "Status", "message": "not yet ready to handle request"})
                else:
                    self.answer(201, {"kind": "SubjectAccessReview", "metadata": {}, "status": {"allowed": review == YES}})

            def answer(self, status: int, body: dict[str, Any]) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: Any) -> None:
                """Nothing."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    made = ApiServer()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()


@pytest.fixture
def access(server: ApiServer, tmp_path: Path) -> Iterator[Access]:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "home",
        "clusters": [{"name": "home", "cluster": {"server": server.url}}],
        "users": [{"name": "api", "user": {"token": "made up"}}],
        "contexts": [{"name": "home", "context": {"cluster": "home", "user": "api"}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(config), encoding="utf-8")
    home = Home(str(file))
    yield Access(home, 0, FleetClusters())
    home.close()


def decision(access: Access) -> bool | tuple[str, bool]:
    """What the caller gets; of a problem its code, and whether it may try again."""
    try:
        return asyncio.run(access.allows(Caller("alice", (), {}), LIST_CLUSTERS, "team"))
    except Problem as problem:
        return problem.kind.code, "Retry-After" in problem.headers


@pytest.mark.parametrize(
    ("reviews", "readyz", "expected"),
    [
        ([YES], 500, True),
        ([NO], 200, False),
        ([NO], 403, False),  # a site that hides it
        ([NO, YES], 200, True),  # it was ready a moment after the first review
        ([NO], 500, ("home-unavailable", True)),
        ([FORBIDDEN], 500, ("home-unavailable", True)),
        ([FORBIDDEN, YES], 200, True),
        ([FORBIDDEN], 200, ("home-unavailable", True)),  # the service itself lacks the permission
    ],
)
def test_denial_of_an_api_server_that_is_not_ready_is_no_answer(
    server: ApiServer, access: Access, reviews: list[str], readyz: int, expected: Any
) -> None:
    server.reviews, server.readyz = reviews, readyz
    assert decision(access) == expected
