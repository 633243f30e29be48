# Copyright: openfleet.clusters contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Third-party libraries of the event source. A missing one is reported when the source starts, not by a traceback."""

from __future__ import annotations

try:
    import prometheus_client
    import prometheus_client.core
    from aiohttp import web
    from aiohttp.web import RequestHandler

    MISSING = ""
except ImportError as error:
    prometheus_client = web = None  # type: ignore[assignment]
    RequestHandler = object  # type: ignore[assignment,misc]
    MISSING = str(error.name)

__all__ = ["MISSING", "RequestHandler", "prometheus_client", "web"]
