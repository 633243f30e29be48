"""What a store sees of the requests."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from ansible_collections.openfleet.clusters.plugins.module_utils.s3.store import BotoBucket


class Store(BaseHTTPRequestHandler):
    """Has every object, and no content."""

    agents: list[str] = []  # noqa: RUF012 - one server in this file

    def do_GET(self) -> None:
        self.agents.append(self.headers["User-Agent"].split()[0])  # the SDK adds its version
        self.send_response(200)
        self.send_header("ETag", '"x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


def test_the_store_sees_that_this_collection_asks() -> None:
    with HTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        BotoBucket({"bucket": "b", "endpoint_url": address, "region": "r", "access_key": "a", "secret_key": "s"}, 1).read("a")
        server.shutdown()
    assert Store.agents == ["openfleet.clusters"]
