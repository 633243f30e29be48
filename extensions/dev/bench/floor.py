"""The floor of every comparison: requests to an API server over one bare connection, without any library."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import tempfile
from email.message import Message
from pathlib import Path
from typing import NamedTuple

from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object


class Response(NamedTuple):
    status: int
    headers: Message
    text: str


class BareClient:
    """One connection of Python's own HTTP client. It is for one thread."""

    def __init__(self, kubeconfig: Path) -> None:
        content = json.loads(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
        host, port = cluster["server"].removeprefix("https://").split(":")
        self._connection = http.client.HTTPSConnection(host, int(port), context=context)

    def send(self, method: str, path: str, body: Object | None = None, content_type: str = "application/json") -> str:
        response = self.exchange(method, path, json.dumps(body) if body else None, content_type)
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {response.text}")
        return response.text

    def exchange(self, method: str, path: str, body: str | None, content_type: str) -> Response:
        """The response, whatever its status."""
        self._connection.request(method, path, body, {"Content-Type": content_type})
        response = self._connection.getresponse()
        return Response(response.status, response.headers, response.read().decode())

    def requests(self) -> int:
        """How many requests of all clients the API server has answered, by its own metric, without watches.

        Pause the other clients while you count. Those of the server to itself remain, about one in three seconds.
        """
        return self._counted(r'verb="(GET|LIST|POST|PUT|PATCH|APPLY|DELETE)"')

    def writes(self) -> int:
        return self._counted(r'verb="(POST|PUT|PATCH|APPLY|DELETE)"')

    def _counted(self, pattern: str) -> int:
        lines = re.findall(r"^apiserver_request_total{(.*)} (\S+)$", self.send("GET", "/metrics"), re.MULTILINE)
        return int(sum(float(value) for labels, value in lines if re.search(pattern, labels)))
