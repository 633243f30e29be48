# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How long to wait for the response of a cluster. One that hangs gets the full timeout once, not in each reconcile: a failover has many.

After that it gets one request at a time, and the first response restores the full timeout, however late it arrives.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from ..read_results import Unauthorized, Unreachable

SHORT_SECONDS = 1.0


class ResponseTimeouts:
    """The clusters that hang, each with the last request to it. Kept between reconciles. Safe for concurrent use."""

    def __init__(self) -> None:
        self._last: dict[str, Future[Any]] = {}

    def seconds(self, cluster: str, full: float) -> float:
        """How long to wait for an answer; 0 while an earlier request to a cluster that hangs is not answered."""
        last = self._last.get(cluster)
        if last is None:
            return full
        if not last.done():
            return 0.0
        return min(full, SHORT_SECONDS) if _is_unknown(last) else full

    def note(self, cluster: str, request: Future[Any], took: float) -> None:
        """Remember how a cluster has answered after `took` seconds."""
        if not request.done() or (took > SHORT_SECONDS and _is_unknown(request)):
            self._last[cluster] = request
        else:
            self._last.pop(cluster, None)


def _is_unknown(request: Future[Any]) -> bool:
    return request.exception() is None and isinstance(request.result(), (Unreachable, Unauthorized))
