"""Faults of the platform that a test or a demonstration asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .exchange import Request, Response

STATUSES = {
    "429": Response(429, {"detail": "Request was throttled. Expected available in 1 second."}, {"Retry-After": "1"}),
    "502": Response(502, "<html><body><h1>502 Bad Gateway</h1></body></html>", content_type="text/html"),
    "503": Response(503, "<html><body><h1>503 Service Unavailable</h1></body></html>", content_type="text/html"),
    "504": Response(504, "<html><body><h1>504 Gateway Time-out</h1></body></html>", content_type="text/html"),
}


@dataclass
class Fault:
    """What happens to the next `times` requests of a method whose path matches.

    429, 502, 503, 504: this answer, and nothing is done; lost: it is done and the connection ends without an answer; done-502: it is
    done and answered with 502; slow: it is answered after `seconds`; dead: the connection ends and nothing is done.
    """

    how: str
    method: str = ".*"
    path: str = ".*"
    times: int = 1
    seconds: float = 0.0

    def meets(self, request: Request) -> bool:
        return self.times > 0 and bool(re.fullmatch(self.method, request.method) and re.search(self.path, request.path))
